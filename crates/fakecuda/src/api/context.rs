//! Contexts: made, destroyed, current, and their settings.

use crate::abi::device::{ContextParameters, ExecAffinity};
use crate::attribute;
use crate::context::ContextId;
use crate::driver;
use crate::entry::{put, put_if};
use crate::exec;
use crate::state::{State, lock};
use crate::status::{Code, Result};
use crate::thread::{self, Current};
use std::ffi::c_void;
use std::ptr;

/// `CU_CTX_SCHED_MASK`, `CU_CTX_FLAGS_MASK`.
const SCHEDULING: u32 = 0x07;
const FLAGS: u32 = 0xff;

/// The interface of contexts has been the same since then.
const API_VERSION: u32 = 3020;

/// `CUfunc_cache`, `CUsharedconfig`: the greatest values, and four-byte banks.
const LAST_CACHE_CONFIG: u32 = 3;
const LAST_BANK_SIZE: u32 = 2;
const FOUR_BYTE_BANKS: u32 = 1;

/// `CUlimit`.
mod limit {
    pub const STACK_SIZE: u32 = 0;
    pub const PRINTF_FIFO_SIZE: u32 = 1;
    pub const MALLOC_HEAP_SIZE: u32 = 2;
    pub const SYNC_DEPTH: u32 = 3;
    pub const PENDING_LAUNCH_COUNT: u32 = 4;
    pub const L2_FETCH_GRANULARITY: u32 = 5;
    pub const PERSISTING_L2_CACHE_SIZE: u32 = 6;
    pub const SHARED_MEMORY_SIZE: u32 = 7;
    pub const GRAPHICS_ENABLED: u32 = 8;
    pub const GRAPHICS_FALLBACK: u32 = 9;
    pub const PER_BLOCK_MEMORY_SIZE: u32 = 10;
}

/// Attributes that limits depend on.
const MULTIPROCESSORS: u32 = 16;
const CAPABILITY_MAJOR: u32 = 75;
const MAX_PERSISTING_L2_CACHE: u32 = 108;

