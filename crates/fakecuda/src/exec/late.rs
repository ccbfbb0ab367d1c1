//! Work that runs as late as the rules allow (`FAKECUDA_EXEC=lazy`): what is left to chance, and when
//! it runs though nobody asks for it.

use super::{Exec, spawn_thread};
use crate::state;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Numbers that look random, the same for the same seed.
#[derive(Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// From `FAKECUDA_SEED`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `bound`, which is not 0 (splitmix64).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Puts things in another order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            things.swap(last, other);
        }
    }
}

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// After so many looks without any call a program is taken to wait for something that queued work does,
/// such as a host function. A device would have done it by then.
const QUIET_LOOKS: u32 = 4;

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Counts a call.
pub fn count_call() {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

impl Exec {
    /// Sees to it that queued work runs at some time.
    pub(super) fn watch(&mut self) {
        if !self.is_watched {
            // Without a thread work waits until it is asked for.
            self.is_watched = spawn_thread("fakecuda-late", watch).is_ok();
        }
    }
}

/// Lets all run when the program is quiet. Ends when nothing is queued.
fn watch() {
    let (mut calls, mut quiet) = (0, 0);
    loop {
        std::thread::sleep(LOOK);
        let now = CALLS.load(Ordering::Relaxed);
        quiet = if now == calls { quiet + 1 } else { 0 };
        calls = now;
        let mut guard = state::lock();
        if !guard.exec.has_pending() {
            guard.exec.is_watched = false;
            return;
        }
        if quiet >= QUIET_LOOKS {
            guard.exec.demand_all();
        }
    }
}
