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

/// A device's primary context was reset.
pub fn primary_reset(device: Device) {
    if has_pools() {
        // A pool that is half changed refuses its next call with the reason.
        noted(|| drop(hosted::context_lost(device)));
    }
}

/// An owner of a device's primary context has given it up.
pub fn primary_released(device: Device) {
    if has_pools() && cuda::is_primary_active(device) == Some(false) {
        primary_reset(device);
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
    if has_pools() {
        noted(|| defaults::context_destroyed(ContextKey::of(context)));
    }
}

/// A context may have been destroyed.
pub fn context_given_up() {
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
                let _ = pool.release_stream(Stream::of(stream));
            }
        });
    }
}

/// A capture is about to begin.
pub fn capture_begins() {
    captures::begin();
}

/// A capture has ended, or did not begin.
pub fn capture_ended() {
    captures::end();
}

/// Whether captures go on.
pub fn are_captures_open() -> bool {
    captures::are_open()
}
