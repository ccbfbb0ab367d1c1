#![forbid(unsafe_code)]
//! What a pool holds and did.

/// The figures of a pool at one moment. Sizes in bytes. The meaning of each field is that of the
/// field of the same name in `luma_stats_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// In blocks handed out, rounded sizes.
    pub allocated_bytes: u64,
    /// Obtained from the backend and not given back.
    pub reserved_bytes: u64,
    /// Highest `allocated_bytes` since the start or the last reset.
    pub peak_bytes: u64,
    /// Blocks handed out.
    pub live_blocks: u64,
    /// Free blocks that the pool keeps.
    pub free_blocks: u64,
    /// Regions held from the backend.
    pub segments: u64,
    /// Successful backend allocations.
    pub backend_allocations: u64,
    /// Successful backend releases.
    pub backend_releases: u64,
    /// Sum of what callers asked for, live blocks.
    pub requested_bytes: u64,
    /// Highest `reserved_bytes` since the start or the last reset.
    pub peak_reserved_bytes: u64,
    /// The largest free block that the pool keeps.
    pub largest_free_block: u64,
    /// The pool's limit; 0: none.
    pub memory_limit: u64,
    /// Requests for memory, served or refused, zero-sized ones left out.
    pub alloc_calls: u64,
    /// Blocks given back by callers.
    pub free_calls: u64,
    /// Times cached memory was given back and the backend asked again.
    pub alloc_retries: u64,
    /// Requests refused for want of memory.
    pub out_of_memory_count: u64,
    /// Freed, and not to be used yet: waiting for another stream, or in the quarantine of checked mode.
    pub pending_bytes: u64,
    /// Calls of out-of-memory handlers.
    pub handler_calls: u64,
    /// Events recorded on streams.
    pub event_records: u64,
    /// Times an event was asked whether it is done.
    pub event_queries: u64,
    /// Times a stream was made to wait for another one's work.
    pub stream_waits: u64,
    /// Times a request waited for work to end before it failed.
    pub oom_waits: u64,
    /// How long, in nanoseconds.
    pub oom_wait_ns: u64,
}

/// What the backend's calls took that moved memory. Those that failed are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendTime {
    /// Calls that brought memory: segments, and pages of ranges.
    pub grants: u64,
    /// How long they took in all, in nanoseconds.
    pub grant_ns: u64,
    /// Calls that gave memory back: segments, ranges, and pages of ranges.
    pub returns: u64,
    /// How long they took in all, in nanoseconds.
    pub return_ns: u64,
}

impl BackendTime {
    /// Counts a call that brought memory.
    pub(crate) fn granted(&mut self, ns: u64) {
        self.grants += 1;
        self.grant_ns = self.grant_ns.saturating_add(ns);
    }

    /// Counts the calls of another one.
    pub(crate) fn add(&mut self, other: Self) {
        self.grants += other.grants;
        self.grant_ns = self.grant_ns.saturating_add(other.grant_ns);
        self.returns += other.returns;
        self.return_ns = self.return_ns.saturating_add(other.return_ns);
    }

    /// Counts a call that gave memory back.
    pub(crate) fn returned(&mut self, ns: u64) {
        self.returns += 1;
        self.return_ns = self.return_ns.saturating_add(ns);
    }
}
