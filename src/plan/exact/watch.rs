#![forbid(unsafe_code)]
//! How long the exact level goes on.

use crate::plan::control::{Control, OnProgress, Progress};
use crate::plan::result::Stopped;

/// Steps between two looks at the clock.
const INTERVAL: u64 = 1 << 14;

/// Counts steps, and asks now and then whether to stop.
pub struct Watch<'a> {
    control: &'a Control<'a>,
    /// Steps done, and those at which to ask next.
    work: u64,
    next: u64,
    /// What the caller is told.
    pub extra_bytes: u128,
    pub lower_bound: u128,
    stopped: Option<Stopped>,
}

impl<'a> Watch<'a> {
    /// Nothing done yet; the best plan so far moves `extra_bytes`.
    pub fn new(control: &'a Control<'a>, extra_bytes: u128) -> Self {
        Self {
            control,
            work: 0,
            next: 0,
            extra_bytes,
            lower_bound: 0,
            stopped: None,
        }
    }

    /// Counts steps; false when it is time to stop.
    pub fn go_on(&mut self, steps: u64) -> bool {
        self.work = self.work.saturating_add(steps);
        let budget = self.control.work.unwrap_or(u64::MAX);
        if self.stopped.is_none() && self.work >= self.next.min(budget) {
            self.next = self.work.saturating_add(INTERVAL);
            self.stopped = self
                .control
                .should_stop(self.work)
                .or_else(|| self.report());
        }
        self.stopped.is_none()
    }

    /// Lets a search have so many steps, or what is left of them; they count as done if it fails.
    pub fn lend<T, E>(
        &mut self,
        steps: u64,
        search: impl FnOnce(&Control<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let left = self
            .control
            .work
            .map_or(u64::MAX, |work| work.saturating_sub(self.work));
        let (this, outer) = (&*self, self.control);
        let tell = |_: Progress| this.report().is_none();
        let control = Control {
            work: Some(steps.min(left)),
            progress: outer.progress.is_some().then_some(&tell as OnProgress<'_>),
            ..*outer
        };
        let result = search(&control);
        if result.is_err() {
            self.go_on(steps);
        }
        result
    }

    /// Why it is time to stop, if it is.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    fn report(&self) -> Option<Stopped> {
        self.control.report(Progress {
            extra_bytes: self.extra_bytes.try_into().unwrap_or(u64::MAX),
            lower_bound: self.lower_bound.try_into().unwrap_or(u64::MAX),
            work: self.work,
        })
    }
}
