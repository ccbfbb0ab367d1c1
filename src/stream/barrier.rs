#![forbid(unsafe_code)]
//! Events that stand for all work of all streams of a context: the way out for what waits for a record that
//! nobody may ever make, since its stream may be destroyed.

use super::table::{Slot, SlotId, Table};
use crate::alloc::host_memory::TryPush;
use crate::alloc::{Engine, HostMemoryExhausted};
use crate::backend::streams::{Event, StreamKey};

/// Events that together stand for the work of all streams.
#[derive(Debug)]
pub(super) struct Barrier {
    /// Those that are not known to be done.
    pub(super) events: Vec<Event>,
    /// What is done with it: below these numbers.
    pub(super) below: Vec<(SlotId, u64)>,
}

/// What became of the work of all streams.
#[derive(Debug)]
pub enum Covered {
    /// These events stand for it: not none.
    By(Vec<Event>),
    /// It is done.
    Done,
    /// It cannot be told.
    Not,
}

/// The contexts of streams, each once.
fn domains_of<'a>(
    slots: impl Iterator<Item = &'a Slot>,
) -> Result<Vec<Option<usize>>, HostMemoryExhausted> {
    let mut domains = Vec::new();
    for slot in slots {
        if !domains.contains(&slot.domain) {
            domains.try_push(slot.domain)?;
        }
    }
    Ok(domains)
}

impl Table {
    /// Streams other than the default one for whose record something waits: it is made when a call passes
    /// the stream, or not at all.
    fn orphans(&self) -> impl Iterator<Item = &Slot> {
        let orphans = self.open_slots().filter(|(id, _)| self.is_orphan(*id));
        orphans.map(|(_, slot)| slot)
    }

    /// Whether something waits for a record of this stream that is nowhere under way. Not of the default
    /// stream, which can be asked at any time.
    pub fn is_orphan(&self, id: SlotId) -> bool {
        let slot = &self.slots[id as usize];
        slot.key != Some(StreamKey::DEFAULT)
            && slot.clock.lacks_record()
            && !self.is_covered(id, slot.clock.wanted())
    }

    /// Whether there are any.
    pub fn has_orphans(&self) -> bool {
        self.orphans().next().is_some()
    }

    /// The contexts that they belong to, as [`Table::domain`].
    pub fn orphans_domains(&self) -> Result<Vec<Option<usize>>, HostMemoryExhausted> {
        domains_of(self.orphans())
    }

    /// The contexts of all streams, as [`Table::domain`].
    pub fn domains(&self) -> Result<Vec<Option<usize>>, HostMemoryExhausted> {
        domains_of(self.open_slots().map(|(_, slot)| slot))
    }

    /// Whether a barrier stands for all work of a stream below a number.
    fn is_covered(&self, id: SlotId, number: u64) -> bool {
        let mut below = self.barriers.iter().flat_map(|barrier| &barrier.below);
        below.any(|&(other, below)| other == id && below >= number)
    }

    /// The numbers of all streams of a context for an event that is about to stand for all of them. To be
    /// followed by [`Table::end_barrier`].
    pub fn begin_barrier(
        &mut self,
        domain: Option<usize>,
    ) -> Result<Vec<(SlotId, u64)>, HostMemoryExhausted> {
        let mut below = Vec::new();
        below
            .try_reserve_exact(self.slots.len())
            .map_err(|_| HostMemoryExhausted)?;
        self.barriers
            .try_reserve(1)
            .map_err(|_| HostMemoryExhausted)?;
        self.making += 1;
        for (id, slot) in self.slots.iter_mut().enumerate() {
            if slot.key.is_some() && slot.domain == domain {
                below.push((id as SlotId, slot.clock.begin_record() + 1));
            }
        }
        Ok(below)
    }

    /// What became of a barrier. Gives its events back where there is no memory to note it.
    pub fn end_barrier(
        &mut self,
        engine: &mut Engine,
        below: Vec<(SlotId, u64)>,
        covered: Covered,
    ) -> Vec<Event> {
        self.making -= 1;
        match covered {
            Covered::By(events) => {
                if self.barriers.try_reserve(1).is_err() {
                    return events;
                }
                self.barriers.push(Barrier { events, below });
                Vec::new()
            }
            Covered::Done => {
                for (id, below) in below {
                    self.advance(engine, id, below);
                }
                Vec::new()
            }
            Covered::Not => Vec::new(),
        }
    }
}
