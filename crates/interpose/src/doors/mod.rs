//! The ways to a function of the driver other than by its symbol.

mod door;
mod linker;
mod look_up;
pub mod proc_address;
