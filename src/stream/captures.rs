#![forbid(unsafe_code)]
//! Memory that belongs to graphs.
//!
//! What is queued on a stream that is being captured does not run: it becomes a part of a graph, which
//! may run later, any number of times, on any stream. So memory that is allocated there belongs to the
//! capture, and goes back to the pool when the graph and all that was made of it are gone. Until then
//! it serves the capture's own requests: what was freed in the order of one of its streams serves that
//! stream.

use super::table::ParkedId;
use crate::alloc::chunk::Lane;
use crate::alloc::host_memory::TryPush;
use crate::alloc::{Engine, HostMemoryExhausted};
use crate::backend::streams::{Stream, StreamKey};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
struct Captured {
    id: u64,
    /// Whether graph and executables are gone.
    ended: Arc<AtomicBool>,
    /// The handles of its streams, while none of them was seen outside of it: it may still go on.
    open: Vec<Stream>,
    /// The memory freed in the order of each stream of the capture.
    lanes: Vec<(StreamKey, Lane)>,
    /// Freed blocks of the pool that the graph uses.
    parked: Vec<ParkedId>,
}

/// All captures that have memory of a pool.
#[derive(Debug, Default)]
pub struct Captures {
    list: Vec<Captured>,
    /// Live blocks that belong to a capture or are used by some, with those.
    blocks: HashMap<u64, Vec<Owner>>,
}

/// Whose a live block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The number of the capture.
    pub capture: u64,
    /// Whether it was allocated in the capture; otherwise the capture only uses it.
    pub is_own: bool,
}

impl Captures {
    /// Whether a capture is known.
    pub fn knows(&self, id: u64) -> bool {
        self.list.iter().any(|captured| captured.id == id)
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a capture may still go on.
    pub fn are_open(&self) -> bool {
        self.list.iter().any(|captured| !captured.open.is_empty())
    }

    /// A call was passed a stream that is in a capture.
    pub fn note_inside(&mut self, id: u64, stream: Stream) -> Result<(), HostMemoryExhausted> {
        match self.of(id) {
            Some(captured) if !captured.open.contains(&stream) => captured.open.try_push(stream),
            _ => Ok(()),
        }
    }

    /// A call was passed a stream that is in none: whatever captured under this handle has ended.
    #[inline]
    pub fn note_outside(&mut self, stream: Stream) {
        for captured in &mut self.list {
            if captured.open.contains(&stream) {
                captured.open = Vec::new();
            }
        }
    }

    /// Notes a capture. `ended` is set when its graphs are gone.
    pub fn add(&mut self, id: u64, ended: Arc<AtomicBool>) -> Result<(), HostMemoryExhausted> {
        self.list.try_push(Captured {
            id,
            ended,
            open: Vec::new(),
            lanes: Vec::new(),
            parked: Vec::new(),
        })
    }

    fn of(&mut self, id: u64) -> Option<&mut Captured> {
        self.list.iter_mut().find(|captured| captured.id == id)
    }

    /// The lane of one of a capture's streams, opened if there is none; `None`: the capture is unknown.
    pub fn lane(
        &mut self,
        engine: &mut Engine,
        id: u64,
        key: StreamKey,
    ) -> Result<Option<Lane>, HostMemoryExhausted> {
        let Some(captured) = self.of(id) else {
            return Ok(None);
        };
        if let Some(&(_, lane)) = captured.lanes.iter().find(|(other, _)| *other == key) {
            return Ok(Some(lane));
        }
        captured
            .lanes
            .try_reserve(1)
            .map_err(|_| HostMemoryExhausted)?;
        let lane = engine.open_lane()?;
        captured.lanes.push((key, lane));
        Ok(Some(lane))
    }

    /// Makes room for one more block that is freed and waits for the capture.
    pub fn reserve_parking(&mut self, id: u64) -> Result<(), HostMemoryExhausted> {
        match self.of(id) {
            Some(captured) => captured
                .parked
                .try_reserve(1)
                .map_err(|_| HostMemoryExhausted),
            None => Ok(()),
        }
    }

    /// A live block belongs to a capture, or is used by one.
    pub fn claim(&mut self, addr: u64, owner: Owner) -> Result<(), HostMemoryExhausted> {
        self.blocks
            .try_reserve(1)
            .map_err(|_| HostMemoryExhausted)?;
        let list = &self.list;
        let owners = self.blocks.entry(addr).or_default();
        owners.retain(|owner| list.iter().any(|captured| captured.id == owner.capture));
        if owners.iter().any(|other| other.capture == owner.capture) {
            return Ok(());
        }
        owners.try_push(owner)
    }

    /// The captures that are still there and that a live block belongs to or is used by.
    pub fn owners(&self, addr: u64) -> impl Iterator<Item = Owner> + '_ {
        let owners = self.blocks.get(&addr).into_iter().flatten().copied();
        owners.filter(|owner| self.knows(owner.capture))
    }

    /// The block is live no more.
    pub fn release(&mut self, addr: u64) {
        self.blocks.remove(&addr);
    }

    /// A freed block waits for the end of the capture. Room was made for it.
    pub fn park(&mut self, id: u64, parked: ParkedId) {
        if let Some(captured) = self.of(id) {
            captured.parked.push(parked);
        }
    }

    /// Takes a capture whose graphs are gone off the list: what was in its lanes is anyone's. Gives the
    /// blocks that waited for it; `None`: there is no such capture.
    pub fn take_ended(&mut self, engine: &mut Engine) -> Option<Vec<ParkedId>> {
        // Acquire: whatever the graphs did was before.
        let has_ended = |captured: &Captured| captured.ended.load(Ordering::Acquire);
        let at = self.list.iter().position(has_ended)?;
        let captured = self.list.swap_remove(at);
        for (_, lane) in captured.lanes {
            engine.settle(lane, u64::MAX);
            engine.close_lane(lane);
        }
        if self.list.is_empty() {
            self.blocks.clear();
        }
        Some(captured.parked)
    }
}
