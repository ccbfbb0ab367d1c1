//! `dlsym`, `dlvsym` and `dlopen`.

use super::door::{Call, Outcome, door};
use super::look_up::LookUp;
use crate::{real, report, switch};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

door! {
    /// Finds a symbol, as the C library's does, but for the names of the table.
    fn dlsym(handle: *mut c_void, symbol: *const c_char) by find
}

door! {
    /// Finds a symbol of a version, as the C library's does, but for the names of the table.
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) by find_versioned
}

door! {
    /// Opens a library, as the C library's does. `RTLD_DEEPBIND` gives a library the C library's `dlsym` instead
    /// of this one: it is noted, and with `LUMA_INTERPOSE_DEEPBIND=strip` left out.
    fn dlopen(file: *const c_char, flags: c_int) by open
}

/// Other libraries that have a `dlsym` look for the one behind them under a version of the C library's, which ours
/// has not, and would pass by. They get what follows them under any version: this library, if they stand before it.
const EXPORTED: [&CStr; 3] = [c"dlsym", c"dlvsym", c"dlopen"];

unsafe extern "C" fn find(call: &mut Call) -> Outcome {
    let function = real::dlsym_address();
    let handle = call.first as *mut c_void;
    // SAFETY: the contract of dlsym: a string, or null.
    let Some(name) = (unsafe { string(call.second) }) else {
        return Outcome::go_on(function);
    };
    let look_up = LookUp {
        handle,
        name,
        caller: call.caller,
        function,
    };
    // SAFETY: the contract of dlsym.
    look_up.decide(|| unsafe { real::in_handle(handle, name) })
}

unsafe extern "C" fn find_versioned(call: &mut Call) -> Outcome {
    let function = real::dlvsym_address();
    let handle = call.first as *mut c_void;
    // SAFETY: the contract of dlvsym: strings, or null.
    let (name, version) = unsafe { (string(call.second), string(call.third)) };
    let (Some(name), Some(version)) = (name, version) else {
        return Outcome::go_on(function);
    };
    if handle == libc::RTLD_NEXT && EXPORTED.contains(&name) {
        return Outcome::go_on(real::libc_dlsym_address());
    }
    let look_up = LookUp {
        handle,
        name,
        caller: call.caller,
        function,
    };
    // SAFETY: the contract of dlvsym.
    look_up.decide(|| unsafe { real::in_handle_versioned(handle, name, version) })
}

unsafe extern "C" fn open(call: &mut Call) -> Outcome {
    let mut flags = call.second as c_int;
    if flags & libc::RTLD_DEEPBIND != 0 && strips_deepbind() {
        flags &= !libc::RTLD_DEEPBIND;
        call.second = flags as usize;
    }
    // SAFETY: the contract of dlopen: a string, or null.
    if let Some(file) = unsafe { string(call.first) } {
        report::opening(file, flags);
    }
    Outcome::go_on(real::dlopen_address())
}

/// # Safety
/// The address of a string that stays during the call, or 0.
unsafe fn string<'a>(address: usize) -> Option<&'a CStr> {
    // SAFETY: the caller's contract.
    (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) })
}

/// It is read once, as the other variables are: a program may change its environment.
fn strips_deepbind() -> bool {
    const UNREAD: u8 = 0;
    const KEEPS: u8 = 1;
    const STRIPS: u8 = 2;
    static SETTING: AtomicU8 = AtomicU8::new(UNREAD);
    let mut setting = SETTING.load(Ordering::Relaxed);
    if setting == UNREAD {
        setting = match switch::variable(c"LUMA_INTERPOSE_DEEPBIND").map(CStr::to_bytes) {
            Some(b"strip") => STRIPS,
            _ => KEEPS,
        };
        SETTING.store(setting, Ordering::Relaxed);
    }
    switch::is_on() && setting == STRIPS
}
