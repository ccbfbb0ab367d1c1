#![forbid(unsafe_code)]
//! Captures that the program is seen to begin and end, whatever the stream.
//!
//! An event for all work of a context breaks a capture that goes on in it, and the driver does not say in
//! time that one does. Whoever sees the program's calls tells of each capture here, and no such event is
//! recorded meanwhile. Where nobody tells, only the captures are known in which luma was called.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The stream that a capture is begun and ended on. Streams that join a capture have none of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The stream's handle.
    pub stream: usize,
    /// Where that means another stream to each thread and context: the numbers of both.
    pub own: (u64, usize),
}

/// A context by its number and its handle.
pub type Context = (u64, usize);

/// Captures that have begun and not ended.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Those with their contexts, as far as there was memory to list them.
static LISTED: Mutex<Vec<(Origin, Option<Context>)>> = Mutex::new(Vec::new());
/// Threads that are recording an event for everything.
static RECORDING: AtomicUsize = AtomicUsize::new(0);

fn listed() -> MutexGuard<'static, Vec<(Origin, Option<Context>)>> {
    LISTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program is about to begin a capture on a stream of a context. Waits for events that are being recorded,
/// which does not take long: recording one waits for nothing.
pub fn begin(origin: Origin, context: Option<Context>) {
    OPEN.fetch_add(1, Ordering::SeqCst);
    let mut listed = listed();
    if listed.try_reserve(1).is_ok() {
        listed.push((origin, context));
    }
    drop(listed);
    while RECORDING.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// The capture of a stream has ended, or did not begin. Nothing, if the stream has none.
pub fn end(origin: Origin) {
    let mut listed = listed();
    if let Some(at) = listed.iter().rposition(|&(other, _)| other == origin) {
        listed.swap_remove(at);
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a capture goes on that was begun on the stream.
pub fn has(origin: Origin) -> bool {
    listed().iter().any(|&(other, _)| other == origin)
}

/// Captures end with their contexts: those are forgotten that `has_ended` names. No lock is held while it is
/// asked.
pub(super) fn end_in(has_ended: impl Fn(Context) -> bool) {
    let open = listed().clone();
    for (origin, context) in open {
        if context.is_some_and(&has_ended) {
            end(origin);
        }
    }
}

/// Whether captures are known to go on.
pub fn are_open() -> bool {
    OPEN.load(Ordering::SeqCst) != 0
}

/// Held while the process forks, so that the child finds the list whole.
pub(crate) struct ForkGuard(MutexGuard<'static, Vec<(Origin, Option<Context>)>>);

impl ForkGuard {
    pub(crate) fn lock() -> Self {
        Self(listed())
    }

    /// In a forked child nothing is being captured or recorded.
    pub(crate) fn in_child(&mut self) {
        self.0.clear();
        OPEN.store(0, Ordering::SeqCst);
        RECORDING.store(0, Ordering::SeqCst);
    }
}

/// No capture begins while it is held.
#[derive(Debug)]
pub(super) struct Between(());

impl Between {
    /// `None`: a capture goes on.
    pub(super) fn captures() -> Option<Self> {
        RECORDING.fetch_add(1, Ordering::SeqCst);
        let between = Self(());
        (!are_open()).then_some(between)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        let _ = RECORDING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |recording| {
            recording.checked_sub(1)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_recorded_while_a_capture_goes_on() {
        let origin = |stream| Origin {
            stream,
            own: (0, 0),
        };
        let begin = |stream| super::begin(origin(stream), Some((7, stream)));
        assert!(!are_open());
        let between = Between::captures();
        assert!(between.is_some());
        drop(between);
        begin(10);
        begin(11);
        end(origin(10));
        // It has none any more, as a stream that only joined.
        end(origin(10));
        assert!(are_open());
        assert!(Between::captures().is_none());
        assert!(has(origin(11)) && !has(origin(10)));
        end(origin(11));
        assert!(Between::captures().is_some());
        // A second one on the same stream, which the driver refuses.
        begin(10);
        begin(10);
        end(origin(10));
        assert!(are_open());
        // The context goes, and not another one.
        end_in(|(number, _)| number == 8);
        assert!(are_open());
        end_in(|(number, _)| number == 7);
        assert!(!are_open());
        // A capture begins when the record has been made.
        let between = Between::captures().unwrap();
        let thread = std::thread::spawn(move || super::begin(origin(12), None));
        while !are_open() {
            std::thread::yield_now();
        }
        assert!(!thread.is_finished());
        drop(between);
        thread.join().unwrap();
        end(origin(12));
    }
}