/// Flags of contexts: at most one way to wait, and nothing that does not exist.
pub fn check_flags(flags: u32) -> Result {
    let scheduling = flags & SCHEDULING;
    if flags & !FLAGS != 0 || scheduling.count_ones() > 1 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Makes a context and pushes it.
///
/// # Safety
/// `to` is null or may be written to.
unsafe fn create(to: *mut u64, flags: u32, device: i32) -> Result {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    check_flags(flags)?;
    let mut state = lock();
    let device = state.device(device)?;
    let id = state.create_context(device, flags, false);
    let current = state.as_current(id)?;
    thread::with_contexts(|contexts| contexts.push(current));
    // SAFETY: the caller promises it.
    unsafe { put(to, current.handle) }
}

/// Ends a context after its work, unless `is_wanted` says then that it should stay after all.
pub fn destroy(id: ContextId, is_wanted: impl FnOnce(&State) -> bool) {
    let mut state = exec::wait_context(lock(), id);
    if !is_wanted(&state) {
        state.destroy_context(id);
    }
}

/// Ends a context that is not a primary one, and takes it from the calling thread if it is current
/// there. From the stacks of other threads nobody takes it away.
fn destroy_current(id: ContextId) -> Result {
    if lock().context(id)?.is_primary {
        return Err(Code::INVALID_CONTEXT);
    }
    destroy(id, |_| false);
    thread::with_contexts(|contexts| {
        if contexts.last().is_some_and(|top| top.context == id) {
            contexts.pop();
        }
    });
    Ok(())
}

fn push(handle: u64) -> Result {
    let state = lock();
    let current = state.as_current(state.context_by_handle(handle)?)?;
    thread::with_contexts(|contexts| contexts.push(current));
    Ok(())
}

/// Takes the current context away and gives it, destroyed or not.
///
/// # Safety
/// `to` is null or may be written to.
unsafe fn pop(to: *mut u64) -> Result {
    let top = thread::with_contexts(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
    // SAFETY: the caller promises it.
    unsafe { put_if(to, top.handle) };
    Ok(())
}

/// What a limit is before it was set; `None`: there is no such limit here.
fn default_limit(which: u32, device: usize) -> Option<usize> {
    Some(match which {
        limit::STACK_SIZE => 1 << 10,
        limit::PRINTF_FIFO_SIZE => 1 << 20,
        limit::MALLOC_HEAP_SIZE => 8 << 20,
        // From 9.0 on devices do not have it.
        limit::SYNC_DEPTH if attribute::known(CAPABILITY_MAJOR, device) < 9 => 2,
        limit::PENDING_LAUNCH_COUNT => 2048,
        limit::L2_FETCH_GRANULARITY => 64,
        limit::PERSISTING_L2_CACHE_SIZE
        | limit::SHARED_MEMORY_SIZE
        | limit::GRAPHICS_ENABLED
        | limit::GRAPHICS_FALLBACK
        | limit::PER_BLOCK_MEMORY_SIZE => 0,
        _ => return None,
    })
}

/// What becomes of a limit that is asked for: hints are clamped.
fn settle_limit(which: u32, value: usize, device: usize) -> Result<usize> {
    default_limit(which, device).ok_or(Code::UNSUPPORTED_LIMIT)?;
    match which {
        limit::SHARED_MEMORY_SIZE | limit::GRAPHICS_ENABLED => Err(Code::UNSUPPORTED_LIMIT),
        // The greatest depth that there was.
        limit::SYNC_DEPTH if value > 24 => Err(Code::INVALID_VALUE),
        limit::L2_FETCH_GRANULARITY => Ok(value.min(128)),
        limit::PERSISTING_L2_CACHE_SIZE => {
            Ok(value.min(attribute::known(MAX_PERSISTING_L2_CACHE, device) as usize))
        }
        _ => Ok(value),
    }
}

driver! {
    // Contexts of the first form had addresses of 32 bits only; programs that look the bare name up
    // by themselves want the next form, which takes the same.
    fn cuCtxCreate(context: *mut u64, flags: u32, device: i32) {
        create(context, flags, device)
    }

    fn cuCtxCreate_v2(context: *mut u64, flags: u32, device: i32) {
        create(context, flags, device)
    }

    fn cuCtxCreate_v3(context: *mut u64, affinities: *const c_void, count: i32, flags: u32, device: i32) {
        if !affinities.is_null() || count != 0 {
            return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(context, flags, device)
    }

    fn cuCtxCreate_v4(context: *mut u64, parameters: *const ContextParameters, flags: u32, device: i32) {
        if !parameters.is_null() {
            let parameters = ptr::read_unaligned(parameters);
            if !parameters.affinities.is_null() || parameters.affinity_count != 0 {
                return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !parameters.graphics.is_null() {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        create(context, flags, device)
    }

    fn cuCtxDestroy(context: u64) {
        let id = lock().context_by_handle(context)?;
        destroy_current(id)
    }

    fn cuCtxDestroy_v2(context: u64) {
        let id = lock().context_by_handle(context)?;
        destroy_current(id)
    }

    // How a context was shared before contexts could be current to several threads.
    fn cuCtxAttach(context: *mut u64, flags: u32) {
        if context.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let id = state.current()?;
        let attached = state.context_mut(id)?;
        attached.uses += 1;
        put(context, attached.handle)
    }

    fn cuCtxDetach(context: u64) {
        let id = {
            let mut state = lock();
            let id = state.context_by_handle(context)?;
            if state.current()? != id {
                return Err(Code::INVALID_CONTEXT);
            }
            let detached = state.context_mut(id)?;
            if detached.uses > 1 {
                detached.uses -= 1;
                return Ok(());
            }
            id
        };
        destroy_current(id)
    }

    fn cuCtxPushCurrent(context: u64) {
        push(context)
    }

    fn cuCtxPushCurrent_v2(context: u64) {
        push(context)
    }

    fn cuCtxPopCurrent(context: *mut u64) {
        pop(context)
    }

    fn cuCtxPopCurrent_v2(context: *mut u64) {
        pop(context)
    }

    fn cuCtxSetCurrent(context: u64) {
        if context == 0 {
            thread::with_contexts(Vec::pop);
            return Ok(());
        }
        let state = lock();
        let current = state.as_current(state.context_by_handle(context)?)?;
        thread::with_contexts(|contexts| {
            contexts.pop();
            contexts.push(current);
        });
        Ok(())
    }

    fn cuCtxGetCurrent(context: *mut u64) {
        put(context, thread::top().map_or(0, |current: Current| current.handle))
    }

    fn cuCtxGetDevice(device: *mut i32) {
        put(device, lock().current_device()? as i32)
    }

    fn cuCtxGetDevice_v2(device: *mut i32, context: u64) {
        let state = lock();
        let id = state.context_or_current(context)?;
        put(device, state.context(id)?.device as i32)
    }

    fn cuCtxGetId(context: u64, id: *mut u64) {
        put(id, lock().context_or_current(context)?.0)
    }

    fn cuCtxGetApiVersion(context: u64, version: *mut u32) {
        lock().context_or_current(context)?;
        put(version, API_VERSION)
    }

    fn cuCtxGetFlags(flags: *mut u32) {
        let state = lock();
        put(flags, state.context(state.current()?)?.flags)
    }

    fn cuCtxSetFlags(flags: u32) {
        check_flags(flags)?;
        let mut state = lock();
        let id = state.current()?;
        state.context_mut(id)?.flags = flags;
        Ok(())
    }

    fn cuCtxGetLimit(value: *mut usize, which: u32) {
        let state = lock();
        let context = state.context(state.current()?)?;
        let initial = default_limit(which, context.device).ok_or(Code::UNSUPPORTED_LIMIT)?;
        put(value, context.limits.get(&which).copied().unwrap_or(initial))
    }

    fn cuCtxSetLimit(which: u32, value: usize) {
        let mut state = lock();
        let id = state.current()?;
        let context = state.context_mut(id)?;
        let value = settle_limit(which, value, context.device)?;
        context.limits.insert(which, value);
        Ok(())
    }

    fn cuCtxGetCacheConfig(config: *mut u32) {
        let state = lock();
        put(config, state.context(state.current()?)?.cache_config)
    }

    fn cuCtxSetCacheConfig(config: u32) {
        let mut state = lock();
        let id = state.current()?;
        if config > LAST_CACHE_CONFIG {
            return Err(Code::INVALID_VALUE);
        }
        state.context_mut(id)?.cache_config = config;
        Ok(())
    }

    fn cuCtxGetSharedMemConfig(config: *mut u32) {
        lock().current()?;
        put(config, FOUR_BYTE_BANKS)
    }

    // Banks of four bytes are all that newer devices have; another wish is not an error.
    fn cuCtxSetSharedMemConfig(config: u32) {
        lock().current()?;
        if config > LAST_BANK_SIZE {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn cuCtxGetExecAffinity(affinity: *mut ExecAffinity, kind: u32) {
        let device = lock().current_device()?;
        if kind != 0 {
            return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
        }
        let multiprocessors = attribute::known(MULTIPROCESSORS, device) as u32;
        put(affinity, ExecAffinity { kind, multiprocessors })
    }

    fn cuCtxResetPersistingL2Cache() {
        lock().current().map(|_| ())
    }
}
