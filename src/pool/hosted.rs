#![forbid(unsafe_code)]
//! Default pools that serve a program which takes them for the driver itself.
//!
//! Such a program asks of its memory what it may ask of `cuMemAlloc`'s: handles for other processes, access
//! by other devices, registration for network adapters. So segments come by `cuMemAlloc`, and not by virtual
//! memory. And it expects a context to end when it has given it up itself.

use super::ordered::refuse_unknown;
use super::{Pool, PoolConfig, registry};
use crate::alloc::Growth;
use crate::backend::streams::{Stream, StreamKey};
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, Ordering};

/// What a hosted program's memory is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Segments {
    /// Blocks share segments.
    Shared = 1,
    /// Each block is a segment of its own, so that a handle for another process names nothing else.
    Own = 2,
}

/// 0: the program is not hosted; otherwise a [`Segments`].
static HOSTED: AtomicU8 = AtomicU8::new(0);

/// From now on new default pools serve such a program. To be called before the first of them is made.
pub fn begin(segments: Segments) {
    HOSTED.store(segments as u8, Ordering::Release);
}

/// Whether luma is an owner of the primary contexts that it finds current.
pub(super) fn keeps_contexts() -> bool {
    HOSTED.load(Ordering::Acquire) == 0
}

/// The primary context of a device was reset, or its last owner has given it up: pools of any kind forget what
/// they had in it.
///
/// # Errors
/// A pool that is half changed.
pub fn context_lost(device: i32) -> Result<()> {
    registry::forget_device(device).map(|_| ())
}

impl Pool {
    /// [`Pool::allocate_on`], but on a stream that is being captured: `Err(None)`.
    ///
    /// # Errors
    /// `Some`: as [`Pool::allocate_on`].
    pub fn allocate_on_uncaptured(
        &self,
        bytes: u64,
        align: u64,
        stream: Stream,
    ) -> Result<Option<u64>, Option<Error>> {
        if stream.is_default() {
            return Ok(self.allocate(bytes, align)?);
        }
        let passed = self.passed(stream)?;
        if passed.place.capture.is_some() {
            return Err(None);
        }
        if passed.place.key == StreamKey::UNKNOWN {
            return Err(Some(refuse_unknown()));
        }
        Ok(self.allocate_for(bytes, align, passed)?)
    }

    /// As [`Pool::release_stream`], by who sees streams being destroyed: where the driver does not number
    /// streams, the next one with this handle is another one.
    ///
    /// # Errors
    /// As [`Pool::allocate_on`].
    pub fn stream_destroyed(&self, stream: Stream) -> Result<()> {
        self.end_stream(stream, true)
    }
}

/// What the pool of a context is like.
pub(super) fn adapted(config: &PoolConfig) -> PoolConfig {
    let mut config = *config;
    let segments = HOSTED.load(Ordering::Acquire);
    // Memory of one stream may be wanted in no order at any time, and be asked for while others work.
    config.tells_streams_apart = segments != 0;
    match segments {
        0 => {}
        own if own == Segments::Own as u8 => {
            config.growth = Some(Growth::Exact);
            config.min_segment = Some(OWN_SEGMENT);
            config.whole_segments = true;
        }
        _ => config.growth = config.growth.or(Some(SHARED)),
    }
    config
}

/// Segments of pools whose blocks share them.
const SHARED: Growth = Growth::Proportional;
/// What each block is a multiple of where it is a segment of its own: the driver shares less between blocks,
/// too.
const OWN_SEGMENT: u64 = 2 << 20;
