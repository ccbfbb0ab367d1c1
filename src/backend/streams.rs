//! Streams, and events that say what of their work is done.
//!
//! Streams are their caller's. One is used only inside a call that was passed its handle, and only
//! while it lives: whoever passes a stream promises that it is not destroyed before the call returns.
//! Nothing keeps a handle for later, since the handle of a destroyed stream is given to another one.
//! What has to be known of a stream's work later is recorded in an event, which outlives the stream.

use super::BackendResult;
use super::cuda;
use super::simulated;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A stream, as its owner names it: a `CUstream`. 0 and 1 (`CU_STREAM_LEGACY`) are the legacy default
/// stream of the current context, 2 (`CU_STREAM_PER_THREAD`) is the calling thread's default stream in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream(pub usize);

impl Stream {
    /// The legacy default stream. It lives as long as its context.
    pub const DEFAULT: Self = Self(0);
    /// The calling thread's default stream.
    pub const PER_THREAD: Self = Self(2);

    /// `CU_STREAM_LEGACY`.
    const LEGACY: usize = 1;

    /// The stream of a handle; the two handles of the legacy default stream give the same one.
    pub const fn of(handle: usize) -> Self {
        match handle {
            Self::LEGACY => Self::DEFAULT,
            _ => Self(handle),
        }
    }

    /// Whether it is the legacy default stream.
    pub const fn is_default(self) -> bool {
        matches!(self.0, 0 | Self::LEGACY)
    }
}

/// Which stream it is, never that of another stream of the process, even when handles come again.
///
/// Drivers before CUDA 12 do not number streams: there the key follows from the handle, and may come
/// again with it.
///
/// While a stream is in a capture its number cannot be asked for. Its key is another one then, which
/// only tells it from the other streams of the same capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(pub u64);

impl StreamKey {
    /// That of the legacy default stream, whatever the context.
    pub const DEFAULT: Self = Self(0);
    /// A stream that cannot be told: the call comes from a host function of a stream, where no driver may
    /// be asked.
    pub const UNKNOWN: Self = Self(u64::MAX);
    /// No stream: what is allocated may be used by any work at once, and what is freed waits for all work.
    pub const UNORDERED: Self = Self(u64::MAX - 1);
}

/// The capture that a stream is in: what is queued on it becomes part of a graph and does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Its number, which no other capture of the process ever has; 0: unknown, since it is invalid
    /// already and only waits for its end, or the driver is before CUDA 10.1.
    pub id: u64,
    /// The graph's handle, valid while the capture goes on; 0: unknown, as above or since the driver is
    /// before CUDA 11.3.
    pub graph: usize,
}

/// What a stream is at the moment of a call that was passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which stream it is.
    pub key: StreamKey,
    /// The capture that it is in.
    pub capture: Option<Capture>,
}

impl Place {
    /// That of the legacy default stream, which cannot be captured.
    pub const DEFAULT: Self = Self {
        key: StreamKey::DEFAULT,
        capture: None,
    };
}

/// An event: a mark in the work of a stream. Whoever made it destroys it with
/// [`Streams::destroy_event`], or it leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its handle.
    pub handle: usize,
    /// The context in which it was made: only streams of that context can record it. Streams of any
    /// can wait for it.
    pub domain: usize,
}

/// Where the streams of a backend's callers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamSource {
    /// There are none: work is done when the call that asked for it returns.
    Immediate = 0,
    /// Nobody knows what streams are there: a call that names one is refused.
    Refused = 1,
    /// The CUDA driver.
    Cuda = 2,
    /// [`simulated::SimulatedStream`].
    Simulated = 3,
}

impl StreamSource {
    /// Its functions; `None`: there are no streams to ask about.
    pub fn streams(self) -> Option<&'static dyn Streams> {
        match self {
            Self::Immediate | Self::Refused => None,
            Self::Cuda => Some(cuda::streams()),
            Self::Simulated => Some(simulated::streams()),
        }
    }

    /// The source with this number; `None`: there is no such.
    pub const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Immediate),
            1 => Some(Self::Refused),
            2 => Some(Self::Cuda),
            3 => Some(Self::Simulated),
            _ => None,
        }
    }
}

impl From<StreamSource> for u8 {
    fn from(source: StreamSource) -> Self {
        source as Self
    }
}

