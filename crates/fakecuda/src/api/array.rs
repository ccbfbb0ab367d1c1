//! Arrays, and copies of one row to and from them.

use crate::abi::copy::{Array3DDescriptor, ArrayDescriptor};
use crate::driver;
use crate::entry::put;
use crate::exec::wait_context;
use crate::state::{Guard, lock};
use crate::status::{Code, Result};
use crate::transfer::shape::Extent;
use crate::transfer::side::Side;
use crate::transfer::{Copy, Mode, enqueue};

/// A row of an array, from an offset on.
fn array(array: u64, x_bytes: usize) -> Side {
    Side::Array {
        array,
        x_bytes,
        y: 0,
        z: 0,
    }
}

fn copy(from: Side, to: Side, bytes: usize, stream: u64, mode: Mode) -> Result {
    let mut guard = lock();
    let context = guard.current()?;
    let stream = guard.stream(stream)?;
    let copy = Copy::new(&guard, context, from, to, Extent::row(bytes))?;
    enqueue(guard, stream, copy, mode)
}

/// Makes an array, and gives it back if the handle cannot be told.
unsafe fn create(to: *mut u64, descriptor: Option<Array3DDescriptor>) -> Result {
    let descriptor = descriptor.ok_or(Code::INVALID_VALUE)?;
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut guard = lock();
    guard.refuse_in_capture()?;
    let handle = guard.create_array(descriptor)?;
    // SAFETY: the caller gave a place for it.
    unsafe { put(to, handle) }
}

/// Waits for the work that may use an array.
fn idle() -> Result<Guard> {
    let mut guard = lock();
    let context = guard.current()?;
    guard.refuse_in_capture()?;
    Ok(wait_context(guard, context))
}

driver! {
    fn cuArrayCreate_v2(handle: *mut u64, descriptor: *const ArrayDescriptor) {
        let given = descriptor.as_ref().copied();
        create(handle, given.map(|given| Array3DDescriptor {
            width: given.width,
            height: given.height,
            depth: 0,
            format: given.format,
            channels: given.channels,
            flags: 0,
        }))
    }
    fn cuArray3DCreate_v2(handle: *mut u64, descriptor: *const Array3DDescriptor) {
        create(handle, descriptor.as_ref().copied())
    }
    fn cuArrayGetDescriptor_v2(descriptor: *mut ArrayDescriptor, handle: u64) {
        let known = lock().array(handle)?.descriptor;
        put(descriptor, ArrayDescriptor {
            width: known.width,
            height: known.height,
            format: known.format,
            channels: known.channels,
        })
    }
    fn cuArray3DGetDescriptor_v2(descriptor: *mut Array3DDescriptor, handle: u64) {
        put(descriptor, lock().array(handle)?.descriptor)
    }
    fn cuArrayDestroy(handle: u64) {
        let mut guard = idle()?;
        guard.destroy_array(handle)
    }
    fn cuMipmappedArrayCreate(
        handle: *mut u64, descriptor: *const Array3DDescriptor, levels: u32,
    ) {
        let descriptor = descriptor.as_ref().copied().ok_or(Code::INVALID_VALUE)?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut guard = lock();
        guard.refuse_in_capture()?;
        put(handle, guard.create_mipmap(descriptor, levels)?)
    }
    fn cuMipmappedArrayGetLevel(level: *mut u64, handle: u64, number: u32) {
        put(level, lock().mipmap_level(handle, number)?)
    }
    fn cuMipmappedArrayDestroy(handle: u64) {
        let mut guard = idle()?;
        guard.destroy_mipmap(handle)
    }
    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds (to: u64, offset: usize, from: u64, bytes: usize) {
        copy(Side::host(from), array(to, offset), bytes, 0, Mode::Synchronous)
    }
    fn cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz (
        to: u64, offset: usize, from: u64, bytes: usize, stream: u64,
    ) {
        copy(Side::host(from), array(to, offset), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds (to: u64, from: u64, offset: usize, bytes: usize) {
        copy(array(from, offset), Side::host(to), bytes, 0, Mode::Synchronous)
    }
    fn cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz (
        to: u64, from: u64, offset: usize, bytes: usize, stream: u64,
    ) {
        copy(array(from, offset), Side::host(to), bytes, stream, Mode::Asynchronous)
    }
    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds (to: u64, offset: usize, from: u64, bytes: usize) {
        copy(Side::device(from), array(to, offset), bytes, 0, Mode::Synchronous)
    }
    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds (to: u64, from: u64, offset: usize, bytes: usize) {
        copy(array(from, offset), Side::device(to), bytes, 0, Mode::Synchronous)
    }
    fn cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds (
        to: u64, to_offset: usize, from: u64, from_offset: usize, bytes: usize,
    ) {
        copy(array(from, from_offset), array(to, to_offset), bytes, 0, Mode::Synchronous)
    }
}
