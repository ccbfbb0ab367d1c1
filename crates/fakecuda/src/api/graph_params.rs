//! Nodes of one type: described, and changed in a graph or an executable graph.

use super::graph_node::{describe, newer, read};
use crate::abi::copy::Copy3D;
use crate::abi::graph::{HostNodeV1, KernelNode, KernelNodeV1, NodeUnion, SetNodeV1};
use crate::driver;
use crate::entry::put;
use crate::graph::{Change, Content, node_type};
use crate::state::lock;
use crate::status::{Code, Result};

/// The description of a node that has to be of a type.
fn describe_as(node: u64, expected: u32) -> Result<NodeUnion> {
    let described = describe(&lock(), node)?;
    if described.node_type != expected {
        return Err(Code::INVALID_VALUE);
    }
    Ok(described.of)
}

/// A value of an attribute of kernel nodes.
type Attribute = [u8; 64];

driver! {
    fn cuGraphKernelNodeGetParams(node: u64, parameters: *mut KernelNodeV1) {
        put(parameters, describe_as(node, node_type::KERNEL)?.kernel.v1)
    }

    fn cuGraphKernelNodeGetParams_v2(node: u64, parameters: *mut KernelNode) {
        put(parameters, describe_as(node, node_type::KERNEL)?.kernel)
    }

    fn cuGraphKernelNodeSetParams(node: u64, parameters: *const KernelNodeV1) {
        let mut state = lock();
        let content = state.kernel_content(&newer(read(parameters)?))?;
        state.change_node(node, content)
    }

    fn cuGraphKernelNodeSetParams_v2(node: u64, parameters: *const KernelNode) {
        let mut state = lock();
        let content = state.kernel_content(&read(parameters)?)?;
        state.change_node(node, content)
    }

    fn cuGraphExecKernelNodeSetParams(
        executable: u64,
        node: u64,
        parameters: *const KernelNodeV1,
    ) {
        let mut state = lock();
        let content = state.kernel_content(&newer(read(parameters)?))?;
        state.change_executable(executable, node, Change::To(content))
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        executable: u64,
        node: u64,
        parameters: *const KernelNode,
    ) {
        let mut state = lock();
        let content = state.kernel_content(&read(parameters)?)?;
        state.change_executable(executable, node, Change::To(content))
    }

    fn cuGraphMemcpyNodeGetParams(node: u64, parameters: *mut Copy3D) {
        put(parameters, describe_as(node, node_type::COPY)?.copy.copy)
    }

    fn cuGraphMemcpyNodeSetParams(node: u64, parameters: *const Copy3D) {
        let mut state = lock();
        let context = state.node_context(node)?;
        let content = state.copy_content(context, &read(parameters)?)?;
        state.change_node(node, content)
    }

    fn cuGraphExecMemcpyNodeSetParams(
        executable: u64,
        node: u64,
        parameters: *const Copy3D,
        context: u64,
    ) {
        let mut state = lock();
        let context = state.context_or_current(context)?;
        let content = state.copy_content(context, &read(parameters)?)?;
        state.change_executable(executable, node, Change::To(content))
    }

    fn cuGraphMemsetNodeGetParams(node: u64, parameters: *mut SetNodeV1) {
        put(parameters, describe_as(node, node_type::SET)?.set.v1)
    }

    fn cuGraphMemsetNodeSetParams(node: u64, parameters: *const SetNodeV1) {
        let mut state = lock();
        let context = state.node_context(node)?;
        let content = state.set_content(context, &read(parameters)?)?;
        state.change_node(node, content)
    }

    fn cuGraphExecMemsetNodeSetParams(
        executable: u64,
        node: u64,
        parameters: *const SetNodeV1,
        context: u64,
    ) {
        let mut state = lock();
        let context = state.context_or_current(context)?;
        let content = state.set_content(context, &read(parameters)?)?;
        state.change_executable(executable, node, Change::To(content))
    }

    fn cuGraphHostNodeGetParams(node: u64, parameters: *mut HostNodeV1) {
        put(parameters, describe_as(node, node_type::HOST)?.host.v1)
    }

    fn cuGraphHostNodeSetParams(node: u64, parameters: *const HostNodeV1) {
        let mut state = lock();
        let content = state.host_content(&read(parameters)?)?;
        state.change_node(node, content)
    }

    fn cuGraphExecHostNodeSetParams(executable: u64, node: u64, parameters: *const HostNodeV1) {
        let mut state = lock();
        let content = state.host_content(&read(parameters)?)?;
        state.change_executable(executable, node, Change::To(content))
    }

    fn cuGraphChildGraphNodeGetGraph(node: u64, graph: *mut u64) {
        put(graph, describe_as(node, node_type::GRAPH)?.child.graph)
    }

    fn cuGraphExecChildGraphNodeSetParams(executable: u64, node: u64, child: u64) {
        lock().change_executable(executable, node, Change::Child { graph: child })
    }

    fn cuGraphEventRecordNodeGetEvent(node: u64, event: *mut u64) {
        put(event, describe_as(node, node_type::EVENT_RECORD)?.event.event)
    }

    fn cuGraphEventRecordNodeSetEvent(node: u64, event: u64) {
        let mut state = lock();
        state.exec.event(event)?;
        state.change_node(node, Content::EventRecord { event })
    }

    fn cuGraphExecEventRecordNodeSetEvent(executable: u64, node: u64, event: u64) {
        let mut state = lock();
        state.exec.event(event)?;
        state.change_executable(executable, node, Change::To(Content::EventRecord { event }))
    }

    fn cuGraphEventWaitNodeGetEvent(node: u64, event: *mut u64) {
        put(event, describe_as(node, node_type::WAIT_EVENT)?.event.event)
    }

    fn cuGraphEventWaitNodeSetEvent(node: u64, event: u64) {
        let mut state = lock();
        state.exec.event(event)?;
        state.change_node(node, Content::EventWait { event })
    }

    fn cuGraphExecEventWaitNodeSetEvent(executable: u64, node: u64, event: u64) {
        let mut state = lock();
        state.exec.event(event)?;
        state.change_executable(executable, node, Change::To(Content::EventWait { event }))
    }

    fn cuGraphNodeSetEnabled(executable: u64, node: u64, enabled: u32) {
        lock().enable_node(executable, node, Some(enabled != 0)).map(drop)
    }

    fn cuGraphNodeGetEnabled(executable: u64, node: u64, enabled: *mut u32) {
        let is_enabled = lock().enable_node(executable, node, None)?;
        put(enabled, u32::from(is_enabled))
    }

    fn cuGraphKernelNodeGetAttribute(node: u64, number: u32, value: *mut Attribute) {
        let state = lock();
        let node = state.graphs.node(node)?;
        if node.content.node_type() != node_type::KERNEL {
            return Err(Code::INVALID_VALUE);
        }
        put(value, node.attributes.get(&number).copied().unwrap_or([0; 64]))
    }

    fn cuGraphKernelNodeSetAttribute(node: u64, number: u32, value: *const Attribute) {
        let value = read(value)?;
        let mut state = lock();
        let node = state.graphs.node_mut(node)?;
        if node.content.node_type() != node_type::KERNEL {
            return Err(Code::INVALID_VALUE);
        }
        node.attributes.insert(number, value);
        Ok(())
    }

    fn cuGraphKernelNodeCopyAttributes(to: u64, from: u64) {
        let mut state = lock();
        let node = state.graphs.node(from)?;
        let is_kernel = node.content.node_type() == node_type::KERNEL;
        let attributes = node.attributes.clone();
        let node = state.graphs.node_mut(to)?;
        if !is_kernel || node.content.node_type() != node_type::KERNEL {
            return Err(Code::INVALID_VALUE);
        }
        node.attributes = attributes;
        Ok(())
    }
}
