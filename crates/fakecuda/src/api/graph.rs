//! Graphs as a whole: made, copied, instantiated, launched.

use crate::driver;
use crate::entry::{put, put_if};
use crate::graph::{Mismatch, Refusal, flag};
use crate::state::{State, lock};
use crate::status::{Code, Result};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
struct Instantiation {
    flags: u64,
    upload_stream: u64,
    error_node: u64,
    result: u32,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
struct UpdateResult {
    result: u32,
    node: u64,
    from: u64,
}

/// Instantiates, and writes the handle.
unsafe fn instantiate(
    state: &mut State,
    executable: *mut u64,
    graph: u64,
    flags: u64,
) -> std::result::Result<u64, Refusal> {
    if executable.is_null() {
        return Err(Code::INVALID_VALUE.into());
    }
    let handle = state.graphs.instantiate(graph, flags)?;
    // SAFETY: the caller gives a place for a handle.
    unsafe { put(executable, handle)? };
    Ok(handle)
}

/// The forms that tell of an error by a node and a text.
unsafe fn instantiate_with_log(
    executable: *mut u64,
    graph: u64,
    node: *mut u64,
    log: *mut c_char,
    bytes: usize,
) -> Result {
    // SAFETY: as for `instantiate`.
    let outcome = unsafe { instantiate(&mut lock(), executable, graph, 0) };
    // SAFETY: the caller gives a place for a node and a buffer of `bytes`, or null.
    unsafe {
        put_if(
            node,
            outcome.as_ref().map_or_else(|refusal| refusal.node, |_| 0),
        );
        if !log.is_null() && bytes > 0 {
            log.write(0);
        }
    }
    outcome.map(drop).map_err(|refusal| refusal.code)
}

driver! {
    fn cuGraphCreate(graph: *mut u64, flags: u32) {
        if graph.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = lock().graphs.create_for_program();
        put(graph, handle)
    }

    fn cuGraphDestroy(graph: u64) {
        lock().destroy_graph(graph)
    }

    fn cuGraphClone(clone: *mut u64, graph: u64) {
        if clone.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let handle = lock().clone_graph(graph)?;
        put(clone, handle)
    }

    fn cuGraphInstantiate(
        executable: *mut u64,
        graph: u64,
        node: *mut u64,
        log: *mut c_char,
        bytes: usize,
    ) {
        instantiate_with_log(executable, graph, node, log, bytes)
    }

    fn cuGraphInstantiate_v2(
        executable: *mut u64,
        graph: u64,
        node: *mut u64,
        log: *mut c_char,
        bytes: usize,
    ) {
        instantiate_with_log(executable, graph, node, log, bytes)
    }

    fn cuGraphInstantiateWithFlags(executable: *mut u64, graph: u64, flags: u64) {
        if flags & flag::UPLOAD != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let outcome = instantiate(&mut lock(), executable, graph, flags);
        outcome.map(drop).map_err(|refusal| refusal.code)
    }

    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz (
        executable: *mut u64,
        graph: u64,
        parameters: *mut Instantiation,
    ) {
        if parameters.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let flags = (*parameters).flags;
        let outcome = instantiate(&mut state, executable, graph, flags);
        let refusal = outcome.as_ref().err();
        (*parameters).error_node = refusal.map_or(0, |refusal| refusal.node);
        (*parameters).result = refusal.map_or(0, |refusal| refusal.result);
        let handle = outcome.map_err(|refusal| refusal.code)?;
        if flags & flag::UPLOAD != 0 {
            let stream = state.stream((*parameters).upload_stream)?;
            state.upload_graph(handle, stream)?;
        }
        Ok(())
    }

    fn cuGraphUpload | cuGraphUpload_ptsz (executable: u64, stream: u64) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.upload_graph(executable, stream)
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz (executable: u64, stream: u64) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.launch_graph(executable, stream)
    }

    fn cuGraphExecDestroy(executable: u64) {
        lock().destroy_executable(executable)
    }

    fn cuGraphExecGetFlags(executable: u64, flags: *mut u64) {
        put(flags, lock().graphs.executable(executable)?.flags)
    }

    fn cuGraphExecUpdate(executable: u64, graph: u64, node: *mut u64, result: *mut u32) {
        let outcome = lock().update_executable(executable, graph);
        put_if(node, outcome.as_ref().map_or_else(|mismatch| mismatch.node, |()| 0));
        put_if(result, outcome.as_ref().map_or_else(|mismatch| mismatch.result, |()| 0));
        outcome.map_err(|_| Code::GRAPH_EXEC_UPDATE_FAILURE)
    }

    fn cuGraphExecUpdate_v2(executable: u64, graph: u64, told: *mut UpdateResult) {
        let outcome = lock().update_executable(executable, graph);
        let Mismatch { result, node, from } = outcome.err().unwrap_or_default();
        put_if(told, UpdateResult { result, node, from });
        outcome.map_err(|_| Code::GRAPH_EXEC_UPDATE_FAILURE)
    }

    fn cuGraphGetId(graph: u64, number: *mut u32) {
        put(number, lock().graphs.graph(graph)?.number as u32)
    }

    fn cuGraphExecGetId(executable: u64, number: *mut u32) {
        put(number, lock().graphs.executable(executable)?.number as u32)
    }

    fn cuGraphDebugDotPrint(graph: u64, path: *const c_char, _flags: u32) {
        if path.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let text = lock().graphs.dot(graph)?;
        let path = OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
        std::fs::write(path, text).map_err(|_| Code::OPERATING_SYSTEM)
    }
}
