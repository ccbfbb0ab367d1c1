//! Primary contexts: one a device, counted.

use crate::api::context::{check_flags, destroy};
use crate::driver;
use crate::entry::put;
use crate::state::lock;
use crate::status::{Code, Result};

/// Sets the flags of the primary context, which is or will be.
fn set_flags(device: i32, flags: u32) -> Result {
    check_flags(flags)?;
    let mut state = lock();
    let device = state.device(device)?;
    state.devices[device].primary_flags = flags;
    if let Some(id) = state.devices[device].primary {
        state.context_mut(id)?.flags = flags;
    }
    Ok(())
}

fn release(device: i32) -> Result {
    let (device, unused) = {
        let mut state = lock();
        let number = state.device(device)?;
        let device = &mut state.devices[number];
        device.retained = device
            .retained
            .checked_sub(1)
            .ok_or(Code::INVALID_CONTEXT)?;
        (number, device.primary.filter(|_| device.retained == 0))
    };
    if let Some(id) = unused {
        // Another thread may retain it while its work comes to an end.
        destroy(id, |state| state.devices[device].retained > 0);
    }
    Ok(())
}

/// It stays retained as often as it was.
fn reset(device: i32) -> Result {
    let active = {
        let state = lock();
        let device = state.device(device)?;
        state.devices[device].primary
    };
    if let Some(id) = active {
        destroy(id, |_| false);
    }
    Ok(())
}

driver! {
    fn cuDevicePrimaryCtxRetain(context: *mut u64, device: i32) {
        if context.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let device = state.device(device)?;
        let id = state.primary_context(device);
        state.devices[device].retained += 1;
        put(context, state.context(id)?.handle)
    }

    fn cuDevicePrimaryCtxRelease(device: i32) {
        release(device)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        release(device)
    }

    fn cuDevicePrimaryCtxReset(device: i32) {
        reset(device)
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        reset(device)
    }

    // Until version 11 the flags of an active context could not be set.
    fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) {
        {
            let state = lock();
            let device = state.device(device)?;
            if state.devices[device].primary.is_some() {
                return Err(Code::PRIMARY_CONTEXT_ACTIVE);
            }
        }
        set_flags(device, flags)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) {
        set_flags(device, flags)
    }

    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) {
        let state = lock();
        let device = state.device(device)?;
        let device = &state.devices[device];
        put(flags, device.primary_flags)?;
        put(active, i32::from(device.primary.is_some()))
    }
}
