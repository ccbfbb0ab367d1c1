//! The interface for tests: `include/fakecuda.h` says what each function does.

use crate::attribute;
use crate::device;
use crate::entry::Entry;
use crate::faults::{self, Fault};
use crate::launch::{self, Launch};
use crate::lookup;
use crate::module::MOST_PARAMETER_BYTES;
use crate::state::lock;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::slice;
use std::sync::atomic::Ordering;

const OK: i32 = 0;
const INVALID_VALUE: i32 = 1;
const INVALID_DEVICE: i32 = 101;
const ABSENT: i32 = -1;

/// `FAKECUDA_LIVE_*`.
mod live {
    pub const ALLOCATIONS: u32 = 0;
    pub const RESERVATIONS: u32 = 1;
    pub const PHYSICAL: u32 = 2;
    pub const MAPPINGS: u32 = 3;
    pub const STREAMS: u32 = 4;
    pub const EVENTS: u32 = 5;
    pub const CONTEXTS: u32 = 6;
    pub const MODULES: u32 = 7;
    pub const GRAPHS: u32 = 8;
    pub const GRAPH_EXECS: u32 = 9;
    pub const POOLS: u32 = 10;
}

/// A string that a program gave.
///
/// # Safety
/// It is null, or a string that lives as long as the result is used.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller promises it.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// What a wish is about.
///
/// # Safety
/// As for [`text`].
unsafe fn target<'a>(name: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller promises it.
    unsafe { text(name) }.and_then(faults::target)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_calls(name: *const c_char) -> u64 {
    let count = |entry: &Entry| entry.calls.load(Ordering::Relaxed);
    // SAFETY: the caller gives a string.
    match unsafe { text(name) } {
        // A per-thread form counts as one of its own and as the function that it calls.
        Some(faults::ANY) => lookup::entries()
            .filter(|entry| !lookup::is_per_thread(entry) || lookup::is_stub(entry))
            .map(count)
            .sum(),
        Some(name) => lookup::entry(name).map_or(0, count),
        None => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_supports(name: *const c_char) -> i32 {
    // SAFETY: the caller gives a string.
    let entry = unsafe { text(name) }.and_then(lookup::entry);
    entry.map_or(ABSENT, |entry| i32::from(!lookup::is_stub(entry)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_fail(name: *const c_char, skip: u64, code: u32, count: u64) -> i32 {
    // SAFETY: the caller gives a string.
    let Some(name) = (unsafe { target(name) }) else {
        return INVALID_VALUE;
    };
    faults::add(Fault {
        name: name.to_owned(),
        skip,
        code,
        count,
    });
    OK
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_fail_clear() -> i32 {
    faults::clear();
    OK
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_failed() -> u64 {
    faults::failed()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_set_latency(name: *const c_char, nanoseconds: u64) -> i32 {
    // SAFETY: the caller gives a string.
    let Some(name) = (unsafe { target(name) }) else {
        return INVALID_VALUE;
    };
    faults::set_latency(name, nanoseconds);
    OK
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_devices() -> i32 {
    lock().devices.len() as i32
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_device_attribute(device: i32, which: u32) -> i32 {
    let device = lock().device(device).ok();
    let value = device.and_then(|device| attribute::value(which, device));
    value.unwrap_or(ABSENT)
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_device_name(device: i32) -> *const c_char {
    let found = lock().device(device);
    found.map_or(ptr::null(), |_| device::NAME.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_device_uuid(device: i32, uuid: *mut [u8; 16]) -> i32 {
    match lock().device(device) {
        // SAFETY: the caller gives room for the bytes.
        Ok(device) if !uuid.is_null() => unsafe {
            uuid.write(device::uuid(device));
            OK
        },
        Ok(_) => INVALID_VALUE,
        Err(_) => INVALID_DEVICE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_capacity(device: i32) -> u64 {
    let state = lock();
    let device = state.device(device);
    device.map_or(0, |device| state.devices[device].capacity)
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_set_capacity(device: i32, bytes: u64) -> i32 {
    let mut state = lock();
    match state.device(device) {
        Ok(device) => {
            state.devices[device].capacity = bytes;
            OK
        }
        Err(_) => INVALID_DEVICE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_used(device: i32) -> u64 {
    let state = lock();
    let device = state.device(device);
    device.map_or(0, |device| state.devices[device].used)
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_peak(device: i32) -> u64 {
    let state = lock();
    let device = state.device(device);
    device.map_or(0, |device| state.devices[device].peak)
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_host_pointer(address: u64) -> *mut c_void {
    let found = lock().host_pointer(address);
    found.map_or(ptr::null_mut(), |pointer| pointer.cast())
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_live(kind: u32) -> u64 {
    let state = lock();
    match kind {
        live::ALLOCATIONS => state.memory.live_allocations(),
        live::RESERVATIONS => state.memory.live_reservations(),
        live::PHYSICAL => state.memory.live_physical(),
        live::MAPPINGS => state.memory.live_mappings(),
        live::STREAMS => state.exec.live_streams(),
        live::EVENTS => state.exec.live_events(),
        live::CONTEXTS => state.contexts.len() as u64,
        live::MODULES => state.modules.live_modules(),
        live::GRAPHS => state.graphs.live_graphs(),
        live::GRAPH_EXECS => state.graphs.live_executables(),
        live::POOLS => state.memory.live_pools(),
        _ => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fakecuda_register_kernel(
    name: *const c_char,
    function: Option<unsafe extern "C" fn(*const Launch, *mut c_void)>,
    user: *mut c_void,
    count: usize,
    sizes: *const usize,
) -> i32 {
    // SAFETY: the caller gives a string.
    let Some(name) = (unsafe { text(name) }).filter(|name| !name.is_empty()) else {
        return INVALID_VALUE;
    };
    let sizes = match (count, sizes.is_null()) {
        (0, _) => &[],
        (_, true) => return INVALID_VALUE,
        // SAFETY: the caller gives so many sizes.
        (_, false) => unsafe { slice::from_raw_parts(sizes, count) },
    };
    let all = sizes
        .iter()
        .try_fold(0usize, |all, &bytes| all.checked_add(bytes));
    if all.is_none_or(|all| all > MOST_PARAMETER_BYTES) {
        return INVALID_VALUE;
    }
    launch::register(name, function, user, sizes);
    OK
}

#[unsafe(no_mangle)]
extern "C" fn fakecuda_launches() -> u64 {
    launch::launches()
}
