//! Device memory.

use crate::context::ContextId;
use crate::driver;
use crate::entry::{put, put_if};
use crate::exec;
use crate::memory::PITCH;
use crate::state::{State, lock};
use crate::status::{Code, Result};

/// What a call that makes or frees memory needs: a context, and no capture that it would break.
pub fn begin(state: &mut State) -> Result<ContextId> {
    let context = state.current()?;
    state.refuse_in_capture()?;
    Ok(context)
}

driver! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let state = lock();
        let device = &state.devices[state.current_device()?];
        if free.is_null() || total.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(free, device.capacity.saturating_sub(device.used) as usize)?;
        put(total, device.capacity as usize)
    }

    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) {
        let mut state = lock();
        state.current()?;
        if pointer.is_null() || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = begin(&mut state)?;
        put(pointer, state.allocate_device(context, bytes as u64)?)
    }

    fn cuMemAllocPitch_v2(pointer: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) {
        let mut state = lock();
        state.current()?;
        if pointer.is_null() || pitch.is_null() || width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let context = begin(&mut state)?;
        let row = (width as u64).checked_next_multiple_of(PITCH);
        let bytes = row.and_then(|row| Some((row, row.checked_mul(height as u64)?)));
        let (row, bytes) = bytes.ok_or(Code::OUT_OF_MEMORY)?;
        let start = state.allocate_device(context, bytes)?;
        put(pitch, row as usize)?;
        put(pointer, start)
    }

    fn cuMemFree_v2(pointer: u64) {
        let mut state = lock();
        state.current()?;
        if pointer == 0 {
            return Ok(());
        }
        if let Some(freed) = state.free_graph_memory(pointer) {
            return freed;
        }
        let Some(id) = state.freeable(pointer) else {
            return Err(Code::INVALID_VALUE);
        };
        begin(&mut state)?;
        // Pools' memory is not waited for: that is the program's part.
        if let Some(device) = state.free_waits_for(pointer) {
            state = exec::wait_device(state, device);
        }
        if state.freeable(pointer) != Some(id) {
            return Err(Code::INVALID_VALUE);
        }
        state.free(pointer)
    }

    fn cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, pointer: u64) {
        let state = lock();
        state.current()?;
        let (start, bytes) = state.address_range(pointer).ok_or(Code::NOT_FOUND)?;
        put_if(base, start);
        put_if(size, bytes as usize);
        Ok(())
    }
}
