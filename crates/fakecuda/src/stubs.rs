//! The driver functions that this library does not have: they are exported, so that programs link
//! and find them, and answer `NOT_SUPPORTED`.

use crate::entry;

macro_rules! stubs {
    ($($name:ident)*) => {
        $(
            // Whatever the arguments are, none is looked at.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> u32 {
                entry::stub(stringify!($name), &calls::$name)
            }
        )*

        #[allow(non_upper_case_globals)]
        mod calls {
            use std::sync::atomic::AtomicU64;
            $(pub static $name: AtomicU64 = AtomicU64::new(0);)*
        }

        /// The functions that are not there.
        pub static ENTRIES: &[entry::Entry] = &[
            $(
                entry::Entry {
                    name: stringify!($name),
                    function: $name as *const (),
                    calls: &calls::$name,
                },
            )*
        ];
    };
}

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
