//! Contexts and streams that begin and end.

use super::noted;
use crate::abi::{Device, Handle};
use crate::switch::is_on;
use luma::backend::captures;
use luma::backend::cuda::{self, ContextKey};
use luma::backend::streams::Stream;
use luma::pool::{defaults, hosted};

/// Whether there is anything to forget.
fn has_pools() -> bool {
    is_on() && defaults::exist()
}

/// Captures end with their contexts.
fn captures_end() {
    if is_on() {
        noted(cuda::context_ended);
    }
}

/// A device's primary context was reset.
pub fn primary_reset(device: Device) {
    captures_end();
    if has_pools() {
        // A pool that is half changed refuses its next call with the reason.
        noted(|| drop(hosted::context_lost(device)));
    }
}

/// A device's primary context has an owner more, or less: it may have ended, also without being seen.
pub fn primary_owned(device: Device) {
    captures_end();
    if has_pools() {
        noted(|| defaults::look_for_ended_primary(device));
    }
}

/// A context was made.
pub fn context_made(context: Handle) {
    if is_on() {
        noted(|| cuda::note_context(ContextKey::of(context)));
    }
}

/// A context was destroyed.
pub fn context_destroyed(context: Handle) {
    captures_end();
    if has_pools() {
        noted(|| defaults::context_destroyed(ContextKey::of(context)));
    }
}

/// A context may have been destroyed.
pub fn context_given_up() {
    captures_end();
    if has_pools() {
        noted(defaults::look_for_ended_contexts);
    }
}

/// A stream is about to be destroyed.
pub fn stream_ends(stream: Handle) {
    // Default streams are not destroyed.
    if stream > Stream::PER_THREAD.0 && has_pools() {
        noted(|| {
            for (_, pool) in defaults::of_devices() {
                // What cannot be recorded now waits for all work.
                let _ = pool.stream_destroyed(Stream::of(stream));
            }
        });
    }
}

/// Whether a capture goes on that was begun on a stream.
pub fn has_capture(stream: Stream) -> bool {
    is_on() && cuda::has_capture(stream)
}

/// A capture is about to begin on a stream.
pub fn capture_begins(stream: Stream) {
    if is_on() {
        noted(|| cuda::capture_begins(stream));
    }
}

/// The capture that was begun on a stream has ended, or did not begin.
pub fn capture_ended(stream: Stream) {
    if captures::are_open() {
        noted(|| cuda::capture_ended(stream));
    }
}
