#![forbid(unsafe_code)]
//! The short ways of calls on a pool that tells streams apart: nothing is asked or recorded for them.

use super::Open;
use super::ordered::Passed;
use super::unordered::is_simple;
use crate::alloc::chunk::{HOME, Lane};
use crate::backend::streams::StreamKey;
use crate::stream::SlotId;

/// Where frees go whose slot stays what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) slot: SlotId,
    pub(super) lane: Lane,
}

impl Open {
    /// Decides which calls take a short way: none while somebody watches or waits.
    pub(super) fn set_quick(&mut self) {
        let is_quick = !self.is_watched && self.waiters == 0;
        self.quick = self.unordered.filter(|_| is_quick);
        let is_quick = is_quick && self.engine.is_separate() && self.caches.is_none();
        let default = self.streams.find(StreamKey::DEFAULT);
        // A slot with this lane is never closed.
        self.quick_default = default
            .filter(|&slot| is_quick && self.streams.lane(slot) == HOME)
            .map(|slot| Standing { slot, lane: HOME });
    }

    /// The lane of a stream whose requests take the short way.
    pub(super) fn quick_lane(&self, passed: Passed) -> Option<Lane> {
        let standing = self.quick_default.filter(|_| passed.is_default())?;
        Some(standing.lane)
    }

    /// Frees a block in the order of a stream by the short way. `false`: that is not to be had, and nothing was
    /// done.
    pub(super) fn free_quickly(&mut self, addr: u64, passed: Passed) -> bool {
        let Some(Standing { slot, lane }) = self.quick_default.filter(|_| passed.is_default())
        else {
            return false;
        };
        let number = self.streams.clock(slot).now();
        let freed = self.engine.free_in_if(addr, lane, number, is_simple);
        let is_freed = matches!(freed, Ok(Some(_)));
        if is_freed {
            self.streams.clock_mut(slot).want();
            self.calls.frees += 1;
        }
        is_freed
    }
}
