//! Copies of rows and slices.

use crate::abi::copy::{Copy2D, Copy3D};
use crate::driver;
use crate::exec::wait_context;
use crate::state::lock;
use crate::status::{Code, Result};
use crate::transfer::side::shaped;
use crate::transfer::{Copy, Mode, enqueue};

/// Makes a shaped copy on a stream of the current context.
fn copy(copy: &Copy3D, stream: u64, mode: Mode) -> Result {
    let mut guard = lock();
    let context = guard.current()?;
    let stream = guard.stream(stream)?;
    let (from, to, extent) = shaped(copy)?;
    let copy = Copy::new(&guard, context, from, to, extent)?;
    enqueue(guard, stream, copy, mode)
}

/// Makes a shaped copy between contexts. The synchronous form comes after all that was asked for in
/// both of them.
fn copy_peer(given: &Copy3D, stream: u64, mode: Mode) -> Result {
    let mut guard = lock();
    let current = guard.current()?;
    let stream = guard.stream(stream)?;
    let (from, to, extent) = shaped(given)?;
    let from = (guard.context_by_handle(given.source.context)?, from);
    let to = (guard.context_by_handle(given.destination.context)?, to);
    let copy = Copy::between(&guard, from, to, extent)?;
    if mode == Mode::Synchronous {
        guard.refuse_in_capture()?;
        for other in [from.0, to.0] {
            if other != current {
                guard = wait_context(guard, other);
            }
        }
    }
    enqueue(guard, stream, copy, mode)
}

/// Reads a structure that a program gave.
///
/// # Safety
/// It is null or may be read.
unsafe fn read<T: std::marker::Copy>(given: *const T) -> Result<T> {
    if given.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it. C callers may have aligned it to less.
    Ok(unsafe { given.read_unaligned() })
}

driver! {
    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds (given: *const Copy2D) {
        copy(&read(given)?.into(), 0, Mode::Synchronous)
    }
    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds (given: *const Copy2D) {
        copy(&read(given)?.into(), 0, Mode::Synchronous)
    }
    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz (given: *const Copy2D, stream: u64) {
        copy(&read(given)?.into(), stream, Mode::Asynchronous)
    }
    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds (given: *const Copy3D) {
        copy(&read(given)?, 0, Mode::Synchronous)
    }
    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz (given: *const Copy3D, stream: u64) {
        copy(&read(given)?, stream, Mode::Asynchronous)
    }
    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds (given: *const Copy3D) {
        copy_peer(&read(given)?, 0, Mode::Synchronous)
    }
    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz (given: *const Copy3D, stream: u64) {
        copy_peer(&read(given)?, stream, Mode::Asynchronous)
    }
}
