#![forbid(unsafe_code)]
//! Static placement: lifetimes to offsets, without spills.
//!
//! What is live together must not share a byte (dynamic storage allocation; NP-hard). Small heights
//! come from a few fast rules, see `skyline` and `fit`; where those do not reach the lower bound, a
//! search in the manner of MiniMalloc goes on until it has a placement or a proof that there is
//! none, see `search` and `effort`.

mod drive;
mod effort;
mod fit;
mod instance;
mod problem;
mod rules;
mod search;
mod skyline;

use super::{Control, PlanError, Stopped};

/// When something needs room, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// When it starts, in any unit of time.
    pub lower: u64,
    /// When it has ended; not before `lower`. What starts at this time may share its bytes.
    pub upper: u64,
    /// Bytes. Without bytes, or where `lower` is `upper`, it needs no room and gets offset 0.
    pub size: u64,
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offset of each lifetime, in bytes.
    pub offsets: Vec<u64>,
    /// Where the highest one ends, in bytes.
    pub height: u64,
    /// No placement is lower, in bytes. At least the most bytes that are live at a time.
    pub lower_bound: u64,
    /// The height is the least there is.
    pub proved: bool,
    /// Why the search ended. With a capacity it ends once there is a placement within it.
    pub stopped: Stopped,
}

/// Places the lifetimes within `capacity` bytes, or, without one, as low as can be done within the
/// bounds of `control`; where that bounds neither time nor work, a few seconds' work is done.
///
/// A unit of work is a choice tried by the search. Equal seeds and work budgets give equal results; a
/// deadline only ends the same sequence of improvements sooner. One thread is used. The callback is told
/// the height of the best placement in place of the bytes moved.
///
/// # Errors
/// [`BadLifetime`](super::PlanErrorKind::BadLifetime);
/// [`Overflow`](super::PlanErrorKind::Overflow) if what is live together has 2^64 - 1 bytes or more, or no
/// placement is found below that;
/// [`NoPlacement`](super::PlanErrorKind::NoPlacement) if it is proved that none is within the
/// capacity; [`PlacementNotFound`](super::PlanErrorKind::PlacementNotFound) if none was found in time.
pub fn place(
    lifetimes: &[Lifetime],
    capacity: Option<u64>,
    control: &Control<'_>,
) -> Result<Placement, PlanError> {
    drive::place(lifetimes, capacity, control)
}

/// The most bytes that are live at a time: no placement is lower.
///
/// # Errors
/// As for [`place`].
pub fn peak_load(lifetimes: &[Lifetime]) -> Result<u64, PlanError> {
    let instance = instance::Instance::new(lifetimes)?;
    Ok(instance.peak * instance.unit)
}
