//! Copies of one row.

use crate::driver;
use crate::exec::wait_context;
use crate::state::lock;
use crate::status::Result;
use crate::transfer::shape::Extent;
use crate::transfer::side::Side;
use crate::transfer::{Copy, Mode, enqueue};

/// Makes a copy on a stream of the current context.
fn copy(from: Side, to: Side, bytes: usize, stream: u64, mode: Mode) -> Result {
    let mut guard = lock();
    let context = guard.current()?;
    let stream = guard.stream(stream)?;
    let copy = Copy::new(&guard, context, from, to, Extent::row(bytes))?;
    enqueue(guard, stream, copy, mode)
}

/// A copy on the null stream.
fn copy_now(from: Side, to: Side, bytes: usize) -> Result {
    copy(from, to, bytes, 0, Mode::Synchronous)
}

/// A copy between contexts. The synchronous form comes after all that was asked for in both of them.
fn copy_peer(
    (to, to_context): (u64, u64),
    (from, from_context): (u64, u64),
    bytes: usize,
    stream: u64,
    mode: Mode,
) -> Result {
    let mut guard = lock();
    let context = guard.current()?;
    let stream = guard.stream(stream)?;
    let from = (guard.context_by_handle(from_context)?, Side::device(from));
    let to = (guard.context_by_handle(to_context)?, Side::device(to));
    let copy = Copy::between(&guard, from, to, Extent::row(bytes))?;
    if mode == Mode::Synchronous {
        guard.refuse_in_capture()?;
        for other in [from.0, to.0] {
            if other != context {
                guard = wait_context(guard, other);
            }
        }
    }
    enqueue(guard, stream, copy, mode)
}

driver! {
    fn cuMemcpy | cuMemcpy_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(Side::unified(from), Side::unified(to), bytes)
    }
    fn cuMemcpyAsync | cuMemcpyAsync_ptsz (to: u64, from: u64, bytes: usize, stream: u64) {
        copy(Side::unified(from), Side::unified(to), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(Side::host(from), Side::device(to), bytes)
    }
    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: u64,
    ) {
        copy(Side::host(from), Side::device(to), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(Side::device(from), Side::host(to), bytes)
    }
    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: u64,
    ) {
        copy(Side::device(from), Side::host(to), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(Side::device(from), Side::device(to), bytes)
    }
    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: u64,
    ) {
        copy(Side::device(from), Side::device(to), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyPeer | cuMemcpyPeer_ptds (
        to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize,
    ) {
        copy_peer((to, to_context), (from, from_context), bytes, 0, Mode::Synchronous)
    }
    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz (
        to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64,
    ) {
        copy_peer((to, to_context), (from, from_context), bytes, stream, Mode::Asynchronous)
    }
}
