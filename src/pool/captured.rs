#![forbid(unsafe_code)]
//! Allocating and freeing while a stream is being captured: what belongs to a graph.

use super::calls::Locked;
use super::growth::host_memory;
use super::ordered::{Passed, Turn, USED, failed};
use super::{Guard, Open, Pool};
use crate::alloc::host_memory::TryPush;
use crate::alloc::{Block, HostMemoryExhausted};
use crate::backend::streams::{Capture, StreamKey};
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::stream::captures::Owner;
use crate::text::text;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The mark of a live block that belongs to a capture, or is used by one.
pub(super) const CAPTURED: u16 = 1 << 15;

impl Pool {
    /// The same for a stream that is being captured.
    #[cold]
    pub(super) fn enter_capture<'a>(
        &'a self,
        mut guard: Guard<'a>,
        passed: Passed,
        capture: Capture,
    ) -> Locked<'a, Result<Turn>> {
        if capture.id == 0 {
            let error = Error::new(
                Status::InvalidValue,
                "the stream is in a capture that was broken before this call: end it first",
            );
            return Ok((guard, Err(error)));
        }
        if let Err(error) = self.separate(&mut guard) {
            return Ok((guard, Err(host_memory(error))));
        }
        if !guard.captures.knows(capture.id) {
            guard.collect_captures();
            let source = guard.source;
            let mut ended = Arc::new(AtomicBool::new(false));
            let handed = ended.clone();
            let retained;
            (guard, retained) = self.unlocked_aside(guard, move |_| {
                let retained = source
                    .streams()
                    .map_or(Ok(()), |streams| streams.retain(capture, handed));
                if let Err(error) = &retained {
                    log::log(Level::Warning, || {
                        text!(
                            "memory of a capture stays with it until the pool ends, since nobody tells when its graphs are gone: {error}"
                        )
                    });
                }
                retained
            })?;
            if let Err(error) = retained {
                if error.status() != Status::Unsupported {
                    return Ok((guard, Err(failed(error))));
                }
                ended = Arc::new(AtomicBool::new(false));
            }
            // Another thread that captures with it may have been faster.
            if !guard.captures.knows(capture.id) {
                if let Err(error) = guard.captures.add(capture.id, ended) {
                    return Ok((guard, Err(host_memory(error))));
                }
            }
        }
        let open = &mut *guard;
        if let Err(error) = open.captures.note_inside(capture.id, passed.stream) {
            return Ok((guard, Err(host_memory(error))));
        }
        let lane = open
            .captures
            .lane(&mut open.engine, capture.id, passed.place.key)
            .map_err(host_memory)
            .and_then(|lane| {
                lane.ok_or_else(|| Error::new(Status::InvalidValue, "the capture has ended"))
            });
        let epoch = open.epoch;
        let turn = lane.map(|lane| Turn {
            stream: passed.stream,
            lane,
            slot: None,
            capture: Some(capture.id),
            epoch,
            is_recordable: false,
        });
        Ok((guard, turn))
    }

    /// What belongs to a block that was handed out.
    pub(super) fn hand_out(
        open: &mut Open,
        turn: Turn,
        block: Block,
    ) -> Result<Block, HostMemoryExhausted> {
        let Some(capture) = turn.capture.filter(|&id| open.captures.knows(id)) else {
            return Ok(block);
        };
        let is_own = true;
        if let Err(error) = open.captures.claim(block.addr, Owner { capture, is_own }) {
            // It was nobody's before.
            let _ = open.engine.free_in(block.addr, turn.lane, 0);
            return Err(error);
        }
        open.mark(block.addr, CAPTURED);
        Ok(block)
    }
}

impl Open {
    /// Takes back what belonged to graphs that are gone.
    pub(super) fn collect_captures(&mut self) -> bool {
        let mut any = false;
        if self.captured_calls > 0 {
            return any;
        }
        while let Some(parked) = self.captures.take_ended(&mut self.engine) {
            any = true;
            for parked in parked {
                self.streams.unpark(&mut self.engine, parked);
            }
        }
        any
    }

    pub(super) fn mark(&mut self, addr: u64, mark: u16) {
        let marks = self.engine.tag(addr).unwrap_or(0);
        self.engine.set_tag(addr, marks | mark);
    }

    /// Frees a block in the order of a stream that is being captured, or one that belongs to a capture or
    /// is used by some.
    #[cold]
    pub(super) fn free_for_capture(
        &mut self,
        addr: u64,
        turn: Turn,
        marks: u16,
    ) -> Result<Option<Block>> {
        let is_used = marks & USED != 0;
        let mut owners = Vec::new();
        for owner in self.captures.owners(addr) {
            owners.try_push(owner).map_err(host_memory)?;
        }
        if let Some(capture) = turn.capture {
            if owners.iter().all(|owner| owner.capture != capture) {
                let is_own = false;
                owners
                    .try_push(Owner { capture, is_own })
                    .map_err(host_memory)?;
            }
        }
        if let (&[owner], false) = (&*owners, is_used) {
            if owner.is_own && turn.capture == Some(owner.capture) {
                // Inside its capture it serves the stream again.
                self.captures.release(addr);
                return Ok(self.engine.free_in(addr, turn.lane, 0).ok());
            }
        }
        // Work outside of the captures, whose order it is freed in, may use it yet; in a capture
        // nobody knows whose.
        let slot = match turn.slot {
            Some(slot) => slot,
            None => self
                .slot_of(StreamKey::UNKNOWN, None)
                .map_err(host_memory)?,
        };
        for owner in &owners {
            let reserved = self.captures.reserve_parking(owner.capture);
            reserved.map_err(host_memory)?;
        }
        self.streams
            .reserve_parking(addr, is_used)
            .map_err(host_memory)?;
        let number = self.streams.clock_mut(slot).want();
        let Ok((chunk, block)) = self.engine.begin_free(addr) else {
            return Ok(None);
        };
        let used = is_used.then_some(addr);
        let parked = self
            .streams
            .park(chunk, slot, number, used, owners.len() as u32);
        match parked {
            Some(parked) => {
                for owner in &owners {
                    self.captures.park(owner.capture, parked);
                }
            }
            None => self.streams.list(&mut self.engine, chunk, slot, number),
        }
        self.captures.release(addr);
        Ok(Some(block))
    }
}
