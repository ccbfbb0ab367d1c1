//! The functions that follow this library: the linker's and the driver's.
//!
//! `real::cuMemAlloc_v2()` and so on give the driver's function behind each hook.

mod driver;
mod elf;
pub mod extra;
mod image;
mod next;

pub use driver::*;
pub use image::is_ours;
pub use next::{
    behind, dlopen_address, dlsym_address, dlvsym_address, in_handle, in_handle_versioned,
    in_program, libc_dlsym_address, of_library, own,
};
