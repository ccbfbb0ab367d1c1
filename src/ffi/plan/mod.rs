//! Spill planning, its checker, and static placement.

mod check;
mod control;
mod input;
mod place;
mod planning;
mod store;
mod types;
mod versions;

pub use check::*;
pub use place::*;
pub use planning::*;
pub(super) use store::{ForkGuard, lock_for_fork};
pub use types::*;
