//! Functions of the driver that need device memory, and lack it where the pool keeps some unused: it is given
//! back, and the call made once more.
//!
//! Only what does nothing when it fails for want of memory may be here.

use crate::abi::{Address, Handle, OUT_OF_MEMORY};
use crate::pool::{give_back, give_back_in_time};
use crate::real::call;
use crate::switch;
use crate::table::for_each_hook;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Makes a call again if it lacks memory and some was given back.
pub fn with_retry(call: impl Fn() -> c_int) -> c_int {
    match call() {
        OUT_OF_MEMORY if switch::is_on() => retry(call),
        code => code,
    }
}

#[cold]
fn retry(call: impl Fn() -> c_int) -> c_int {
    for give in [give_back, give_back_in_time] {
        if give() {
            match call() {
                OUT_OF_MEMORY => {}
                code => return code,
            }
        }
    }
    OUT_OF_MEMORY
}

macro_rules! define {
    ($($module:ident: $symbol:ident($($arg:ident: $type:ty),* $(,)?)
        as $($name:literal $since:literal $(.. $until:literal)? $($flavour:ident)?),+;)*) => {
        $(define!(@one $module $symbol($($arg: $type),*));)*
    };
    (@one retry $symbol:ident($($arg:ident: $type:ty),*)) => {
        #[doc = concat!("`", stringify!($symbol), "`, made again where it lacks memory that the pool has.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol($($arg: $type),*) -> c_int {
            // SAFETY: the caller's contract is the driver's, which does nothing when it lacks memory.
            with_retry(|| unsafe { call!($symbol($($arg),*)) })
        }
    };
    (@one $module:ident $($rest:tt)*) => {};
}
for_each_hook!(define);
