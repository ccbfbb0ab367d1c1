#![forbid(unsafe_code)]
//! Checked mode (`LUMA_DEBUG`): what a pool does beside its work to find misuse.
//!
//! - every invariant is checked after every call;
//! - `quarantine`: freed blocks are not used again for a while, and on memory that the host fills,
//!   writes to them are found;
//! - `ledger`: when and where each block was made and freed;
//! - `leaks`: the blocks that are live at the end.
//!
//! A pool that is not watched pays one branch a call. What is found is gathered under the pool's lock
//! and told without it: whoever hears of it may call luma, and naming the functions of a call stack
//! takes long.

mod leaks;
mod ledger;
mod quarantine;

pub use leaks::list_at_exit;
pub(super) use leaks::tell_leaks;
pub(super) use ledger::lock_for_fork;

use super::{Guard, Open, Pool, recorder};
use crate::alloc::Block;
use crate::config::{Checks, environment};
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::text::{Text, text};
use ledger::{Ledger, Moment, Stack, Stacks};
use quarantine::Quarantine;
use std::fmt::Write;

/// What freed blocks are filled with.
pub(super) const POISON: u8 = 0xDF;

/// What checked mode knows of a pool.
#[derive(Debug)]
pub(super) struct Checked {
    stacks: bool,
    ledger: Ledger,
    quarantine: Quarantine,
    /// Not logged yet.
    findings: Vec<Finding>,
    /// The first one since `check` last told one.
    untold: Option<Text>,
    /// How many came after it.
    more: u64,
}

/// A misuse that was found: what is to be said of it, and where its block was made and freed.
#[derive(Debug)]
pub(super) struct Finding {
    message: Text,
    stacks: Stacks,
}

impl Checked {
    pub(super) fn new(checks: Checks) -> Self {
        Self {
            stacks: checks.stacks,
            ledger: Ledger::default(),
            quarantine: Quarantine::new(checks.quarantine_bytes, checks.quarantine_blocks),
            findings: Vec::new(),
            untold: None,
            more: 0,
        }
    }

    /// Bytes of blocks that are free and not to be used yet.
    pub(super) fn quarantined(&self) -> u64 {
        self.quarantine.bytes()
    }

    fn now(&self, allocations: u64) -> Moment {
        Moment::now(allocations, self.stacks)
    }

    fn found(&mut self, finding: Finding) {
        match self.untold {
            None => self.untold = Some(finding.message.clone()),
            Some(_) => self.more += 1,
        }
        self.list(finding);
    }

    /// To be logged. Without memory for it nothing is.
    fn list(&mut self, finding: Finding) {
        if self.findings.try_reserve(1).is_ok() {
            self.findings.push(finding);
        }
    }
}

impl Open {
    /// A request was served.
    pub(super) fn note_allocated(&mut self, block: Block) {
        let allocations = self.calls.allocations;
        if let Some(checked) = &mut self.checked {
            let now = checked.now(allocations);
            checked.ledger.add(block.addr, now);
        }
    }

    /// A block was freed: what a record and checked mode want to know of that.
    pub(super) fn note_freed(&mut self, addr: u64) -> Result<()> {
        if let Some(checked) = &mut self.checked {
            checked.ledger.remove(addr);
        }
        if self.record {
            recorder::freed(self.id, addr);
        }
        self.check_in_debug()
    }

    /// A free was refused.
    pub(super) fn note_bad_free(&mut self, addr: u64) {
        if let Some(checked) = &mut self.checked {
            checked.note_bad_free(addr);
        }
    }

    /// The checks that end each call in checked mode.
    pub(super) fn check_in_debug(&self) -> Result<()> {
        match self.checked {
            Some(_) => self.check(),
            None => Ok(()),
        }
    }

    /// What is to be told once the lock is released.
    pub(super) fn take_findings(&mut self) -> Vec<Finding> {
        self.checked
            .as_mut()
            .map(|checked| std::mem::take(&mut checked.findings))
            .unwrap_or_default()
    }

    /// What was found since this was last asked, as an error.
    fn tell_found(&mut self) -> Result<()> {
        let Some(checked) = &mut self.checked else {
            return Ok(());
        };
        let Some(first) = checked.untold.take() else {
            return Ok(());
        };
        let message = match std::mem::take(&mut checked.more) {
            0 => first,
            more => text!("{first} (and {more} more since luma_check last told)"),
        };
        Err(Error::new(Status::Corrupted, message))
    }
}

impl Pool {
    /// Walks everything, and looks at the blocks in quarantine.
    ///
    /// # Errors
    /// `Corrupted`: the message names the first rule that is broken, or a write to a freed block that
    /// was found since this last told one.
    pub fn check(&self) -> Result<()> {
        let mut guard = self.lock()?;
        guard.look_into_quarantine();
        let checked = guard.check().and_then(|()| guard.tell_found());
        tell(guard);
        checked
    }
}

/// Releases the lock, and tells what was found under it.
pub(super) fn tell(mut guard: Guard<'_>) {
    let findings = guard.take_findings();
    drop(guard);
    tell_findings(&findings);
}

/// Tells what was found. To be done without any lock.
pub(super) fn tell_findings(findings: &[Finding]) {
    for finding in findings {
        log::log(Level::Error, || {
            text!("{}{}", finding.message, finding.stacks)
        });
    }
}

/// Tells of a free that was refused, where `LUMA_DEBUG` asks for it. To be done without any lock.
pub fn tell_bad_free(error: &Error) {
    if environment().debug {
        let stack = Stack::here(environment().debug_stacks);
        log::log(Level::Error, || {
            let mut message = String::new();
            let told = write!(message, "a bad free: {error}").and_then(|()| {
                stack.map_or(Ok(()), |stack| {
                    write!(message, "{}", stack.named("freed again by"))
                })
            });
            told.map_or_else(|_| "a bad free".into(), |()| message.into())
        });
    }
}
