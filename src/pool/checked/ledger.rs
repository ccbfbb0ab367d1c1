#![forbid(unsafe_code)]
//! When and where blocks were made and freed.

use crate::flag::Raised;
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most frames of a call stack that are shown.
const MOST_FRAMES: usize = 32;
/// How the names of functions begin that are luma's own, or those that take call stacks.
const OWN: [&str; 9] = [
    "luma::", "<luma::", "std::", "<std::", "core::", "<core::", "alloc::", "<alloc::", "__rust_",
];

thread_local! {
    /// Set while this thread takes a call stack.
    static IN_STACK: Cell<bool> = const { Cell::new(false) };
}

/// Held while a call stack is taken or its functions are named, and by a fork: the unwinder has a lock of
/// its own, which a child would find taken for ever. Nothing of luma's is locked after it.
static UNWINDING: Mutex<()> = Mutex::new(());

fn unwinding() -> MutexGuard<'static, ()> {
    UNWINDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps call stacks from being taken and named, for a fork.
pub(in crate::pool) fn lock_for_fork() -> MutexGuard<'static, ()> {
    unwinding()
}

/// A call stack. Its functions get their names when it is shown.
#[derive(Clone, Debug)]
pub(super) struct Stack(Arc<Backtrace>);

impl Stack {
    /// That of the caller, where it is wanted.
    pub(super) fn here(wanted: bool) -> Option<Self> {
        if !wanted || IN_STACK.get() {
            return None;
        }
        let _inside = Raised::new(&IN_STACK);
        let _unwinding = unwinding();
        Some(Self(Arc::new(Backtrace::force_capture())))
    }

    /// Its frames, without luma's own at the top, under a heading.
    pub(super) fn named<'a>(&'a self, heading: &'a str) -> Named<'a> {
        Named {
            heading,
            stack: self,
        }
    }
}

/// A call stack with its heading.
pub(super) struct Named<'a> {
    heading: &'a str,
    stack: &'a Stack,
}

/// The name in the first line of a frame, which is `  12: name`.
fn name(line: &str) -> Option<&str> {
    let (number, name) = line.trim_start().split_once(": ")?;
    number
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(name)
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  {}:", self.heading)?;
        let unwinding = unwinding();
        let text = self.stack.0.to_string();
        drop(unwinding);
        let is_own =
            |line: &str| name(line).is_some_and(|name| OWN.iter().any(|own| name.starts_with(own)));
        let is_first = |line: &&str| name(line).is_some_and(|_| !is_own(line));
        let all = || text.lines();
        // Where every frame is luma's own, as in its tests, all are shown.
        let skipped = all().position(|line| is_first(&line)).unwrap_or(0);
        let mut frames = 0;
        for line in all().skip(skipped) {
            frames += usize::from(name(line).is_some());
            if frames > MOST_FRAMES {
                return f.write_str("\n    ...");
            }
            let shown = name(line).unwrap_or_else(|| line.trim_start());
            let indent = if name(line).is_some() {
                "    "
            } else {
                "      "
            };
            write!(f, "\n{indent}{shown}")?;
        }
        Ok(())
    }
}

/// Where a block was made and freed, as far as that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    pub(super) allocated: Option<Stack>,
    pub(super) freed: Option<Stack>,
}

impl fmt::Display for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stack) = &self.allocated {
            stack.named("allocated by").fmt(f)?;
        }
        if let Some(stack) = &self.freed {
            stack.named("freed by").fmt(f)?;
        }
        Ok(())
    }
}

/// When something was done: by the clock, by the pool's allocations until then, and where.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    at: Instant,
    allocations: u64,
    pub(super) stack: Option<Stack>,
}

impl Moment {
    pub(super) fn now(allocations: u64, stacks: bool) -> Self {
        Self {
            at: Instant::now(),
            allocations,
            stack: Stack::here(stacks),
        }
    }

    /// How long ago it was, when the pool has had so many allocations.
    pub(super) fn age(&self, allocations: u64) -> Age {
        Age {
            seconds: self.at.elapsed().as_secs_f64(),
            allocations: allocations.saturating_sub(self.allocations),
        }
    }
}

/// How long ago something was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    seconds: f64,
    allocations: u64,
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds,
            allocations,
        } = self;
        write!(f, "{seconds:.3} s and {allocations} allocations ago")
    }
}

/// When each live block was made, by its address.
#[derive(Debug, Default)]
pub(super) struct Ledger(HashMap<u64, Moment>);

impl Ledger {
    /// A block was made. Without host memory for it nothing is known of it later.
    pub(super) fn add(&mut self, addr: u64, made: Moment) {
        if self.0.try_reserve(1).is_ok() {
            self.0.insert(addr, made);
        }
    }

    /// Its block was freed.
    pub(super) fn remove(&mut self, addr: u64) -> Option<Moment> {
        self.0.remove(&addr)
    }

    pub(super) fn get(&self, addr: u64) -> Option<&Moment> {
        self.0.get(&addr)
    }

    /// Every block is gone.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_stack_names_the_functions_below_luma() {
        let stack = Stack::here(true).expect("it is wanted");
        let shown = stack.named("made by").to_string();
        assert!(shown.starts_with("\n  made by:\n    "), "{shown}");
        assert!(Stack::here(false).is_none());
    }

    #[test]
    fn the_first_line_of_a_frame_has_its_name() {
        assert_eq!(name("  12: main"), Some("main"));
        assert_eq!(name("   3: <a::B as c::D>::e"), Some("<a::B as c::D>::e"));
        assert_eq!(name("             at ./a.c:3:5"), None);
        assert_eq!(name("             at C: ./a.c"), None);
    }
}
