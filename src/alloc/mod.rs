#![forbid(unsafe_code)]
//! The engine: which bytes of which region are in use.
//!
//! It works on numbers only. Addresses are never dereferenced, no backend is called and nothing is
//! locked: [`crate::pool`] does that around it. The same engine thus serves device memory, host
//! memory and simulated addresses.
//!
//! - [`chunk`]: the pieces of regions and the table that holds them;
//! - [`bins`]: free chunks by (size, address), for the best fit;
//! - `trie`, `tree`: searches by size, and walks;
//! - `heap`: the chunks of one size, by address;
//! - [`address_map`]: from a live block's address to its chunk;
//! - [`region`]: what the backend granted;
//! - [`host_memory`]: tables that say when the host has no memory for them;
//! - [`policy`]: how much to ask a backend for, when to split;
//! - [`engine`]: allocating and freeing;
//! - [`lanes`]: who may use a free chunk, and from when on anyone may;
//! - `parked`: freed chunks that are in no lane yet;
//! - `queue`: the free chunks of a lane in the order of their times;
//! - [`gather`]: requests served from adjacent free chunks of several lanes;
//! - [`supply`]: regions coming and going;
//! - [`what_if`]: what would make a refused request fit;
//! - [`window`]: places for a request among free memory and addresses without memory;
//! - [`paging`]: ranges of addresses that get and lose memory by pages;
//! - [`anywhere`]: the last look at ranges, over every place that there is;
//! - [`check`]: the invariants, all of them.

pub mod address_map;
pub mod anywhere;
pub mod bins;
pub mod check;
pub mod chunk;
pub mod engine;
pub mod gather;
mod heap;
pub mod host_memory;
pub mod lanes;
#[cfg(test)]
mod lanes_model;
pub mod paging;
mod parked;
pub mod policy;
mod queue;
pub mod region;
pub mod supply;
mod tree;
mod trie;
pub mod what_if;
pub mod window;

pub use chunk::{ANYONE, ChunkId, HOME, Lane};
pub use engine::{Block, Engine, Located, NotLive, Request, Usage};
pub use host_memory::HostMemoryExhausted;
pub use policy::{Growth, Policy};
pub use supply::AddRegionError;
