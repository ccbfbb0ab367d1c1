#![forbid(unsafe_code)]
//! Which single action would make a refused request fit. Each that is named is enough, as the pool and
//! the device are at that moment; the gentlest comes first.

use super::super::Open;
use super::report::{Action, Inputs};
use crate::alloc::Request;
use crate::alloc::what_if::{Means, Need};

/// The figures that decide.
struct Figures {
    size: u64,
    need: Need,
    /// Held, or to come by backend calls in progress.
    held: u64,
    limit: u64,
    /// What the device can still give; `None`: it does not say.
    device_free: Option<u64>,
}

impl Figures {
    /// Whether `room` more bytes from the device are enough, with what is given back first.
    fn fits_within(&self, room: u64) -> bool {
        room.saturating_add(self.need.reclaimable()) >= self.need.alone
            || self.need.beside().is_some_and(|need| room >= need)
    }

    /// What the limit leaves.
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held)
    }

    /// The lowest limit that is known to be enough.
    fn limit_that_does(&self) -> u64 {
        let kept = self.held.saturating_sub(self.need.reclaimable());
        let alone = kept.saturating_add(self.need.alone);
        let device_free = self.device_free.unwrap_or(u64::MAX);
        let beside = self.need.beside().filter(|&need| need <= device_free);
        beside
            .map_or(alone, |need| alone.min(self.held.saturating_add(need)))
            .max(self.size)
    }
}

pub(super) fn action(open: &Open, request: &Request, inputs: &Inputs) -> Action {
    let total = inputs
        .memory
        .map(|memory| memory.total)
        .or(open.device_total);
    let is_too_large = request.size == u64::MAX
        || total.is_some_and(|total| request.size > total)
        || request.align > open.backend.largest_align();
    if is_too_large {
        let most = total.unwrap_or(0);
        return Action::AskForLess { most };
    }
    let held = open.engine.usage().reserved.saturating_add(open.pledged);
    let said = inputs.memory.map(|memory| memory.free);
    let device_free = open.backend.known_free().or(said);
    let limit = open.limit.min(open.ceiling);
    let mut means = Means {
        // What is not known to be there is not counted on.
        available: match device_free {
            Some(free) => limit.saturating_sub(held).min(free),
            None if limit == u64::MAX => 0,
            None => limit.saturating_sub(held),
        },
        gives_back: open.policy().release_on_failure,
        pages: open.pages,
        segment_align: open.backend.segment_align(),
    };
    let figures = Figures {
        size: request.size,
        need: open.engine.need(request, &means),
        held,
        limit,
        device_free,
    };
    if request.size <= limit {
        let most = inputs.pending.largest.iter();
        if let Some(stream) = most
            .clone()
            .find(|of| of.largest >= request.size_anywhere())
        {
            let (stream, bytes) = (stream.stream, stream.bytes);
            return Action::WaitForStream { stream, bytes };
        }
        if let (Some(other), Some(free)) = (inputs.elsewhere, device_free) {
            let room = free.saturating_add(other.bytes).min(figures.left());
            if figures.fits_within(room) {
                return Action::EmptyOtherPool(other);
            }
        }
    }
    if limit != u64::MAX && figures.fits_within(device_free.unwrap_or(u64::MAX)) {
        let to = figures.limit_that_does();
        if to > limit {
            return Action::RaiseLimit { to };
        }
    }
    if request.size > limit {
        return Action::Unknown;
    }
    if let Some(block) = open
        .engine
        .smallest_block_to_free(request, &means, &figures.need)
    {
        return Action::FreeBlock {
            addr: block.addr,
            size: block.size,
        };
    }
    // All blocks together: what they keep comes back to the device, or stays as one free block.
    means.available = limit.min(device_free.map_or(u64::MAX, |free| free.saturating_add(held)));
    if open.engine.usage().live > 0 && means.gives_back && figures.need.alone <= means.available {
        let room = figures.left().min(device_free.unwrap_or(0));
        let bytes = figures
            .need
            .alone
            .saturating_sub(room.saturating_add(figures.need.reclaimable()));
        return Action::FreeSeveral { bytes };
    }
    Action::Unknown
}
