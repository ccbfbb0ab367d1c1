//! What is called in place of the driver.
//!
//! # Safety
//! Each function has the contract of the driver's function of its name. Arguments are the program's: a pointer
//! that the driver would refuse is left for the driver to refuse.

pub mod capture;
pub mod info;
pub mod lifetime;
pub mod memory;
pub mod ordered;
pub mod retry;
pub mod share;

// It is a hook itself.
pub use crate::doors::proc_address;
