//! `dlsym`, `dlvsym` and `dlopen`.

use super::door::{Call, Outcome, door};
use super::look_up::LookUp;
use crate::{real, switch};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

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
    let flags = call.second as c_int;
    if flags & libc::RTLD_DEEPBIND != 0 {
        // SAFETY: the contract of dlopen: a string, or null.
        note_deepbind(unsafe { string(call.first) }.unwrap_or_default());
        if strips_deepbind() {
            call.second = (flags & !libc::RTLD_DEEPBIND) as usize;
        }
    }
    Outcome::go_on(real::dlopen_address())
}

/// # Safety
/// The address of a string that stays during the call, or 0.
unsafe fn string<'a>(address: usize) -> Option<&'a CStr> {
    // SAFETY: the caller's contract.
    (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) })
}

fn strips_deepbind() -> bool {
    switch::is_on() && switch::variable(c"LUMA_INTERPOSE_DEEPBIND") == Some(c"strip")
}

/// The first name is kept. Whoever counts the first call writes it, and then raises `WRITTEN`.
struct FirstName(UnsafeCell<[u8; NAME_BYTES]>);
const NAME_BYTES: usize = 256;

// SAFETY: one thread writes it, before `WRITTEN` is raised; others read it after that.
unsafe impl Sync for FirstName {}

static ASKED: AtomicU32 = AtomicU32::new(0);
static FIRST: FirstName = FirstName(UnsafeCell::new([0; NAME_BYTES]));
static WRITTEN: AtomicU8 = AtomicU8::new(0);

fn note_deepbind(file: &CStr) {
    if ASKED.fetch_add(1, Ordering::Relaxed) != 0 {
        return;
    }
    let name = file.to_bytes();
    // The last byte stays 0.
    let length = name.len().min(NAME_BYTES - 1);
    // SAFETY: this is the only call that counted from 0, and nobody reads before it is through.
    unsafe { (&mut *FIRST.0.get())[..length].copy_from_slice(&name[..length]) };
    WRITTEN.store(1, Ordering::Release);
}

/// How often a library was opened with `RTLD_DEEPBIND`, and the name of the first, cut to 255 bytes; empty for
/// the program itself.
// For the report.
#[allow(dead_code)]
pub fn deepbind_asked() -> (u32, &'static CStr) {
    if WRITTEN.load(Ordering::Acquire) == 0 {
        return (0, c"");
    }
    // SAFETY: it was written, and will not be again.
    let name = unsafe { &*FIRST.0.get() };
    let name = CStr::from_bytes_until_nul(name).unwrap_or_default();
    (ASKED.load(Ordering::Relaxed), name)
}
