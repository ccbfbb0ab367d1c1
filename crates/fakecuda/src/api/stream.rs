//! Streams.

use crate::driver;
use crate::entry::{put, put_if};
use crate::exec::{GREATEST_PRIORITY, HostFunction, NON_BLOCKING, Step};
use crate::state::{State, lock};
use crate::status::{Code, Result, SUCCESS};
use std::ffi::c_void;
use std::sync::Arc;

/// `CU_LAUNCH_ATTRIBUTE_PRIORITY`.
const ATTRIBUTE_PRIORITY: u32 = 8;
/// The attributes that streams have, each a value of 64 bytes: access policy window, synchronization
/// policy, priority, memory synchronization domain map, memory synchronization domain.
const ATTRIBUTES: &[u32] = &[1, 3, ATTRIBUTE_PRIORITY, 9, 10];
const ATTRIBUTE_BYTES: usize = 64;

type Attribute = [u8; ATTRIBUTE_BYTES];

unsafe fn create(stream: *mut u64, flags: u32, priority: i32) -> Result {
    if stream.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut state = lock();
    let context = state.current()?;
    let handle = state.exec.create_stream(context, flags, priority);
    // SAFETY: the caller gives a place for a handle.
    unsafe { put(stream, handle) }
}

fn attribute(state: &mut State, stream: u64, attribute: u32) -> Result<Attribute> {
    if !ATTRIBUTES.contains(&attribute) {
        return Err(Code::INVALID_VALUE);
    }
    let id = state.stream(stream)?;
    let stream = state.stream_ref(id)?;
    let mut value = [0; ATTRIBUTE_BYTES];
    if attribute == ATTRIBUTE_PRIORITY {
        value[..4].copy_from_slice(&stream.priority.to_ne_bytes());
    } else if let Some(set) = stream.attributes.get(&attribute) {
        value = *set;
    }
    Ok(value)
}

fn set_attribute(state: &mut State, stream: u64, attribute: u32, value: &Attribute) -> Result {
    if !ATTRIBUTES.contains(&attribute) {
        return Err(Code::INVALID_VALUE);
    }
    let id = state.stream(stream)?;
    if attribute == ATTRIBUTE_PRIORITY {
        let [a, b, c, d, ..] = *value;
        state.set_stream_priority(id, i32::from_ne_bytes([a, b, c, d]));
    } else {
        state.set_stream_attribute(id, attribute, *value);
    }
    Ok(())
}

driver! {
    fn cuStreamCreate(stream: *mut u64, flags: u32) {
        create(stream, flags, 0)
    }

    fn cuStreamCreateWithPriority(stream: *mut u64, flags: u32, priority: i32) {
        create(stream, flags, priority)
    }

    fn cuStreamDestroy_v2(stream: u64) {
        lock().destroy_stream(stream)
    }

    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        lock().current()?;
        put_if(least, 0);
        put_if(greatest, GREATEST_PRIORITY);
        Ok(())
    }

    fn cuStreamGetPriority | cuStreamGetPriority_ptsz (stream: u64, priority: *mut i32) {
        let mut state = lock();
        let id = state.stream(stream)?;
        put(priority, state.stream_ref(id)?.priority)
    }

    fn cuStreamGetFlags | cuStreamGetFlags_ptsz (stream: u64, flags: *mut u32) {
        let mut state = lock();
        let id = state.stream(stream)?;
        put(flags, state.stream_ref(id)?.flags)
    }

    fn cuStreamGetId | cuStreamGetId_ptsz (stream: u64, number: *mut u64) {
        let id = lock().stream(stream)?;
        put(number, id.0)
    }

    fn cuStreamGetDevice | cuStreamGetDevice_ptsz (stream: u64, device: *mut i32) {
        let mut state = lock();
        let id = state.stream(stream)?;
        put(device, state.stream_device(id)? as i32)
    }

    fn cuStreamGetCtx | cuStreamGetCtx_ptsz (stream: u64, context: *mut u64) {
        let mut state = lock();
        let id = state.stream(stream)?;
        let id = state.stream_context(id)?;
        put(context, state.context(id)?.handle)
    }

    fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz (
        stream: u64,
        context: *mut u64,
        green: *mut u64,
    ) {
        let mut state = lock();
        let id = state.stream(stream)?;
        let id = state.stream_context(id)?;
        put(context, state.context(id)?.handle)?;
        put_if(green, 0);
        Ok(())
    }

    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz (
        stream: u64,
        number: u32,
        value: *mut Attribute,
    ) {
        put(value, attribute(&mut lock(), stream, number)?)
    }

    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz (
        stream: u64,
        number: u32,
        value: *const Attribute,
    ) {
        if value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        set_attribute(&mut lock(), stream, number, &value.read_unaligned())
    }

    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz (to: u64, from: u64) {
        let mut state = lock();
        let (to_id, from_id) = (state.stream(to)?, state.stream(from)?);
        if state.stream_context(to_id)? != state.stream_context(from_id)? {
            return Err(Code::INVALID_VALUE);
        }
        for &number in ATTRIBUTES {
            let value = attribute(&mut state, from, number)?;
            set_attribute(&mut state, to, number, &value)?;
        }
        Ok(())
    }

    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz (
        stream: u64,
        function: Option<HostFunction>,
        data: *mut c_void,
    ) {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.submit_host(stream, function, data as u64).map(drop)
    }

    fn cuLaunchHostFunc_v2 | cuLaunchHostFunc_v2_ptsz (
        stream: u64,
        function: Option<HostFunction>,
        data: *mut c_void,
        mode: u32,
    ) {
        // Blocking and spinning synchronization; either is right for a function that only runs later.
        if mode > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let function = function.ok_or(Code::INVALID_VALUE)?;
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.submit_host(stream, function, data as u64).map(drop)
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz (
        stream: u64,
        callback: Option<unsafe extern "C" fn(u64, u32, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    ) {
        let callback = callback.ok_or(Code::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let id = state.stream(stream)?;
        state.refuse_wait_on(id)?;
        let data = data as u64;
        let call = move || callback(stream, SUCCESS, data as *mut c_void);
        state.exec.push(id, Step::Host(Arc::new(call)), Vec::new());
        Ok(())
    }
}
