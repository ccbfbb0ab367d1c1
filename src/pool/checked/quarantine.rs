#![forbid(unsafe_code)]
//! Freed blocks that are not used again for a while, the first that came the first to go.
//!
//! Whoever keeps using a block that it freed thus finds nobody else's data there. Where the host fills
//! freed memory, what the block holds is compared when it leaves, and when `luma_check` asks: a byte
//! that has changed was written after the free. Afterwards the memory is free like any other, and
//! writes to it are not noticed.
//!
//! It is there while the pool knows one stream. From the second stream on, a freed block waits for work of
//! the device as it is, and what leaves the quarantine would have to wait anew.
//!
//! A pool that would fail for want of memory, gives memory back, or ends, empties its quarantine first,
//! so that it keeps no request from being served.

use super::ledger::{Moment, Stacks};
use super::{Checked, Finding, Open, POISON};
use crate::alloc::Block;
use crate::alloc::chunk::{ChunkId, HOME};
use crate::backend::Backend;
use crate::text::{Text, text};
use std::collections::VecDeque;

/// A block that is free, and whose memory serves nobody yet.
#[derive(Debug)]
struct Parked {
    block: Block,
    /// The bytes that were asked for.
    requested: u64,
    chunk: ChunkId,
}

/// A block in quarantine.
#[derive(Debug)]
struct Held {
    parked: Parked,
    /// When it was made, if that is known.
    made: Option<Moment>,
    freed: Moment,
}

#[derive(Debug)]
pub(super) struct Quarantine {
    held: VecDeque<Held>,
    bytes: u64,
    most_bytes: u64,
    most_blocks: u64,
}

impl Held {
    fn ends(&self) -> u64 {
        self.parked.block.addr + self.parked.block.size
    }

    /// What there is to say where the block has changed since it was filled.
    fn examine(&self, backend: &dyn Backend, allocations: u64) -> Option<Finding> {
        let Parked {
            block, requested, ..
        } = &self.parked;
        let (offset, byte) = backend.first_changed(block.addr, block.size, POISON)?;
        let made = match &self.made {
            Some(made) => text!(", allocated {}", made.age(allocations)),
            None => Text::default(),
        };
        Some(Finding {
            message: text!(
                "a write to a freed block: of the {} bytes at {:#x} ({requested} asked for) the one at offset {offset} became {byte:#04x} after the free; freed {}{made}",
                block.size,
                block.addr,
                self.freed.age(allocations),
            ),
            stacks: self.stacks(),
        })
    }

    fn stacks(&self) -> Stacks {
        Stacks {
            allocated: self.made.as_ref().and_then(|made| made.stack.clone()),
            freed: self.freed.stack.clone(),
        }
    }
}

impl Quarantine {
    pub(super) fn new(most_bytes: u64, most_blocks: u64) -> Self {
        Self {
            held: VecDeque::new(),
            bytes: 0,
            most_bytes,
            most_blocks,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a block in; gives it back where there is no room for it at all.
    fn push(&mut self, held: Held) -> Result<(), Held> {
        let size = held.parked.block.size;
        let is_off = self.most_blocks == 0 || size > self.most_bytes;
        if is_off || self.held.try_reserve(1).is_err() {
            return Err(held);
        }
        self.bytes += size;
        self.held.push_back(held);
        Ok(())
    }

    fn is_too_full(&self) -> bool {
        self.bytes > self.most_bytes || self.held.len() as u64 > self.most_blocks
    }

    fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.parked.block.size;
        Some(held)
    }
}

impl Checked {
    fn holding(&self, addr: u64) -> Option<&Held> {
        let mut held = self.quarantine.held.iter().rev();
        held.find(|held| (held.parked.block.addr..held.ends()).contains(&addr))
    }

    /// Why `addr` cannot be freed, where it lies in a block in quarantine.
    pub(in crate::pool) fn describe(&self, addr: u64, allocations: u64) -> Option<Text> {
        let found = self.holding(addr)?;
        let block = found.parked.block;
        let at = match addr - block.addr {
            0 => Text::default(),
            offset => text!("{offset} bytes inside "),
        };
        Some(text!(
            "{addr:#x} is free already (in quarantine): {at}the block of {} bytes at {:#x}, freed {}",
            block.size,
            block.addr,
            found.freed.age(allocations),
        ))
    }

    /// `addr`, which cannot be freed, may lie in a block in quarantine: the call stacks of that, where
    /// they are kept, are to be told.
    pub(super) fn note_bad_free(&mut self, addr: u64) {
        let Some(found) = self.holding(addr).filter(|_| self.stacks) else {
            return;
        };
        let finding = Finding {
            message: text!(
                "the block at {:#x}, which is about to be freed again, is free",
                found.parked.block.addr
            ),
            stacks: found.stacks(),
        };
        self.list(finding);
    }
}

impl Open {
    /// Frees the block that begins at `addr`, in checked mode for now into the quarantine. To be done while
    /// the pool knows one stream. `None`: no live block begins there.
    pub(in crate::pool) fn free_plainly(&mut self, addr: u64) -> Option<Block> {
        let Some(checked) = &mut self.checked else {
            return self.engine.free(addr, 0).ok();
        };
        let requested = self.engine.requested_at(addr)?;
        let (chunk, block) = self.engine.begin_free(addr).ok()?;
        self.backend.fill(block.addr, block.size, POISON);
        let held = Held {
            parked: Parked {
                block,
                requested,
                chunk,
            },
            made: checked.ledger.remove(addr),
            freed: checked.now(self.calls.allocations),
        };
        match checked.quarantine.push(held) {
            Ok(()) => self.shrink_quarantine(Quarantine::is_too_full),
            Err(held) => {
                self.engine.end_free(held.parked.chunk, HOME, 0);
            }
        }
        Some(block)
    }

    /// Lets blocks go, the oldest first, for as long as `must`.
    fn shrink_quarantine(&mut self, must: impl Fn(&Quarantine) -> bool) {
        let allocations = self.calls.allocations;
        let Some(checked) = &mut self.checked else {
            return;
        };
        while must(&checked.quarantine) {
            let Some(held) = checked.quarantine.pop() else {
                break;
            };
            if let Some(finding) = held.examine(&*self.backend, allocations) {
                checked.found(finding);
            }
            self.engine.end_free(held.parked.chunk, HOME, 0);
        }
    }

    /// Lets all blocks in quarantine go. Whether there were any.
    pub(in crate::pool) fn empty_quarantine(&mut self) -> bool {
        let held = self
            .checked
            .as_ref()
            .map_or(0, |checked| checked.quarantined());
        if held > 0 {
            self.shrink_quarantine(|_| true);
        }
        held > 0
    }

    /// The memory is gone: what is in quarantine is not looked at, and no block is known any more.
    pub(in crate::pool) fn forget_checked(&mut self) {
        let Some(checked) = &mut self.checked else {
            return;
        };
        checked.ledger.clear();
        while let Some(held) = checked.quarantine.pop() {
            self.engine.end_free(held.parked.chunk, HOME, 0);
        }
    }

    /// Compares what the blocks in quarantine hold. What has changed is filled anew, so that it is
    /// found once.
    pub(super) fn look_into_quarantine(&mut self) {
        let allocations = self.calls.allocations;
        let Some(checked) = &mut self.checked else {
            return;
        };
        for at in 0..checked.quarantine.held.len() {
            let held = &checked.quarantine.held[at];
            let block = held.parked.block;
            if let Some(finding) = held.examine(&*self.backend, allocations) {
                self.backend.fill(block.addr, block.size, POISON);
                checked.found(finding);
            }
        }
    }
}
