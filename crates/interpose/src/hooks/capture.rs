//! The beginnings and ends of captures of streams.

use super::ordered::own;
use crate::abi::{Handle, SUCCESS};
use crate::pool::ends;
use crate::real::call;
use luma::backend::streams::Stream;
use std::ffi::{c_int, c_void};

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`: the capture was broken before, and has ended.
const INVALIDATED: c_int = 901;
/// `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`: it has ended without a graph.
const UNJOINED: c_int = 904;

/// Begins a capture.
fn begins(stream: Stream, driver: impl FnOnce() -> c_int) -> c_int {
    ends::capture_begins(stream);
    let code = driver();
    if code != SUCCESS {
        ends::capture_ended(stream);
    }
    code
}

/// Ends a capture.
fn ended(stream: Stream, driver: impl FnOnce() -> c_int) -> c_int {
    let code = driver();
    if matches!(code, SUCCESS | INVALIDATED | UNJOINED) {
        ends::capture_ended(stream);
    }
    code
}

/// Begins a capture, before 10.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCapture(stream: Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(Stream::of(stream), || unsafe {
        call!(cuStreamBeginCapture(stream))
    })
}

/// Begins a capture, before 10.1, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCapture_ptsz(stream: Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(own(stream), || unsafe {
        call!(cuStreamBeginCapture_ptsz(stream))
    })
}

/// Begins a capture.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Handle, mode: c_int) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(Stream::of(stream), || unsafe {
        call!(cuStreamBeginCapture_v2(stream, mode))
    })
}

/// Begins a capture, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: c_int) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(own(stream), || unsafe {
        call!(cuStreamBeginCapture_v2_ptsz(stream, mode))
    })
}

/// Begins a capture into a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCaptureToGraph(
    stream: Handle,
    graph: Handle,
    nodes: *const Handle,
    edges: *const c_void,
    count: usize,
    mode: c_int,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(Stream::of(stream), || unsafe {
        call!(cuStreamBeginCaptureToGraph(
            stream, graph, nodes, edges, count, mode
        ))
    })
}

/// Begins a capture into a graph, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCaptureToGraph_ptsz(
    stream: Handle,
    graph: Handle,
    nodes: *const Handle,
    edges: *const c_void,
    count: usize,
    mode: c_int,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(own(stream), || unsafe {
        call!(cuStreamBeginCaptureToGraph_ptsz(
            stream, graph, nodes, edges, count, mode
        ))
    })
}

/// Begins a capture into a graphics context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCaptureToCig(
    stream: Handle,
    parameters: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(Stream::of(stream), || unsafe {
        call!(cuStreamBeginCaptureToCig(stream, parameters))
    })
}

/// Begins a capture into a graphics context, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCaptureToCig_ptsz(
    stream: Handle,
    parameters: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    begins(own(stream), || unsafe {
        call!(cuStreamBeginCaptureToCig_ptsz(stream, parameters))
    })
}

/// Ends a capture.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    ended(Stream::of(stream), || unsafe {
        call!(cuStreamEndCapture(stream, graph))
    })
}

/// Ends a capture, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture_ptsz(stream: Handle, graph: *mut Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    ended(own(stream), || unsafe {
        call!(cuStreamEndCapture_ptsz(stream, graph))
    })
}

/// Ends a capture into a graphics context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCaptureToCig(stream: Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    ended(Stream::of(stream), || unsafe {
        call!(cuStreamEndCaptureToCig(stream))
    })
}

/// Ends a capture into a graphics context, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCaptureToCig_ptsz(stream: Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    ended(own(stream), || unsafe {
        call!(cuStreamEndCaptureToCig_ptsz(stream))
    })
}
