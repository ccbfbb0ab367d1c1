//! Structures of the driver interface.

pub mod copy;
pub mod device;
pub mod graph;
pub mod launch;
pub mod memory;
