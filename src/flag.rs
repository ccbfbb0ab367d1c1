#![forbid(unsafe_code)]
//! A flag of a thread that is raised for as long as a guard lives, also through a panic.

use std::cell::Cell;
use std::thread::LocalKey;

/// Raises a flag; dropping it puts the flag back to what it was.
pub(crate) struct Raised {
    flag: &'static LocalKey<Cell<bool>>,
    before: bool,
}

impl Raised {
    /// Raises `flag`, which has no destructor.
    pub(crate) fn new(flag: &'static LocalKey<Cell<bool>>) -> Self {
        Self {
            flag,
            before: flag.replace(true),
        }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.flag.set(self.before);
    }
}
