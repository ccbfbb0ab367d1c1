//! Where memory comes from.
//!
//! A backend gives whole segments ([`Backend::allocate`]); one that has pages gives ranges of
//! addresses too, whose parts get and lose memory ([`Backend::reserve`], [`Backend::map`]). It keeps
//! no books of blocks. Calls may block and are made from any thread, with no lock of luma's held.

pub mod callbacks;
pub mod captures;
pub mod cuda;
pub mod host;
pub mod simulated;
pub mod streams;

use crate::error::{Error, Status};
use crate::size::GRAIN;
use crate::text::{Text, text};
use std::fmt;
use streams::{Event, StreamSource};

/// Base addresses are multiples of this where the backend can choose.
pub const SEGMENT_ALIGN: u64 = 2 << 20;

/// What a backend says about its memory. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What it can still give.
    pub free: u64,
    /// What it has.
    pub total: u64,
}

/// What a backend's pages are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Memory is mapped in multiples of this, at multiples of this. A power of two, at least
    /// [`GRAIN`].
    pub map: u64,
    /// Memory is unmapped in multiples of this, at multiples of this. A power of two, at least
    /// `map`. Growth is rounded up to it where that is allowed.
    pub unmap: u64,
    /// What `unmap` may be where a request would fail otherwise. A power of two, at least `map`.
    pub finest: u64,
}

impl Pages {
    /// Pages that are mapped and unmapped alike.
    pub const fn of(bytes: u64) -> Self {
        assert!(bytes.is_power_of_two() && bytes >= GRAIN);
        Self {
            map: bytes,
            unmap: bytes,
            finest: bytes,
        }
    }
}

/// Why a backend did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// It has not enough memory.
    OutOfMemory,
    /// Anything else.
    Failed(Error),
}

impl BackendError {
    /// A failure with its message.
    pub fn failed(status: Status, message: impl Into<Text>) -> Self {
        Self::Failed(Error::new(status, message))
    }

    /// The status of it.
    pub fn status(&self) -> Status {
        match self {
            Self::OutOfMemory => Status::OutOfMemory,
            Self::Failed(error) => error.status(),
        }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BackendError {}

/// The result of a backend's call.
pub type BackendResult<T> = Result<T, BackendError>;

/// A source of memory. Addresses are numbers: only the backend itself knows what is behind them.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Its name, as in `LUMA_BACKEND`.
    fn name(&self) -> &'static str;

    /// Whether the host may read and write its memory.
    fn is_host_accessible(&self) -> bool;

    /// What it has and can still give; `None` where nobody knows.
    fn memory(&self) -> BackendResult<Option<Memory>>;

    /// Whether its memory is still there after its device was reset.
    fn outlives_reset(&self) -> bool {
        false
    }

    /// Whether its memory is gone when this CUDA device is reset.
    fn is_lost_by_reset(&self, device: i32) -> bool {
        let _ = device;
        false
    }

    /// Whether its memory is still there in a child that the process forked.
    fn survives_fork(&self) -> bool {
        true
    }

    /// Its device was reset, or the process is a forked child: what it gave is gone or nobody's any
    /// more, and will not be given back. Nothing outside of the process's own memory is touched.
    fn forget(&self) {}

    /// What it can still give, where it knows that exactly and without waiting.
    fn known_free(&self) -> Option<u64> {
        None
    }

    /// Addresses of segments are multiples of this power of two, at least 256.
    fn segment_align(&self) -> u64 {
        GRAIN
    }

    /// No address that it could give is a multiple of a larger power of two.
    fn largest_align(&self) -> u64 {
        1 << 63
    }

    /// A segment of `bytes` bytes (a multiple of 256); gives its address.
    fn allocate(&self, bytes: u64) -> BackendResult<u64>;

    /// Takes back a segment as it was given, whose work is done. A failure changes nothing.
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()>;

    /// Its pages, where it has them. Where it has none, the calls below are never made.
    fn pages(&self) -> Option<Pages> {
        None
    }

    /// A range of addresses without memory, of at least `least` bytes; gives its address and length.
    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let _ = least;
        Err(no_pages(self.name()))
    }

    /// Takes back a range as it was given, with `mapped` bytes of memory still in it, whose work is done. A
    /// failure changes nothing.
    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        let _ = (addr, span, mapped);
        Err(no_pages(self.name()))
    }

    /// Puts memory behind a part of a range. A failure changes nothing.
    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let _ = (addr, bytes);
        Err(no_pages(self.name()))
    }

    /// Takes the memory from a part of a range, whose work is done. A failure changes nothing.
    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let _ = (addr, bytes);
        Err(no_pages(self.name()))
    }

    /// Where the streams come from whose work may use its memory. Where it is [`StreamSource::Cuda`] or
    /// [`StreamSource::Simulated`], the calls below are made, otherwise never.
    fn stream_source(&self) -> StreamSource {
        StreamSource::Immediate
    }

    /// The context of its memory, whose default stream is meant below; if it is gone, a number that no
    /// context has.
    fn domain(&self) -> BackendResult<usize> {
        Err(no_streams(self.name()))
    }

    /// Whether all work is done that was queued on the default stream; `true` if the context is gone. Fails
    /// while a stream is being captured that the default stream waits for: asking would break the capture.
    fn is_default_idle(&self) -> BackendResult<bool> {
        Err(no_streams(self.name()))
    }

    /// Lets an event of its context stand for all work that was queued on the default stream until now.
    /// Fails while a stream is being captured that the default stream waits for: that would break the
    /// capture.
    fn record_default(&self, event: Event) -> BackendResult<()> {
        let _ = event;
        Err(no_streams(self.name()))
    }

    /// Waits until all work is done that was queued on the default stream. Fails while a stream is being
    /// captured that the default stream waits for.
    fn wait_for_default(&self) -> BackendResult<()> {
        Err(no_streams(self.name()))
    }

    /// Gives back what the driver itself keeps unused of this device's memory, for others to have.
    fn trim(&self) {}

    /// Overwrites memory where that is to be done by the host; does nothing elsewhere.
    fn fill(&self, addr: u64, bytes: u64, value: u8) {
        let _ = (addr, bytes, value);
    }

    /// The first byte of memory that [`Backend::fill`] filled with `value` and that is another one by
    /// now: its offset, and what it is. `None`: there is none, or nothing is filled.
    fn first_changed(&self, addr: u64, bytes: u64, value: u8) -> Option<(u64, u8)> {
        let _ = (addr, bytes, value);
        None
    }

    /// The number of the device that it is on.
    fn device(&self) -> i32 {
        0
    }

    /// Backends with the same key take memory from the same device; `None`: no other one does.
    fn device_key(&self) -> Option<u64> {
        None
    }
}

fn no_streams(name: &str) -> BackendError {
    BackendError::failed(
        Status::Unsupported,
        text!("the {name} backend has no streams"),
    )
}

fn no_pages(name: &str) -> BackendError {
    BackendError::failed(
        Status::Unsupported,
        text!("the {name} backend has no pages"),
    )
}
