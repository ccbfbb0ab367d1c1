//! What is launched: a snapshot of a graph.

use super::Graphs;
use super::node::{Content, Edge};
use super::user_object::Held;
use crate::environment::environment;
use crate::exec::{Point, Step, StreamId};
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `CUgraphInstantiate_flags`.
pub mod flag {
    pub const AUTO_FREE: u64 = 1;
    pub const UPLOAD: u64 = 2;
    pub const DEVICE_LAUNCH: u64 = 4;
    /// With the use of nodes' priorities, which changes nothing here.
    pub const ALL: u64 = 15;
}

/// A node of a snapshot.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The number of the node in the graph.
    pub source: u64,
    /// Its handle there, as long as it exists.
    pub handle: u64,
    pub content: Content,
    /// Indices of nodes that come before.
    pub dependencies: Vec<usize>,
    pub is_enabled: bool,
    /// What a child graph node consists of.
    pub child: Option<Program>,
}

/// All nodes of a graph, so that each comes after those on which it depends.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub nodes: Vec<Instance>,
}

/// Why a graph cannot be instantiated.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub code: Code,
    /// `CUgraphInstantiateResult`.
    pub result: u32,
    /// The node that is the reason; 0 if it is none.
    pub node: u64,
}

impl Refusal {
    const ERROR: u32 = 1;
    const INVALID_STRUCTURE: u32 = 2;
    const NOT_SUPPORTED: u32 = 3;

    fn new(result: u32, node: u64) -> Self {
        let code = Code::INVALID_VALUE;
        Self { code, result, node }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        let (result, node) = (Self::ERROR, 0);
        Self { code, result, node }
    }
}

/// An executable graph.
#[derive(Debug)]
pub struct Executable {
    /// Never given twice, other than its handle.
    pub number: u64,
    /// `CUgraphInstantiate_flags`.
    pub flags: u64,
    /// The handle and the number of the graph from which it was made.
    graph: (u64, u64),
    pub program: Arc<Program>,
    pub objects: Arc<Vec<Held>>,
    /// The end of the last launch.
    last: Option<Point>,
    /// Memory of the graph's allocation nodes.
    memory: Vec<u64>,
}

impl Program {
    /// Calls a function for each node, in the order of a launch, children in the place of their nodes.
    pub fn visit(&self, see: &mut impl FnMut(&Instance)) {
        for instance in &self.nodes {
            match &instance.child {
                Some(child) => child.visit(see),
                None => see(instance),
            }
        }
    }

    /// The node that was made from the node with a number.
    pub fn find_mut(&mut self, source: u64) -> Option<&mut Instance> {
        self.nodes.iter_mut().find_map(|instance| {
            if instance.source == source {
                return Some(instance);
            }
            instance.child.as_mut()?.find_mut(source)
        })
    }
}

impl Graphs {
    /// An executable graph by its handle.
    pub fn executable(&self, handle: u64) -> Result<&Executable> {
        self.executables.get(handle).ok_or(Code::INVALID_VALUE)
    }

    pub fn executable_mut(&mut self, handle: u64) -> Result<&mut Executable> {
        self.executables.get_mut(handle).ok_or(Code::INVALID_VALUE)
    }

    /// A snapshot of a graph.
    pub fn program(&self, graph: u64) -> std::result::Result<Program, Refusal> {
        let nodes = &self.graph(graph)?.nodes;
        let mut indices = BTreeMap::new();
        let mut program = Program::default();
        while program.nodes.len() < nodes.len() {
            let before = program.nodes.len();
            for &handle in nodes {
                let node = self.node(handle)?;
                let edges = node.dependencies.iter();
                let dependencies = edges.map(|edge| indices.get(&edge.from).copied());
                let Some(dependencies) = dependencies.collect::<Option<Vec<usize>>>() else {
                    continue;
                };
                if indices.contains_key(&handle) {
                    continue;
                }
                let child = match node.content {
                    Content::Child { graph } => Some(self.program(graph)?),
                    _ => None,
                };
                self.check_free(handle, &node.content)?;
                indices.insert(handle, program.nodes.len());
                program.nodes.push(Instance {
                    source: node.number,
                    handle,
                    content: node.content.clone(),
                    dependencies,
                    is_enabled: true,
                    child,
                });
            }
            if program.nodes.len() == before {
                let in_cycle = nodes.iter().find(|handle| !indices.contains_key(handle));
                let node = in_cycle.copied().unwrap_or(0);
                return Err(Refusal::new(Refusal::INVALID_STRUCTURE, node));
            }
        }
        Ok(program)
    }

