//! What must hold after every operation of a program, and at its end.

use crate::op::{Op, STREAMS};
use crate::run::{Checked, Run};

impl Run {
    pub(super) fn check(&mut self) -> Checked {
        self.forget_lost();
        self.pool.check().map_err(|error| error.to_string())?;
        if self.setup.is_watchful {
            self.check_stats()?;
        }
        let simulated = &self.device.simulated;
        agree!(simulated.violations(), [""; 0], "violations");
        agree!(
            simulated.context().violations(),
            [""; 0],
            "violations of streams"
        );
        agree!(self.device.seen().faults, [""; 0], "faults");
        Ok(())
    }

    pub(super) fn check_stats(&mut self) -> Checked {
        // The default stream is asked then.
        {
            let mut state = self.state();
            let now = state.places.default.now();
            if state.is_separate {
                state.ledger.recorded(0, now);
            }
        }
        let stats = self.pool.stats().map_err(|error| error.to_string())?;
        if self.streams_fired() {
            self.state().ledger.doubt();
        }
        let seen = self.device.seen();
        let (memory, returned) = (seen.memory.clone(), seen.returned);
        let state = self.state();
        let requested: u64 = state.live.iter().map(|block| block.requested).sum();
        agree!(stats.allocated_bytes, state.allocated(), "allocated");
        agree!(stats.requested_bytes, requested, "requested");
        agree!(stats.live_blocks, state.live.len() as u64, "live blocks");
        agree!(stats.reserved_bytes, memory.bytes(), "reserved");
        agree!(self.device.simulated.used(), memory.bytes(), "used");
        agree!(stats.peak_reserved_bytes, seen.most, "most reserved");
        agree!(stats.peak_bytes, self.peak, "most allocated");
        agree!(stats.segments, seen.grants.len() as u64, "segments");
        agree!(
            stats.backend_allocations,
            seen.granted,
            "backend allocations"
        );
        agree!(stats.backend_releases, returned, "backend releases");
        agree!(stats.free_calls, self.free_calls, "frees");
        agree!(stats.out_of_memory_count, self.out_of_memory, "refusals");
        require!(stats.alloc_calls <= self.alloc_calls, "allocations");
        require!(stats.memory_limit == self.limit, "limit");
        let free = memory.without(&state.live());
        let pending = stats.pending_bytes;
        require!(
            pending + stats.allocated_bytes <= stats.reserved_bytes,
            "{pending} bytes pending, {} allocated, of {}",
            stats.allocated_bytes,
            stats.reserved_bytes
        );
        if !state.is_certain {
            return Ok(());
        }
        if !state.is_separate {
            agree!(pending, 0, "pending with one stream");
            return Ok(());
        }
        let unfinished = state
            .ledger
            .intervals(|freed| !freed.is_finished(&state.places));
        require!(
            pending >= unfinished.bytes(),
            "{pending} bytes pending, {} in use by work",
            unfinished.bytes()
        );
        let unsettled = state
            .ledger
            .intervals(|freed| !freed.is_settled(&state.places));
        require!(
            pending <= unsettled.bytes(),
            "{pending} bytes pending, {} known to be done of {}",
            free.without(&unsettled).bytes(),
            free.bytes()
        );
        Ok(())
    }

    /// Ends all work and frees all blocks: nothing may be left.
    pub fn finish(mut self) -> Checked {
        for call in [
            Op::FailBackend { call: 1 << 40 },
            Op::FailStream { call: 1 << 40 },
        ] {
            self.step(&call)?;
        }
        for slot in 1..STREAMS {
            self.step(&Op::EndCapture { stream: slot })?;
        }
        let live = self.state().live.len();
        let closes_early = self.alloc_calls % 4 == 3;
        let context = self.device.simulated.context();
        if !closes_early {
            for place in (0..live).rev() {
                self.step(&Op::FreeOwn { place })?;
            }
            let mut state = self.state();
            for capture in &mut state.places.captures {
                capture.graphs.clear();
            }
            drop(state);
            for slot in 0..STREAMS {
                self.step(&Op::Finish { stream: slot })?;
                self.step(&Op::ReleaseStream { stream: slot })?;
            }
            // What waits for another stream's work ends with that.
            for _ in 0..2 {
                self.step(&Op::FinishDestroyed)?;
                (0..STREAMS).try_for_each(|slot| self.step(&Op::Finish { stream: slot }))?;
            }
            self.step(&Op::EmptyCache)?;
            let stats = self.pool.stats().map_err(|error| error.to_string())?;
            agree!(stats.pending_bytes, 0, "pending at the end");
            self.step(&Op::EmptyCache)?;
            let stats = self.pool.stats().map_err(|error| error.to_string())?;
            agree!(stats.reserved_bytes, 0, "reserved at the end");
            agree!(
                stats.backend_allocations,
                stats.backend_releases,
                "backend allocations and releases"
            );
        }
        let mut state = self.state();
        state.live.clear();
        for capture in &mut state.places.captures {
            capture.graphs.clear();
        }
        drop(state);
        let left = if closes_early { live as u64 } else { 0 };
        agree!(
            self.pool.close().map_err(|e| e.to_string())?,
            left,
            "live at the end"
        );
        self.check_device()?;
        agree!(context.events(), 0, "events left");
        agree!(self.device.simulated.used(), 0, "memory left");
        agree!(self.device.simulated.grants(), 0, "grants left");
        Ok(())
    }

    fn check_device(&self) -> Checked {
        let simulated = &self.device.simulated;
        agree!(simulated.violations(), [""; 0], "violations");
        agree!(
            simulated.context().violations(),
            [""; 0],
            "violations of streams"
        );
        agree!(self.device.seen().faults, [""; 0], "faults");
        Ok(())
    }
}
