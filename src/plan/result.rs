#![forbid(unsafe_code)]
//! What planning gives.

/// A spill: out to another place, and in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// The buffer.
    pub buffer: u32,
    /// Where in its memory it is from the SPILL_IN on.
    pub offset: u64,
}

/// Why planning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was done.
    Finished,
    /// The time limit was reached.
    TimeLimit,
    /// The caller's callback said so.
    Caller,
    /// The work budget was used up.
    Work,
}

/// A valid plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where in its memory each buffer is from its ALLOC on.
    pub offsets: Vec<u64>,
    /// The spills, by the position of their SPILL_OUT. Of a graph of N nodes, spill `k` is the nodes
    /// N + 2k (SPILL_OUT) and N + 2k + 1 (SPILL_IN).
    pub spills: Vec<Spill>,
    /// The order of all nodes, spills included.
    pub order: Vec<u32>,
    /// Bytes that the spills move.
    pub extra_bytes: u64,
    /// Cycles that the spills take.
    pub spill_cycles: u64,
    /// Cycles until the last node has run, see [`makespan`](super::makespan).
    pub makespan: u64,
    /// The most bytes resident at a time in each memory.
    pub peaks: Vec<u64>,
    /// No plan (of this order, if that was kept) moves fewer bytes.
    pub lower_bound: u64,
    /// No plan (of this order, if that was kept) moves fewer bytes than this one.
    pub proved: bool,
    /// Why planning ended.
    pub stopped: Stopped,
}
