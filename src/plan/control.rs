#![forbid(unsafe_code)]
//! When a search must stop, and whom it tells how far it is.

use std::fmt;
use std::time::Instant;

use super::result::Stopped;

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes moved by the best plan so far.
    pub extra_bytes: u64,
    /// No plan moves fewer.
    pub lower_bound: u64,
    /// Steps done, in units of the level's own.
    pub work: u64,
}

/// The callback of a search: it answers false to stop it. Any thread may call it.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) -> bool + Sync);

/// What bounds a search. The default bounds nothing: seed 0, one thread.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// When to stop at the latest.
    pub deadline: Option<Instant>,
    /// Equal seeds give equal sequences of improvements.
    pub seed: u64,
    /// Threads to use; the result does not depend on it. 0: as many as there are processors.
    pub threads: usize,
    /// Steps after which to stop; a result that this bounds is the same on every machine.
    pub work: Option<u64>,
    /// Told of every improvement, and now and then besides.
    pub progress: Option<OnProgress<'a>>,
}

impl Default for Control<'_> {
    fn default() -> Self {
        Self {
            deadline: None,
            seed: 0,
            threads: 1,
            work: None,
            progress: None,
        }
    }
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("deadline", &self.deadline)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .field("work", &self.work)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl Control<'_> {
    /// Whether a search that has done `work` steps must stop, and why. This reads the clock: not
    /// for every step of a short loop.
    #[must_use]
    pub fn should_stop(&self, work: u64) -> Option<Stopped> {
        if self.work.is_some_and(|budget| work >= budget) {
            return Some(Stopped::Work);
        }
        let late = self.deadline.is_some_and(|at| Instant::now() >= at);
        late.then_some(Stopped::TimeLimit)
    }

    /// Tells the caller how far the search is; [`Stopped::Caller`] if it is to stop.
    #[must_use]
    pub fn report(&self, progress: Progress) -> Option<Stopped> {
        let stop = self.progress.is_some_and(|tell| !tell(progress));
        stop.then_some(Stopped::Caller)
    }
}
