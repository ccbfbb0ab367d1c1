#![forbid(unsafe_code)]
//! Captures that the program is seen to begin and end, whatever the stream.
//!
//! An event for all work of a context breaks a capture that goes on in it, and the driver does not say in
//! time that one does. Whoever sees the program's calls tells of each capture here, and no such event is
//! recorded meanwhile. Where nobody tells, only the captures are known in which luma was called.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Captures that have begun and not ended.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Threads that are recording an event for everything.
static RECORDING: AtomicUsize = AtomicUsize::new(0);

/// The program is about to begin a capture. Waits for events that are being recorded, which does not take
/// long: recording one waits for nothing.
pub fn begin() {
    OPEN.fetch_add(1, Ordering::SeqCst);
    while RECORDING.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// A capture has ended, or did not begin.
pub fn end() {
    // One that began before anybody told is not counted.
    let _ = OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| {
        open.checked_sub(1)
    });
}

/// Whether captures are known to go on.
pub fn are_open() -> bool {
    OPEN.load(Ordering::SeqCst) != 0
}

/// In a forked child nothing is being captured or recorded.
pub(crate) fn after_fork() {
    OPEN.store(0, Ordering::SeqCst);
    RECORDING.store(0, Ordering::SeqCst);
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
        assert!(!are_open());
        let between = Between::captures();
        assert!(between.is_some());
        drop(between);
        begin();
        begin();
        end();
        assert!(are_open());
        assert!(Between::captures().is_none());
        end();
        assert!(Between::captures().is_some());
        // One more end than begins.
        end();
        assert!(!are_open());
        // A capture begins when the record has been made.
        let between = Between::captures().unwrap();
        let thread = std::thread::spawn(begin);
        while !are_open() {
            std::thread::yield_now();
        }
        assert!(!thread.is_finished());
        drop(between);
        thread.join().unwrap();
        end();
    }
}
