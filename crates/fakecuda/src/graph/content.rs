//! From the structures in which programs describe nodes to what nodes do, and back.

use super::node::{Content, KernelParams, Params};
use crate::abi::copy::Copy3D;
use crate::abi::graph::{HostNodeV1, KernelNode, KernelNodeV1, SetNodeV1};
use crate::context::ContextId;
use crate::exec::Kind;
use crate::launch::Configuration;
use crate::module::Parameter;
use crate::state::State;
use crate::status::{Code, Result};
use crate::transfer::set::Set;
use std::sync::Arc;

/// A kernel node's structure, with parameters in known places.
///
/// # Safety
/// If there are pointers, there is one for each place, to as many bytes.
unsafe fn kernel_params(node: &KernelNode, places: &[Parameter]) -> Params {
    let sizes = places.iter().map(|place| place.bytes);
    // SAFETY: the caller promises it.
    Params::Kernel(Arc::new(unsafe { KernelParams::copy(node, sizes) }))
}

impl State {
    /// What a kernel node does. The parameters are copied.
    ///
    /// # Errors
    /// Those of a launch. `INVALID_CONTEXT`: the function is another context's.
    ///
    /// # Safety
    /// The parameters are given as for a launch.
    pub unsafe fn kernel_content(&self, node: &KernelNode) -> Result<Content> {
        let mut launch = node.v1;
        if launch.function == 0 {
            launch.function = node.kernel;
        }
        let named = self.named(launch.function)?;
        let asked = (node.context != 0).then(|| self.context_by_handle(node.context));
        let asked = asked.transpose()?;
        if asked.is_some() && named.context.is_some() && asked != named.context {
            return Err(Code::INVALID_CONTEXT);
        }
        let context = match named.context.or(asked) {
            Some(context) => context,
            None => self.current()?,
        };
        let configuration = Configuration {
            function: launch.function,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            stream: 0,
            parameters: launch.parameters,
            extra: launch.extra,
        };
        // SAFETY: the caller promises it.
        let work = unsafe { self.kernel_work(context, &configuration)? };
        let places = named.parameters.unwrap_or_default();
        Ok(Content::Work {
            kind: Kind::Kernel,
            work,
            // SAFETY: the launch was checked to have a pointer for each known parameter.
            params: Some(unsafe { kernel_params(node, &places) }),
            context: Some(context),
        })
    }

    /// What describes a launch that is captured.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function.
    ///
    /// # Safety
    /// The launch was checked, and its parameters are given as for a launch.
    pub unsafe fn launch_params(&self, launch: &Configuration) -> Result<Params> {
        let node = KernelNode {
            v1: KernelNodeV1 {
                function: launch.function,
                grid: launch.grid,
                block: launch.block,
                shared_bytes: launch.shared_bytes,
                parameters: launch.parameters,
                extra: launch.extra,
            },
            kernel: 0,
            context: 0,
        };
        let places = self.named(launch.function)?.parameters.unwrap_or_default();
        // SAFETY: the caller promises it.
        Ok(unsafe { kernel_params(&node, &places) })
    }

    /// What a copy node does.
    ///
    /// # Errors
    /// Those of the copy.
    pub fn copy_content(&self, context: ContextId, copy: &Copy3D) -> Result<Content> {
        Ok(Content::Work {
            kind: Kind::Copy,
            work: self.copy_work(context, copy)?,
            params: Some(Params::Copy(Box::new(*copy))),
            context: Some(context),
        })
    }

    /// What a set node does.
    ///
    /// # Errors
    /// Those of the set.
    pub fn set_content(&self, context: ContextId, node: &SetNodeV1) -> Result<Content> {
        let set = Set {
            address: node.address,
            pitch: node.pitch,
            value: node.value,
            element_bytes: node.element_bytes as usize,
            width: node.width,
            height: node.height,
        };
        if set.width == 0 || set.height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Content::Work {
            kind: Kind::Set,
            work: self.set_work(context, &set)?,
            params: Some(Params::Set(*node)),
            context: Some(context),
        })
    }

    /// What a host node does.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no function.
    pub fn host_content(&self, node: &HostNodeV1) -> Result<Content> {
        let function = node.function.ok_or(Code::INVALID_VALUE)?;
        let data = node.data;
        Ok(Content::Host { function, data })
    }

    /// Replaces what a node does by something of the same type.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such node, or it has another type.
    pub fn change_node(&mut self, node: u64, content: Content) -> Result {
        let node = self.graphs.node_mut(node)?;
        if node.content.node_type() != content.node_type() {
            return Err(Code::INVALID_VALUE);
        }
        node.content = content;
        Ok(())
    }

    /// The context of a node; the current one if it has none.
    pub fn node_context(&self, node: u64) -> Result<ContextId> {
        match self.graphs.node(node)?.content {
            Content::Work {
                context: Some(context),
                ..
            } => Ok(context),
            _ => self.current(),
        }
    }

    /// The handle of a node's context; 0 if it has none.
    pub fn content_context(&self, content: &Content) -> u64 {
        match content {
            Content::Work {
                context: Some(context),
                ..
            } => self.context(*context).map_or(0, |context| context.handle),
            _ => 0,
        }
    }
}