    /// A node that frees what its own graph allocates has to come after that.
    fn check_free(&self, handle: u64, content: &Content) -> std::result::Result<(), Refusal> {
        let &Content::Free { address } = content else {
            return Ok(());
        };
        let graph = self.graph(self.node(handle)?.graph)?;
        let allocates = |&node: &u64| {
            let content = self.node(node).map(|node| &node.content);
            matches!(content, Ok(Content::Allocate { address: other }) if *other == address)
        };
        match graph.nodes.iter().copied().find(allocates) {
            Some(node) if !self.ancestors(&[handle]).contains(&node) => {
                Err(Refusal::new(Refusal::INVALID_STRUCTURE, handle))
            }
            _ => Ok(()),
        }
    }

    /// Only some kinds of nodes can be launched from a device, and there has to be one.
    fn check_device_launch(program: &Program) -> std::result::Result<(), Refusal> {
        let mut work = 0;
        let mut other = None;
        program.visit(&mut |instance| match instance.content {
            Content::Work { .. } => work += 1,
            _ => other = Some(instance.handle),
        });
        if other.is_some() || work == 0 {
            let node = other.unwrap_or(0);
            return Err(Refusal::new(Refusal::NOT_SUPPORTED, node));
        }
        Ok(())
    }

    /// `cuGraphInstantiateWithParams`, without the upload.
    pub fn instantiate(&mut self, graph: u64, flags: u64) -> std::result::Result<u64, Refusal> {
        let both = flag::AUTO_FREE | flag::DEVICE_LAUNCH;
        if flags & !flag::ALL != 0 || flags & both == both {
            return Err(Code::INVALID_VALUE.into());
        }
        let found = self.graph(graph)?;
        let (number, others) = (found.number, found.executables);
        if found.capture.is_some() || others > 0 && self.has_memory_nodes(graph)? {
            return Err(Code::INVALID_VALUE.into());
        }
        let program = self.program(graph)?;
        if flags & flag::DEVICE_LAUNCH != 0 {
            Self::check_device_launch(&program)?;
        }
        let mut memory = Vec::new();
        program.visit(&mut |instance| {
            if let Content::Allocate { address } = instance.content {
                memory.push(address);
            }
        });
        for &address in &memory {
            self.memory.hold(address);
        }
        let found = self.graph_mut(graph)?;
        found.executables += 1;
        let objects = Arc::new(found.objects.iter().map(Held::again).collect());
        let executable = Executable {
            number: self.number(),
            flags: flags & !flag::UPLOAD,
            graph: (graph, number),
            program: Arc::new(program),
            objects,
            last: None,
            memory,
        };
        Ok(self.executables.insert(executable))
    }
}

impl State {
    /// `cuGraphExecDestroy`. A launch in flight goes on, with the objects that it needs.
    pub fn destroy_executable(&mut self, handle: u64) -> Result {
        let executable = self.graphs.executables.remove(handle);
        let executable = executable.ok_or(Code::INVALID_VALUE)?;
        let (graph, number) = executable.graph;
        if let Ok(graph) = self.graphs.graph_mut(graph) {
            if graph.number == number {
                graph.executables -= 1;
            }
        }
        for address in executable.memory {
            self.let_go_graph_memory(address);
        }
        Ok(())
    }

    /// `cuGraphLaunch`: queues all nodes on a stream, or adds them as a child graph to what it captures.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such executable graph, it would allocate what was not freed, or free
    /// what was not allocated. Those of capture.
    pub fn launch_graph(&mut self, handle: u64, stream: StreamId) -> Result {
        let executable = self.graphs.executable(handle)?;
        let program = executable.program.clone();
        let (objects, last) = (executable.objects.clone(), executable.last);
        if self.capture_for_operation(stream)?.is_some() {
            return self.capture_launch(stream, &program);
        }
        self.launch_memory(handle, &program)?;
        let first = last.into_iter().collect();
        let mut end = self.exec.push(stream, Step::Nothing, first);
        let nodes = self.push_program(stream, &program)?;
        if !objects.is_empty() || nodes > 0 {
            end = self.exec.push(stream, Step::Keep(objects), Vec::new());
        }
        self.exec.note_length(stream, nodes);
        self.graphs.executable_mut(handle)?.last = Some(end);
        Ok(())
    }

