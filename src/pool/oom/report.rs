#![forbid(unsafe_code)]
//! What a pool held when a request failed for want of memory, in figures, and what would have helped.

use super::super::Open;
use super::super::registry::Handle;
use super::advice;
use crate::alloc::Request;
use crate::backend::Memory;
use std::cell::Cell;

/// Streams that are listed one by one.
pub const LISTED_STREAMS: usize = 8;

/// What of a pool's memory waits for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPending {
    /// The stream; [`StreamKey::UNORDERED`](crate::backend::streams::StreamKey::UNORDERED) stands for all.
    pub stream: u64,
    /// Bytes that wait for it.
    pub bytes: u64,
    /// Blocks that wait for it.
    pub blocks: u64,
    /// The largest free block that its work's end would leave.
    pub largest: u64,
}

/// All that waits for streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Bytes that wait for any stream.
    pub bytes: u64,
    /// Streams that something waits for.
    pub streams: u64,
    /// Those with the most bytes, the most first; the rest is zero.
    pub largest: [StreamPending; LISTED_STREAMS],
}

impl Pending {
    /// Counts a stream in.
    pub fn add(&mut self, stream: StreamPending) {
        self.bytes += stream.bytes;
        self.streams += 1;
        let mut next = stream;
        for place in &mut self.largest {
            if next.bytes > place.bytes {
                std::mem::swap(place, &mut next);
            }
        }
    }
}

/// What was tried for a request, step by step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Times that cached memory was given back and the backend asked again.
    pub give_backs: u64,
    /// Times that other threads or the device were waited for.
    pub waits: u64,
    /// How long, in nanoseconds.
    pub wait_ns: u64,
    /// Handlers called.
    pub handlers: u64,
}

/// Free memory of another pool of the same device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The pool.
    pub pool: Handle,
    /// What it could give back.
    pub bytes: u64,
}

/// What a report is made of, beside what the pool itself knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs {
    /// What was tried.
    pub steps: Steps,
    /// What waits for streams.
    pub pending: Pending,
    /// What the backend said that it has.
    pub memory: Option<Memory>,
    /// The other pool of the device that has the most to give back.
    pub elsewhere: Option<Elsewhere>,
}

/// The single action that would have made a request fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// None that is known.
    Unknown,
    /// The request is more than the device has, which is so much, or aligned to more than it can give.
    AskForLess {
        /// All that the device has; 0 where that is not known.
        most: u64,
    },
    /// The limit, raised to so many bytes, would do.
    RaiseLimit {
        /// The limit that would do.
        to: u64,
    },
    /// Freeing one block would do.
    FreeBlock {
        /// The block's address.
        addr: u64,
        /// Its bytes.
        size: u64,
    },
    /// The end of one stream's work would do.
    WaitForStream {
        /// The stream.
        stream: u64,
        /// The bytes that wait for it.
        bytes: u64,
    },
    /// What another pool holds and does not use would do.
    EmptyOtherPool(Elsewhere),
    /// Several blocks must be freed.
    FreeSeveral {
        /// The bytes that are lacking.
        bytes: u64,
    },
}

/// A request that failed for want of memory, and what the pool held. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomReport {
    /// What was asked for.
    pub requested: u64,
    /// That, rounded up; `u64::MAX` where no number holds it.
    pub rounded: u64,
    /// The alignment that was asked for.
    pub align: u64,
    /// In live blocks.
    pub allocated: u64,
    /// Live blocks.
    pub live_blocks: u64,
    /// Obtained from the backend and not given back.
    pub reserved: u64,
    /// The largest free block.
    pub largest_free: u64,
    /// Free, in segments without live blocks.
    pub idle: u64,
    /// Free, in segments with live blocks.
    pub stuck: u64,
    /// Freed, and waiting for streams.
    pub pending: Pending,
    /// The pool's limit; `None`: it has none.
    pub limit: Option<u64>,
    /// What the device said that it has free and in all.
    pub memory: Option<Memory>,
    /// What it was known to have in all, where it did not say.
    pub device_total: Option<u64>,
    /// The name of the backend.
    pub backend: &'static str,
    /// The number of the device.
    pub device: i32,
    /// Whether the pool grows by pages.
    pub has_pages: bool,
    /// What was tried.
    pub steps: Steps,
    /// What would have made it fit.
    pub action: Action,
}

