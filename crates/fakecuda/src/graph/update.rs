//! Changes of an executable graph.

use super::executable::{Instance, Program};
use super::node::{Content, node_type};
use super::user_object::Held;
use crate::exec::Kind;
use crate::state::State;
use crate::status::{Code, Result};
use std::sync::Arc;

/// Why an executable graph cannot become like a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatch {
    /// `CUgraphExecUpdateResult`.
    pub result: u32,
    /// The node of the graph; 0 if it is no node's fault.
    pub node: u64,
    /// The dependency that differs; 0 if it is none.
    pub from: u64,
}

impl Mismatch {
    const ERROR: u32 = 1;
    const TOPOLOGY: u32 = 2;
    const NODE_TYPE: u32 = 3;
    const PARAMETERS: u32 = 5;
    const NOT_SUPPORTED: u32 = 6;
    const FUNCTION: u32 = 7;

    fn new(result: u32, node: u64) -> Self {
        let from = 0;
        Self { result, node, from }
    }
}

/// A new content for a node of an executable graph.
#[derive(Debug)]
pub enum Change {
    To(Content),
    /// The nodes of a graph like the one in the child graph node.
    Child {
        graph: u64,
    },
}

/// Whether a node can become what another is.
fn compare(old: &Instance, new: &Instance) -> std::result::Result<(), Mismatch> {
    let fault = |result| Err(Mismatch::new(result, new.handle));
    if old.content.node_type() != new.content.node_type() {
        return fault(Mismatch::NODE_TYPE);
    }
    if old.dependencies.len() != new.dependencies.len() {
        return fault(Mismatch::TOPOLOGY);
    }
    if old.content.is_memory() {
        return fault(Mismatch::NOT_SUPPORTED);
    }
    match (&old.child, &new.child) {
        (Some(old), Some(new)) => compare_all(old, new)?,
        (None, None) => {}
        _ => return fault(Mismatch::NODE_TYPE),
    }
    if let (
        Content::Work {
            kind, context: old, ..
        },
        Content::Work { context: new, .. },
    ) = (&old.content, &new.content)
    {
        if old.is_some() && new.is_some() && old != new {
            return fault(match kind {
                Kind::Kernel => Mismatch::FUNCTION,
                _ => Mismatch::PARAMETERS,
            });
        }
    }
    Ok(())
}

/// Whether all nodes can become what those of another program are.
fn compare_all(old: &Program, new: &Program) -> std::result::Result<(), Mismatch> {
    if old.nodes.len() != new.nodes.len() {
        return Err(Mismatch::new(Mismatch::TOPOLOGY, 0));
    }
    for (old, own) in old.nodes.iter().zip(&new.nodes) {
        compare(old, own)?;
        let differs = own
            .dependencies
            .iter()
            .find(|at| !old.dependencies.contains(at));
        if let Some(&index) = differs {
            return Err(Mismatch {
                from: new.nodes[index].handle,
                ..Mismatch::new(Mismatch::TOPOLOGY, own.handle)
            });
        }
    }
    Ok(())
}

/// Takes the contents of another program.
fn take_over(old: &mut Program, new: Program) {
    for (old, new) in old.nodes.iter_mut().zip(new.nodes) {
        old.content = new.content;
        if let (Some(old), Some(new)) = (&mut old.child, new.child) {
            take_over(old, new);
        }
    }
}

impl State {
    /// `cuGraphExecUpdate`: the executable graph does what a graph with the same nodes does.
    ///
    /// # Errors
    /// What is different.
    pub fn update_executable(
        &mut self,
        handle: u64,
        graph: u64,
    ) -> std::result::Result<(), Mismatch> {
        let error = Mismatch::new(Mismatch::ERROR, 0);
        let found = self.graphs.graph(graph).map_err(|_| error)?;
        let objects = Arc::new(found.objects.iter().map(Held::again).collect());
        let program = self.graphs.program(graph).map_err(|_| error)?;
        let executable = self.graphs.executable_mut(handle).map_err(|_| error)?;
        compare_all(&executable.program, &program)?;
        take_over(Arc::make_mut(&mut executable.program), program);
        // Launches in flight keep the objects that they were started with.
        executable.objects = objects;
        Ok(())
    }

    /// Changes a node of an executable graph, named by the node from which it was made.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no such node there, or one of another type. `NOT_SUPPORTED`: a memory node.
    pub fn change_executable(&mut self, handle: u64, node: u64, change: Change) -> Result {
        let source = self.graphs.node(node)?.number;
        let mut change = match change {
            Change::To(content) => (Some(content), None),
            Change::Child { graph } => {
                let program = self.graphs.program(graph);
                (None, Some(program.map_err(|refusal| refusal.code)?))
            }
        };
        let executable = self.graphs.executable_mut(handle)?;
        let program = Arc::make_mut(&mut executable.program);
        let instance = program.find_mut(source).ok_or(Code::INVALID_VALUE)?;
        if instance.content.is_memory() {
            return Err(Code::NOT_SUPPORTED);
        }
        match (&mut instance.child, change.1.take()) {
            (Some(old), Some(new)) => {
                compare_all(old, &new).map_err(|_| Code::GRAPH_EXEC_UPDATE_FAILURE)?;
                take_over(old, new);
                return Ok(());
            }
            (None, None) => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        match change.0 {
            Some(content) if content.node_type() == instance.content.node_type() => {
                instance.content = content;
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuGraphNodeSetEnabled`, and whether the node was enabled.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no such node there, or one of a type that is always enabled.
    pub fn enable_node(&mut self, handle: u64, node: u64, enable: Option<bool>) -> Result<bool> {
        let source = self.graphs.node(node)?.number;
        let executable = self.graphs.executable_mut(handle)?;
        let program = Arc::make_mut(&mut executable.program);
        let instance = program.find_mut(source).ok_or(Code::INVALID_VALUE)?;
        let can_be_off = [node_type::KERNEL, node_type::COPY, node_type::SET];
        if !can_be_off.contains(&instance.content.node_type()) {
            return Err(Code::INVALID_VALUE);
        }
        let was_enabled = instance.is_enabled;
        instance.is_enabled = enable.unwrap_or(was_enabled);
        Ok(was_enabled)
    }
}