    /// `cuGraphUpload`: an operation that comes after what was launched.
    pub fn upload_graph(&mut self, handle: u64, stream: StreamId) -> Result {
        let last = self.graphs.executable(handle)?.last;
        if self.capture_for_operation(stream)?.is_some() {
            self.invalidate_capture_of(stream);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        let after = last.into_iter().collect();
        self.exec.push(stream, Step::Nothing, after);
        Ok(())
    }

    /// Queues the nodes, and says how many operations that were.
    fn push_program(&mut self, stream: StreamId, program: &Program) -> Result<usize> {
        let mut pushed = 0;
        for index in self.launch_order(program) {
            let instance = &program.nodes[index];
            if let Some(child) = &instance.child {
                pushed += self.push_program(stream, child)?;
                continue;
            }
            pushed += 1;
            match instance.content {
                // An event that the program has destroyed is nothing to record or to wait for.
                Content::EventRecord { event } if self.exec.event(event).is_ok() => {
                    self.record_event_now(event, stream)?;
                }
                Content::EventWait { event } if self.exec.event(event).is_ok() => {
                    self.wait_event_now(stream, event)?;
                }
                ref content if instance.is_enabled => {
                    self.exec.enqueue(stream, content.step(), Vec::new());
                }
                _ => {}
            }
        }
        Ok(pushed)
    }

    /// The nodes of a program one after another. In the lazy mode nodes that do not depend on each
    /// other come in any order.
    fn launch_order(&mut self, program: &Program) -> Vec<usize> {
        let count = program.nodes.len();
        if !environment().lazy {
            return (0..count).collect();
        }
        let mut followers = vec![Vec::new(); count];
        for (index, node) in program.nodes.iter().enumerate() {
            for &before in &node.dependencies {
                followers[before].push(index);
            }
        }
        let missing = program.nodes.iter().map(|node| node.dependencies.len());
        let mut missing: Vec<usize> = missing.collect();
        let mut ready: Vec<usize> = (0..count).filter(|&index| missing[index] == 0).collect();
        let mut order = Vec::with_capacity(count);
        while !ready.is_empty() {
            let chosen = self.exec.below(ready.len() as u64) as usize;
            let chosen = ready.swap_remove(chosen);
            order.push(chosen);
            for &index in &followers[chosen] {
                missing[index] -= 1;
                if missing[index] == 0 {
                    ready.push(index);
                }
            }
        }
        order
    }

    /// What a launch does to the memory of graphs.
    fn launch_memory(&mut self, handle: u64, program: &Program) -> Result {
        let executable = self.graphs.executable(handle)?;
        let is_freed_first = executable.flags & flag::AUTO_FREE != 0;
        let (mut allocated, mut freed) = (Vec::new(), Vec::new());
        program.visit(&mut |instance| match instance.content {
            Content::Allocate { address } => allocated.push(address),
            Content::Free { address } => freed.push(address),
            _ => {}
        });
        let memory = &mut self.graphs.memory;
        let is_refused = allocated
            .iter()
            .any(|&at| memory.is_live(at) && !is_freed_first)
            || freed
                .iter()
                .any(|at| !allocated.contains(at) && !memory.is_live(*at));
        if is_refused {
            return Err(Code::INVALID_VALUE);
        }
        for &address in &allocated {
            memory.set_live(address, false);
            memory.set_live(address, true);
        }
        for &address in &freed {
            memory.set_live(address, false);
        }
        // What was freed may have been the last use of a graph that is gone.
        for address in freed {
            self.release_graph_memory(address);
        }
        Ok(())
    }

    /// A launch while the stream captures: a child graph node with the same nodes.
    fn capture_launch(&mut self, stream: StreamId, program: &Program) -> Result {
        let mut has_memory = false;
        program.visit(&mut |instance| has_memory |= instance.content.is_memory());
        if has_memory {
            self.invalidate_capture_of(stream);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        let graph = self.graph_of(program)?;
        self.capture_node(stream, Content::Child { graph })
            .map(drop)
    }

    /// A graph with the nodes of a program.
    fn graph_of(&mut self, program: &Program) -> Result<u64> {
        let graph = self.graphs.create_for_program();
        let mut handles = Vec::new();
        for instance in &program.nodes {
            let content = match &instance.child {
                Some(child) => Content::Child {
                    graph: self.graph_of(child)?,
                },
                None if instance.is_enabled => instance.content.clone(),
                None => Content::Empty,
            };
            let edges = instance.dependencies.iter();
            let edges = edges.map(|&index| Edge::plain(handles[index])).collect();
            handles.push(self.graphs.add_node(graph, content, edges)?);
        }
        Ok(graph)
    }
}
