//! `LUMA_INTERPOSE`: whether the hooks do anything.

use luma::log::{self, Level};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What the hooks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Memory comes from the pool.
    On = 1,
    /// Every hook calls the driver, and does nothing else.
    Off = 2,
    /// As on, but a free first waits for the context, as the driver's does.
    Wait = 3,
}

static MODE: AtomicU8 = AtomicU8::new(0);
/// The value could not be understood.
static MISREAD: AtomicBool = AtomicBool::new(false);

/// The mode. It is read at the first call and stays.
#[inline]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        1 => Mode::On,
        2 => Mode::Off,
        3 => Mode::Wait,
        _ => read(),
    }
}

/// Whether the hooks stand in for the driver.
#[inline]
pub fn is_on() -> bool {
    mode() != Mode::Off
}

/// Logs, once, that the variable has a value that means nothing and is taken as `on`. Called by a hook: not by a
/// look-up, and with nothing locked.
pub fn tell_misread() {
    if MISREAD.load(Ordering::Relaxed) && MISREAD.swap(false, Ordering::Relaxed) {
        log::log(Level::Warning, || {
            "LUMA_INTERPOSE is none of on, off and wait: it is taken as on".into()
        });
    }
}

#[cold]
fn read() -> Mode {
    let (mode, misread) = match variable(c"LUMA_INTERPOSE").map(CStr::to_bytes) {
        None | Some(b"" | b"on" | b"1") => (Mode::On, false),
        Some(b"off" | b"0") => (Mode::Off, false),
        Some(b"wait") => (Mode::Wait, false),
        Some(_) => (Mode::On, true),
    };
    // Threads that read it at the same time agree, unless the program changes it meanwhile: the first wins.
    match MODE.compare_exchange(0, mode as u8, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            MISREAD.store(misread, Ordering::Relaxed);
            mode
        }
        Err(_) => self::mode(),
    }
}

/// A variable of the environment, read where it lies: `getenv` may be a function of the program's own, which
/// may not be ready yet (bash has one), and the standard library's reader allocates.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library's variable; a list of strings that ends with a null pointer, or null.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: not past the null pointer at the end.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: a string. Programs that change the environment while others read it are wrong already.
        let text: &'static CStr = unsafe { CStr::from_ptr(text) };
        let value = text.to_bytes().strip_prefix(name.to_bytes());
        if value.is_some_and(|value| value.first() == Some(&b'=')) {
            // The name and the sign have as many bytes as the name and its NUL.
            return CStr::from_bytes_with_nul(&text.to_bytes_with_nul()[name.count_bytes() + 1..])
                .ok();
        }
        // SAFETY: this was not the last entry.
        entry = unsafe { entry.add(1) };
    }
}