/// Functions of streams and events. They are those of a process, not of a backend: streams of several
/// contexts may use one pool.
///
/// But where it is said, none of them waits, and none breaks a capture, in whatever mode and by whatever thread it was begun.
/// The calling thread's current context and capture mode are afterwards as they were. Calls are made
/// from any thread, with no lock of luma's held.
///
/// A stream is passed only while it lives, and only inside a call whose caller has passed it: see the
/// module.
pub trait Streams: Debug + Send + Sync {
    /// Which stream it is, and whether it is being captured. For [`Stream::DEFAULT`] no driver is asked,
    /// otherwise at most twice. In a host function it is [`StreamKey::UNKNOWN`].
    ///
    /// # Errors
    /// What the driver fails with, as for a handle of no stream, or `PER_THREAD` without a current
    /// context.
    fn place(&self, stream: Stream) -> BackendResult<Place>;

    /// The context that a stream belongs to; of a default stream, the current one. It stays the same
    /// while the stream lives.
    ///
    /// # Errors
    /// What the driver fails with, as [`Streams::place`].
    fn domain(&self, stream: Stream) -> BackendResult<usize>;

    /// An event in a context, that keeps no time. An event that was never recorded is done.
    ///
    /// # Errors
    /// What the driver fails with, as for a context that was destroyed.
    fn create_event(&self, domain: usize) -> BackendResult<Event>;

    /// Destroys an event, recorded or not, done or not. What waits for it goes on waiting. Nobody is
    /// told of a failure: an event goes with its context too.
    fn destroy_event(&self, event: Event);

    /// Lets an event stand for all work that was queued on a stream of its context until now, and for
    /// nothing else any more. The stream is in no capture.
    ///
    /// # Errors
    /// What the driver fails with; the event then stands for what it did.
    fn record(&self, event: Event, stream: Stream) -> BackendResult<()>;

    /// Whether all that an event stands for is done. If its context or the driver is gone, it is.
    ///
    /// # Errors
    /// What the driver fails with: also a failure of the work itself, which stays.
    fn is_done(&self, event: Event) -> BackendResult<bool>;

    /// What is queued on a stream from now on starts after what an event stands for. The stream is in no
    /// capture, and may be of another context.
    ///
    /// # Errors
    /// What the driver fails with.
    fn wait(&self, stream: Stream, event: Event) -> BackendResult<()>;

    /// Lets an event stand for all work that was queued in its context until now, whatever the stream.
    ///
    /// # Errors
    /// `Unsupported`: the driver cannot do that. It fails while a stream of the context is being captured,
    /// too; only a capture of a stream that the default stream waits for is seen in time, that of one with
    /// `CU_STREAM_NON_BLOCKING` is broken by the call. So it is made only while no capture is known.
    fn record_all(&self, event: Event) -> BackendResult<()>;

    /// The contexts whose work may use memory of a context: itself, first, and the others of the process as
    /// far as they are known.
    ///
    /// # Errors
    /// What the driver fails with.
    fn users(&self, domain: usize) -> BackendResult<Vec<usize>> {
        Ok(vec![domain])
    }

    /// Whether the driver has shut down at the end of the process: no stream is there any more, and no work.
    fn have_ended(&self) -> bool {
        false
    }

    /// Waits until all work is done that was queued in a context, whatever the stream. The one function
    /// that waits. Work of a context that is gone is done.
    ///
    /// `spares_captures`: it waits by another call, which leaves captures alone, but of which the driver's
    /// documentation says only that it may wait. Otherwise it fails while a stream is being captured, and
    /// breaks captures as [`Streams::record_all`] does.
    ///
    /// # Errors
    /// What the driver fails with.
    fn synchronize(&self, domain: usize, spares_captures: bool) -> BackendResult<()>;

    /// Sets `ended`, in any thread and at any time later, once neither the graph of a capture nor any
    /// graph or launch made from it is there any more: with the capture's failure at the earliest. The
    /// flag is set with `Release`, and then let go of.
    ///
    /// # Errors
    /// `Unsupported`: the driver lacks the functions, or the graph is unknown. What the driver fails
    /// with. `ended` is not kept then, but may be set.
    fn retain(&self, capture: Capture, ended: Arc<AtomicBool>) -> BackendResult<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_handles_of_the_default_stream_are_one() {
        for handle in [0, 1] {
            assert_eq!(Stream::of(handle), Stream::DEFAULT);
            assert!(Stream(handle).is_default());
        }
        for handle in [2, 3, usize::MAX] {
            assert_eq!(Stream::of(handle), Stream(handle));
            assert!(!Stream(handle).is_default());
        }
    }

    #[test]
    fn sources_have_numbers() {
        for number in 0..=u8::MAX {
            match StreamSource::from_u8(number) {
                Some(source) => assert_eq!(u8::from(source), number),
                None => assert!(number > 3),
            }
        }
    }
}
