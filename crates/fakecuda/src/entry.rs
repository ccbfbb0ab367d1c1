//! What every call passes through: counting, the log, wished failures, panics.

use crate::environment::{environment, tell};
use crate::exec;
use crate::process::{self, When};
use crate::status::{self, Code, Result, SUCCESS};
use crate::{faults, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// An exported function.
#[derive(Debug)]
pub struct Entry {
    /// The exported name.
    pub name: &'static str,
    /// Its address.
    pub function: *const (),
    /// How often it was called.
    pub calls: &'static AtomicU64,
}

// SAFETY: the address of a function is never written to.
unsafe impl Sync for Entry {}

/// Makes a call: `body` runs if nothing speaks against it.
pub fn call(
    name: &'static str,
    calls: &AtomicU64,
    when: When,
    body: impl FnOnce() -> Result,
) -> u32 {
    calls.fetch_add(1, Ordering::Relaxed);
    let outcome = process::permit(when)
        .and_then(|()| faults::apply(name))
        .and_then(|()| {
            // The documentation forbids calls from host functions, which could wait for themselves.
            if when == When::Initialized && thread::in_host_function() {
                return Err(Code::NOT_PERMITTED);
            }
            let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Code::UNKNOWN));
            exec::end_call();
            outcome
        });
    let code = outcome.err().map_or(SUCCESS, |code| code.0);
    if environment().log {
        let text = status::name(code).map_or("?".into(), |name| name.to_string_lossy());
        tell(format_args!("{name}: {code} {text}"));
    }
    code
}

/// A call of a function that is not there.
pub fn stub(name: &'static str, calls: &AtomicU64) -> u32 {
    if environment().log_stubs && !environment().log {
        tell(format_args!("{name} is not supported"));
    }
    call(name, calls, When::Initialized, || Err(Code::NOT_SUPPORTED))
}

/// Exports functions, and lists them in `ENTRIES`.
///
/// ```text
/// driver! {
///     fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) { ...; Ok(()) }
///     fn cuDriverGetVersion: early (version: *mut i32) { ... }
///     fn cuMemsetD8Async | cuMemsetD8Async_ptsz (pointer: u64, ...) { ... }
/// }
/// ```
/// `early` functions may be called before `cuInit`, `always` ones at any time. A second name is the
/// form in which the null stream is the thread's own. A body is unsafe code and gives a
/// [`Result`]; the caller of a driver function promises what the driver's documentation asks.
macro_rules! driver {
    ($(fn $name:ident $(| $own:ident)* $(: $when:ident)? ($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            // Not every body does what only unsafe code may.
            #[allow(unused_unsafe)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> u32 {
                $crate::entry::call(
                    stringify!($name),
                    &calls::$name,
                    $crate::driver!(@when $($when)?),
                    // SAFETY: the caller keeps the driver's contract.
                    || -> $crate::status::Result { unsafe { $body } },
                )
            }
            $crate::driver!(@own $name [$($own)*] ($($arg: $type),*));
        )*

        #[allow(non_upper_case_globals)]
        mod calls {
            use std::sync::atomic::AtomicU64;
            $(
                pub static $name: AtomicU64 = AtomicU64::new(0);
                $(pub static $own: AtomicU64 = AtomicU64::new(0);)*
            )*
        }

        /// The functions of this file.
        pub static ENTRIES: &[$crate::entry::Entry] = &[
            $(
                $crate::entry::Entry {
                    name: stringify!($name),
                    function: $name as *const (),
                    calls: &calls::$name,
                },
                $(
                    $crate::entry::Entry {
                        name: stringify!($own),
                        function: $own as *const (),
                        calls: &calls::$own,
                    },
                )*
            )*
        ];
    };
    (@when) => { $crate::process::When::Initialized };
    (@when early) => { $crate::process::When::Early };
    (@when always) => { $crate::process::When::Always };
    (@own $name:ident [] $args:tt) => {};
    (@own $name:ident [$own:ident] ($($arg:ident: $type:ty),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $own($($arg: $type),*) -> u32 {
            calls::$own.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            // SAFETY: as for the function itself.
            $crate::thread::with_null_stream($crate::thread::NullStream::PerThread, || unsafe {
                $name($($arg),*)
            })
        }
    };
}

pub(crate) use driver;

/// Writes through an out-parameter that may not be null.
///
/// # Safety
/// `to` is null or may be written to.
pub unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it. C callers may have aligned it to less.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes through an out-parameter if there is one.
///
/// # Safety
/// `to` is null or may be written to.
pub unsafe fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller promises it.
        unsafe { to.write_unaligned(value) };
    }
}
