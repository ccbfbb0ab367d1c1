//! Managed memory.

use super::memory::begin;
use crate::abi::memory::{MemLocation, location};
use crate::driver;
use crate::entry::put;
use crate::memory::{Advise, NO_DEVICE};
use crate::state::{Guard, State, lock};
use crate::status::{Code, Result};
use std::ffi::c_void;
use std::sync::Arc;

/// `CUmemAttach_flags`.
const ATTACH_GLOBAL: u32 = 1;
const ATTACH_HOST: u32 = 2;
const ATTACH_SINGLE: u32 = 4;

/// `CUmem_advise`: setting and unsetting are neighbours.
fn advice(state: &State, advice: u32, place: MemLocation) -> Result<Advise> {
    Ok(match advice {
        1 | 2 => Advise::ReadMostly(advice == 1),
        3 => Advise::Preferred(Some(state.managed_location(place)?)),
        4 => Advise::Preferred(None),
        5 | 6 => {
            let place = state.managed_location(place)?;
            if place.kind == location::HOST_NUMA {
                return Err(Code::INVALID_VALUE);
            }
            Advise::AccessedBy(MemLocation::as_device(Some(place)), advice == 5)
        }
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn advise(pointer: u64, bytes: usize, which: u32, place: MemLocation) -> Result {
    let mut state = lock();
    state.current()?;
    let advise = advice(&state, which, place)?;
    state.advise(pointer, bytes as u64, advise)
}

/// Nothing moves, but the stream has an operation as it would.
fn prefetch(pointer: u64, bytes: usize, place: MemLocation, stream: u64) -> Result {
    let mut state = lock();
    let stream = state.stream(stream)?;
    let place = state.managed_location(place)?;
    // Checked before the operation is queued, and noted only when it was.
    state.advice(pointer, bytes as u64)?;
    state.submit(stream, Arc::new(|| ()))?;
    state.advise(pointer, bytes as u64, Advise::Prefetched(place))
}

unsafe fn attribute(
    state: &mut Guard,
    (data, size): (*mut c_void, usize),
    attribute: u32,
    pointer: u64,
    bytes: usize,
) -> Result {
    let advice = state.advice(pointer, bytes as u64)?;
    const ACCESSED_BY: u32 = 3;
    if data.is_null() || size == 0 || size % 4 != 0 || (attribute != ACCESSED_BY && size != 4) {
        return Err(Code::INVALID_VALUE);
    }
    let kind = |place: Option<MemLocation>| place.map_or(location::NONE, |it| it.kind) as i32;
    let id = |place: Option<MemLocation>| place.map_or(NO_DEVICE, |it| it.id);
    let value = match attribute {
        1 => i32::from(advice.read_mostly),
        2 => MemLocation::as_device(advice.preferred),
        ACCESSED_BY => {
            for index in 0..size / 4 {
                let device = advice.accessed_by.get(index).copied().unwrap_or(NO_DEVICE);
                // SAFETY: the caller says how many bytes there are.
                unsafe { put(data.cast::<i32>().add(index), device) }?;
            }
            return Ok(());
        }
        4 => MemLocation::as_device(advice.prefetched),
        5 => kind(advice.preferred),
        6 => id(advice.preferred),
        7 => kind(advice.prefetched),
        8 => id(advice.prefetched),
        _ => return Err(Code::INVALID_VALUE),
    };
    // SAFETY: the caller says that there are four bytes.
    unsafe { put(data.cast::<i32>(), value) }
}

driver! {
    fn cuMemAllocManaged(pointer: *mut u64, bytes: usize, flags: u32) {
        let mut state = lock();
        state.current()?;
        if pointer.is_null() || bytes == 0 || !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(Code::INVALID_VALUE);
        }
        let context = begin(&mut state)?;
        put(pointer, state.allocate_managed(context, bytes as u64, flags)?)
    }

    fn cuMemAdvise(pointer: u64, bytes: usize, which: u32, device: i32) {
        advise(pointer, bytes, which, MemLocation::of_device(device))
    }

    fn cuMemAdvise_v2(pointer: u64, bytes: usize, which: u32, place: MemLocation) {
        advise(pointer, bytes, which, place)
    }

    fn cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz (pointer: u64, bytes: usize, device: i32, stream: u64) {
        prefetch(pointer, bytes, MemLocation::of_device(device), stream)
    }

    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz (pointer: u64, bytes: usize, place: MemLocation, flags: u32, stream: u64) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        prefetch(pointer, bytes, place, stream)
    }

    fn cuMemRangeGetAttribute(data: *mut c_void, size: usize, which: u32, pointer: u64, bytes: usize) {
        let mut state = lock();
        state.current()?;
        attribute(&mut state, (data, size), which, pointer, bytes)
    }

    fn cuMemRangeGetAttributes(data: *mut *mut c_void, sizes: *const usize, which: *const u32, count: usize, pointer: u64, bytes: usize) {
        let mut state = lock();
        state.current()?;
        if data.is_null() || sizes.is_null() || which.is_null() || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        for index in 0..count {
            let result = (*data.add(index), *sizes.add(index));
            attribute(&mut state, result, *which.add(index), pointer, bytes)?;
        }
        Ok(())
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz (handle: u64, pointer: u64, bytes: usize, flags: u32) {
        let mut state = lock();
        let stream = state.stream(handle)?;
        // The header's names for the default streams are 1 and 2.
        let is_null_stream = handle <= 2;
        match flags {
            ATTACH_GLOBAL | ATTACH_HOST => {}
            ATTACH_SINGLE if !is_null_stream => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        state.attach(pointer, bytes as u64, flags)?;
        state.submit(stream, Arc::new(|| ()))?;
        Ok(())
    }
}