thread_local! {
    // Without a destructor: a request may fail while the thread or the process ends.
    static LAST: Cell<Option<OomReport>> = const { Cell::new(None) };
}

/// The last failure of this kind of the calling thread, of any pool.
pub fn last_report() -> Option<OomReport> {
    LAST.get()
}

impl OomReport {
    /// The failure of a request of a pool, kept for [`last_report`].
    pub(in crate::pool) fn make(open: &Open, request: &Request, inputs: &Inputs) -> Self {
        let engine = &open.engine;
        let usage = engine.usage();
        let idle = engine
            .idle_regions()
            .map(|(_, bytes)| bytes)
            .sum::<u64>()
            .min(engine.free_bytes());
        let report = Self {
            requested: request.requested,
            rounded: request.size,
            align: request.align,
            allocated: usage.allocated,
            live_blocks: usage.live,
            reserved: usage.reserved,
            largest_free: engine.largest_free(),
            idle,
            stuck: engine.free_bytes() - idle,
            pending: inputs.pending,
            limit: (open.limit != u64::MAX).then_some(open.limit),
            memory: inputs.memory,
            device_total: inputs
                .memory
                .map(|memory| memory.total)
                .or(open.device_total),
            backend: open.backend.name(),
            device: open.backend.device(),
            has_pages: open.pages.is_some(),
            steps: inputs.steps,
            action: advice::action(open, request, inputs),
        };
        LAST.set(Some(report));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool of 16 MiB that is full, and what it would report of a request for 4 MiB.
    fn reported(inputs: &Inputs) -> OomReport {
        use crate::backend::simulated::SimulatedBackend;
        use crate::pool::{Pool, PoolConfig};
        let backend = SimulatedBackend::new(16 << 20);
        let pool =
            Pool::with_backend(std::sync::Arc::new(backend), &PoolConfig::default()).unwrap();
        for _ in 0..8 {
            pool.allocate(2 << 20, 0).unwrap();
        }
        let request = Request::new(4 << 20, 0).unwrap();
        let guard = pool.lock().unwrap_or_else(|_| unreachable!("it is open"));
        let message = guard.out_of_memory(&request, inputs);
        let report = last_report().expect("it was kept");
        assert_eq!(message.message(), report.to_string());
        report
    }

    fn pending(largest: u64) -> Pending {
        let mut pending = Pending::default();
        for (stream, largest) in [(7, 1 << 20), (9, largest)] {
            pending.add(StreamPending {
                stream,
                bytes: largest + 256,
                blocks: 2,
                largest,
            });
        }
        pending
    }

    #[test]
    fn the_stream_whose_end_is_enough_is_named() {
        let enough = reported(&Inputs {
            pending: pending(4 << 20),
            ..Inputs::default()
        });
        let bytes = (4 << 20) + 256;
        assert_eq!(enough.action, Action::WaitForStream { stream: 9, bytes });
        assert!(
            enough
                .to_string()
                .contains("Wait for the work of stream 9, after")
        );
        let less = reported(&Inputs {
            pending: pending(3 << 20),
            ..Inputs::default()
        });
        assert!(
            matches!(less.action, Action::FreeSeveral { .. }),
            "{less:?}"
        );
    }

    #[test]
    fn the_steps_are_told() {
        let report = reported(&Inputs {
            steps: Steps {
                give_backs: 2,
                waits: 3,
                wait_ns: 1_500_000_000,
                handlers: 4,
            },
            ..Inputs::default()
        });
        for part in [
            "gave memory back 2 times",
            "waited 1.500 s in 3 parts",
            "called 4 handlers",
        ] {
            assert!(report.to_string().contains(part), "{report}");
        }
    }

    #[test]
    fn the_streams_with_the_most_bytes_are_listed() {
        let mut pending = Pending::default();
        for at in 1..=20 {
            pending.add(StreamPending {
                stream: at,
                bytes: (at * 7 % 20 + 1) * 256,
                blocks: 1,
                largest: 256,
            });
        }
        assert_eq!(pending.streams, 20);
        assert_eq!(pending.bytes, (1..=20).sum::<u64>() * 256);
        let listed = pending.largest.map(|stream| stream.bytes / 256);
        assert_eq!(listed, [20, 19, 18, 17, 16, 15, 14, 13]);
    }
}
