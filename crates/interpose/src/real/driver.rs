//! The driver's functions behind the hooks.

use super::{image, next};
use crate::abi::{self, Address, Device, Handle};
use crate::table::{self, for_each_hook};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The name that the driver is loaded by.
const DRIVER: &CStr = c"libcuda.so.1";

/// Where the driver's function of a name lies, once it is known.
#[derive(Debug)]
pub struct Real(AtomicPtr<c_void>);

impl Real {
    pub const fn unknown() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// The address; null: there is no driver, or it lacks the function.
    // An address of code needs no order: the library that it lies in was there before the address was.
    #[inline]
    pub fn get(&self, symbol: &CStr) -> *mut c_void {
        let known = self.0.load(Ordering::Relaxed);
        if known.is_null() {
            self.find(symbol)
        } else {
            known
        }
    }

    /// Remembers what somebody's look-up gave, if none is known yet. Ours it is not, even if a driver that takes
    /// its own functions from the program's scope says so: a hook would call itself.
    pub fn learn(&self, found: *mut c_void) {
        if image::is_ours(found as usize) {
            return;
        }
        let _ = self
            .0
            .compare_exchange(null_mut(), found, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Looks the function up: behind this library in the program's scope, else in the driver, which a library
    /// outside of that scope may have loaded. A driver that is missing is looked for again the next time.
    #[cold]
    fn find(&self, symbol: &CStr) -> *mut c_void {
        let mut found = next::behind(symbol);
        if found.is_null() {
            let driver = next::open(DRIVER, libc::RTLD_NOW | libc::RTLD_LOCAL);
            if driver.is_null() {
                return null_mut();
            }
            // SAFETY: a handle that was just opened, and is never closed.
            found = unsafe { next::in_handle(driver, symbol) };
        }
        if !found.is_null() {
            self.learn(found);
        }
        found
    }
}

/// What a hook gives that has no function of the driver behind it.
#[cold]
pub fn absent() -> c_int {
    let driver = next::open(DRIVER, libc::RTLD_NOW | libc::RTLD_LOCAL);
    if driver.is_null() {
        abi::NOT_INITIALIZED
    } else {
        abi::NOT_SUPPORTED
    }
}

macro_rules! typed {
    ($($module:ident: $symbol:ident($($arg:ident: $type:ty),* $(,)?)
        as $($name:literal $since:literal $(.. $until:literal)? $($flavour:ident)?),+;)*) => {
        $(
            /// The driver's function of this name, if there is one.
            #[inline]
            pub fn $symbol() -> Option<unsafe extern "C" fn($($type),*) -> c_int> {
                let hook = &table::by_symbol::$symbol;
                // SAFETY: the driver's function of the symbol, whose documented type is the table's. A null
                // pointer is `None`.
                unsafe { std::mem::transmute(hook.real.get(hook.symbol)) }
            }
        )*
    };
}
for_each_hook!(typed);

/// Calls the driver's function behind a hook: `call!(cuMemFree_v2(address))`. It is unsafe code, and gives the
/// driver's code, or that of [`absent`].
macro_rules! call {
    ($symbol:ident($($arg:expr),* $(,)?)) => {
        match $crate::real::$symbol() {
            Some(function) => function($($arg),*),
            None => $crate::real::absent(),
        }
    };
}
pub(crate) use call;
