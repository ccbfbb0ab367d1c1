#![forbid(unsafe_code)]
//! Small numbers for threads: each thread has one while it lives, and the next thread may have it
//! afterwards.
//!
//! A number only says which cache a thread uses. What is in a cache is guarded by the cache's own
//! mutex, so that two threads with one number would be slow, not wrong, and no access here needs to
//! be ordered with any other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads have a number at once. Others go without.
pub(super) const SLOTS: usize = 64;

/// A thread that did not ask yet, or found none.
const UNKNOWN: u8 = u8::MAX;
/// A thread that gave its number up because it ends.
const ENDED: u8 = u8::MAX - 1;

/// A bit for each number that a thread has.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number. It has no destructor, so that it can be read while the thread ends.
    static MINE: Cell<u8> = const { Cell::new(UNKNOWN) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Gives the number up when its thread ends. Where it does not run, the number stays taken.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let mine = MINE.replace(ENDED);
        if usize::from(mine) < SLOTS {
            TAKEN.fetch_and(!(1 << mine), Ordering::Relaxed);
        }
    }
}

/// The calling thread's number; `None`: all are taken, or the thread ends.
#[inline]
pub(super) fn mine() -> Option<usize> {
    let mine = usize::from(MINE.get());
    if mine < SLOTS { Some(mine) } else { claim() }
}

#[cold]
fn claim() -> Option<usize> {
    if MINE.get() == ENDED {
        return None;
    }
    let claimed = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
        (taken != u64::MAX).then(|| taken | (taken + 1))
    });
    let slot = claimed.ok()?.trailing_ones() as usize;
    if AT_END.try_with(|_| ()).is_err() {
        // Nobody would give it up.
        TAKEN.fetch_and(!(1 << slot), Ordering::Relaxed);
        MINE.set(ENDED);
        return None;
    }
    MINE.set(slot as u8);
    Some(slot)
}

/// In a forked child: its one thread keeps its number, and those of the parent's other threads are free.
pub(in crate::pool) fn after_fork() {
    let mine = usize::from(MINE.get());
    let taken = if mine < SLOTS { 1 << mine } else { 0 };
    TAKEN.store(taken, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_number_while_it_lives() {
        // Other tests' threads take numbers, too; there are not so many of them.
        let first = std::thread::scope(|scope| {
            let one = scope.spawn(|| (mine(), mine())).join().unwrap();
            assert_eq!(one.0, one.1);
            one.0
        });
        assert!(first.is_some_and(|slot| slot < SLOTS));
        for _ in 0..2 * SLOTS {
            assert!(std::thread::spawn(mine).join().unwrap().is_some());
        }
    }
}
