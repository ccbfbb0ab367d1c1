//! Stream capture.

use crate::driver;
use crate::entry::{put, put_if};
use crate::exec::StreamId;
use crate::graph::{CaptureInfo, CaptureStatus, Edge, EdgeData, mode};
use crate::state::{State, lock};
use crate::status::{Code, Result};
use crate::thread;

/// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`, the only flag.
const SET_DEPENDENCIES: u32 = 1;

/// Nodes that a program gave, with their data.
///
/// # Safety
/// Both are null or hold `count` entries.
pub unsafe fn edges(nodes: *const u64, data: *const EdgeData, count: usize) -> Result<Vec<Edge>> {
    if count > 0 && nodes.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let edge = |index: usize| {
        // SAFETY: the caller promises it.
        unsafe {
            let from = nodes.add(index).read_unaligned();
            let data = if data.is_null() {
                [0; 8]
            } else {
                *data.add(index)
            };
            Edge { from, data }
        }
    };
    Ok((0..count).map(edge).collect())
}

fn begin(stream: u64, mode: u32, into: Option<(u64, Vec<Edge>)>) -> Result {
    let mut state = lock();
    let stream = state.stream(stream)?;
    state.begin_capture(stream, mode, into)
}

/// What the forms of `cuStreamGetCaptureInfo` have in common.
unsafe fn info(
    state: &mut State,
    stream: u64,
    status: *mut u32,
    number: *mut u64,
) -> Result<Option<CaptureInfo>> {
    if status.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let stream = state.stream(stream)?;
    let found = state.capture_status(stream)?;
    // SAFETY: the caller gives places for both, or null.
    unsafe { put(status, found as u32)? };
    if found != CaptureStatus::Active {
        return Ok(None);
    }
    let info = state.capture_info(stream);
    if let Some(info) = &info {
        // SAFETY: as above.
        unsafe { put_if(number, info.number) };
    }
    Ok(info)
}

unsafe fn update(
    stream: u64,
    nodes: *const u64,
    data: *const EdgeData,
    count: usize,
    flags: u32,
) -> Result {
    if flags & !SET_DEPENDENCIES != 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let edges = unsafe { edges(nodes, data, count)? };
    let mut state = lock();
    let stream: StreamId = state.stream(stream)?;
    state.update_capture(stream, &edges, flags & SET_DEPENDENCIES != 0)
}

driver! {
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) {
        if mode.is_null() || mode.read_unaligned() > mode::RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        put(mode, thread::exchange_capture_mode(mode.read_unaligned()))
    }

    fn cuStreamBeginCapture | cuStreamBeginCapture_ptsz (stream: u64) {
        begin(stream, mode::GLOBAL, None)
    }

    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz (stream: u64, mode: u32) {
        begin(stream, mode, None)
    }

    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz (
        stream: u64,
        graph: u64,
        dependencies: *const u64,
        data: *const EdgeData,
        count: usize,
        mode: u32,
    ) {
        begin(stream, mode, Some((graph, edges(dependencies, data, count)?)))
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz (stream: u64, graph: *mut u64) {
        if graph.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let stream = state.stream(stream)?;
        let outcome = state.end_capture(stream);
        put(graph, outcome.unwrap_or(0))?;
        outcome.map(drop)
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz (stream: u64, status: *mut u32) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        put(status, state.capture_status(stream)? as u32)
    }

    fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz (
        stream: u64,
        status: *mut u32,
        number: *mut u64,
    ) {
        info(&mut lock(), stream, status, number).map(drop)
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz (
        stream: u64,
        status: *mut u32,
        number: *mut u64,
        graph: *mut u64,
        dependencies: *mut *const u64,
        count: *mut usize,
    ) {
        let mut state = lock();
        if let Some(info) = info(&mut state, stream, status, number)? {
            if info.has_data && !dependencies.is_null() {
                return Err(Code::LOSSY_QUERY);
            }
            put_if(graph, info.graph);
            put_if(dependencies, info.dependencies);
            put_if(count, info.count);
        }
        Ok(())
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz (
        stream: u64,
        status: *mut u32,
        number: *mut u64,
        graph: *mut u64,
        dependencies: *mut *const u64,
        data: *mut *const EdgeData,
        count: *mut usize,
    ) {
        if !data.is_null() && dependencies.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        if let Some(info) = info(&mut state, stream, status, number)? {
            if info.has_data && !dependencies.is_null() && data.is_null() {
                return Err(Code::LOSSY_QUERY);
            }
            put_if(graph, info.graph);
            put_if(dependencies, info.dependencies);
            put_if(data, info.data);
            put_if(count, info.count);
        }
        Ok(())
    }

    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz (
        stream: u64,
        dependencies: *mut u64,
        count: usize,
        flags: u32,
    ) {
        update(stream, dependencies, std::ptr::null(), count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz (
        stream: u64,
        dependencies: *mut u64,
        data: *const EdgeData,
        count: usize,
        flags: u32,
    ) {
        update(stream, dependencies, data, count, flags)
    }
}
