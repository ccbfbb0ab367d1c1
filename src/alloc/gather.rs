#![forbid(unsafe_code)]
//! Requests served from adjacent free chunks of several lanes.
//!
//! Free chunks of different lanes lie side by side without merging. Where no chunk alone holds a
//! request, a row of them may: at once, for what the caller knows to be done ([`Engine::gather`]), or
//! after a wait ([`Engine::plan_wait`]).

use super::chunk::{ANYONE, Chunk, ChunkId, Lane, NIL, State};
use super::engine::{Block, Engine, Request};
use super::host_memory::{HostMemoryExhausted, TryPush};
use super::window::Extent;
use crate::backend::Pages;
use crate::size::round_up;

/// A row of adjacent chunks.
#[derive(Clone, Copy)]
struct Run {
    first: ChunkId,
    last: ChunkId,
    addr: u64,
    end: u64,
}

impl Run {
    fn size(&self) -> u64 {
        self.end - self.addr
    }

    fn extent(&self) -> Extent {
        Extent {
            from: self.addr,
            to: self.end,
        }
    }
}

/// What a place for a request has to wait for, less being better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    lanes: usize,
    /// The latest time among the chunks that are waited for.
    latest: u64,
}

impl Engine {
    /// Visits the longest rows of adjacent chunks that `wanted` accepts, in the order of addresses.
    fn for_each_run(&self, wanted: impl Fn(&Chunk) -> bool, mut visit: impl FnMut(Run)) {
        for region in self.regions.ids() {
            let mut run: Option<Run> = None;
            let mut id = self.regions[region].first;
            while id != NIL {
                let chunk = &self.chunks[id];
                if wanted(chunk) {
                    let begun = run.unwrap_or(Run {
                        first: id,
                        last: id,
                        addr: chunk.addr,
                        end: chunk.addr,
                    });
                    run = Some(Run {
                        last: id,
                        end: chunk.end(),
                        ..begun
                    });
                } else if let Some(ended) = run.take() {
                    visit(ended);
                }
                id = chunk.next;
            }
            if let Some(ended) = run {
                visit(ended);
            }
        }
    }

    /// Whether the request may use a free chunk without any wait.
    fn is_usable(&self, chunk: &Chunk, request: &Request) -> bool {
        let in_time = request
            .usable_at
            .is_none_or(|time| chunk.freed_at() <= time);
        chunk.tag == ANYONE || (in_time && (!self.separate || chunk.tag == request.lane))
    }

    /// Serves a request from adjacent free chunks that together hold it, each of them usable by
    /// [`Engine::allocate`], or of a lane in `also` and freed before the time that goes with it. Of
    /// several rows it takes the smallest. Chunks that the block does not need in full stay, for the
    /// rest, in their lane and with their time. Linear in all chunks. `None`: there is no such row.
    pub fn gather(
        &mut self,
        request: &Request,
        also: &[(Lane, u64)],
    ) -> Result<Option<Block>, HostMemoryExhausted> {
        self.chunks.reserve(2)?;
        self.live.reserve(|id| self.chunks[id].addr)?;
        let mut best: Option<(Run, u64)> = None;
        let is_done = |chunk: &Chunk| {
            let mut also = also.iter();
            self.separate
                && also.any(|&(lane, below)| chunk.tag == lane && chunk.freed_at() < below)
        };
        self.for_each_run(
            |chunk| {
                chunk.state == State::Free && (self.is_usable(chunk, request) || is_done(chunk))
            },
            |run| {
                let is_better = best.is_none_or(|(other, _)| run.size() < other.size());
                let is_good = |_: &u64| is_better && self.policy.fits(run.size(), request.size);
                if let Some(start) = run.extent().start_of(request).filter(is_good) {
                    best = Some((run, start));
                }
            },
        );
        Ok(best.map(|(run, start)| self.take_across(run, start, request)))
    }

    /// Hands out `start..start + request.size` of a row of free chunks. Two chunks are in reserve.
    fn take_across(&mut self, run: Run, start: u64, request: &Request) -> Block {
        let end = start + request.size;
        let mut part = run.first;
        while self.chunks[part].end() <= start {
            part = self.chunks[part].next;
        }
        if self.chunks[part].end() >= end {
            return self.take_in_lane(part, start, request);
        }
        self.remove_free(part);
        if start > self.chunks[part].addr {
            // What is left keeps the chunk's id, which the lane's queue names.
            let front = part;
            part = self.split_back_in_lane(front, start);
            self.insert_free(front);
        }
        loop {
            let next = self.chunks[part].next;
            self.remove_free(next);
            let size = self.chunks[next].end() - start;
            if size > request.size && self.policy.splits(size, request.size) {
                self.split_front_in_lane(next, end);
                self.insert_free(next);
            }
            self.absorb_next(part);
            if self.chunks[part].end() >= end {
                break;
            }
        }
        self.chunks[part].tag = 0;
        self.hand_out(part, request)
    }

    /// The least that a request would have to wait for, were it served from adjacent free chunks of
    /// whatever lanes: for each lane the time before which all frees must be done. Least is the
    /// fewest lanes, then the earliest time. `may_wait` says of a lane and a time whether that can be
    /// waited for. Empty: nothing. `None`: no row is long enough. Linear in
    /// all chunks.
    pub fn plan_wait(
        &self,
        request: &Request,
        may_wait: impl Fn(Lane, u64) -> bool,
    ) -> Result<Option<Vec<(Lane, u64)>>, HostMemoryExhausted> {
        let mut windows = Windows::new(self, request)?;
        let mut outcome = Ok(());
        self.for_each_run(
            |chunk| {
                chunk.state == State::Free
                    && (self.is_usable(chunk, request) || may_wait(chunk.tag, chunk.freed_at()))
            },
            |run| {
                let holds = run.extent().start_of(request).is_some();
                if outcome.is_ok() && holds && self.policy.fits(run.size(), request.size) {
                    outcome = windows.search(run);
                }
            },
        );
        outcome?;
        let Some((_, first, start)) = windows.best else {
            return Ok(None);
        };
        let mut waits: Vec<(Lane, u64)> = Vec::new();
        let mut id = first;
        while id != NIL && self.chunks[id].addr < start + request.size {
            let chunk = &self.chunks[id];
            id = chunk.next;
            if chunk.end() <= start || self.is_usable(chunk, request) {
                continue;
            }
            let below = chunk.freed_at().saturating_add(1);
            match waits.iter_mut().find(|(lane, _)| *lane == chunk.tag) {
                Some((_, latest)) => *latest = below.max(*latest),
                None => waits.try_push((chunk.tag, below))?,
            }
        }
        Ok(Some(waits))
    }

    /// The largest row of adjacent free chunks that would be anyone's if those of a lane were.
    pub fn largest_run_with(&self, lane: Lane) -> u64 {
        let mut largest = 0;
        self.for_each_run(
            |chunk| chunk.state == State::Free && (chunk.tag == lane || chunk.tag == ANYONE),
            |run| largest = largest.max(run.size()),
        );
        largest
    }

    /// Whether the request might fit if everything free or parked were anyone's: in a row of free
    /// chunks, or after whole free pages and regions were given back and `available` bytes more taken
    /// from the backend. What a backend call in progress is about counts as free. Never `false` for
    /// a request that would fit. Linear in all chunks.
    pub fn could_fit_settled(
        &self,
        request: &Request,
        pages: Option<Pages>,
        available: u64,
    ) -> bool {
        let is_spare = |chunk: &Chunk| !matches!(chunk.state, State::Live | State::Hole);
        let mut fits = false;
        // What can be given back, or is being brought or given back.
        let mut supply = available;
        self.for_each_run(is_spare, |run| {
            fits |= run.extent().start_of(request).is_some();
            let region = &self.regions[self.chunks[run.first].region];
            if region.live == 0 {
                supply = supply.saturating_add(run.size());
            } else if let (true, Some(pages)) = (region.paged, pages) {
                supply = supply
                    .saturating_add(run.extent().whole_pages(pages.finest))
                    .saturating_add(self.marked_in(run));
            } else {
                supply = supply.saturating_add(self.marked_in(run));
            }
        });
        for region in self.regions.hidden_ids() {
            supply = supply.saturating_add(self.mapped_bytes(region));
        }
        if fits || supply >= request.size {
            return true;
        }
        if pages.is_none() {
            return false;
        }
        // The most memory between two live blocks of a range, which mapping the holes there could make use
        // of.
        let mut between = 0;
        self.for_each_run(
            |chunk| chunk.state != State::Live,
            |run| {
                if self.regions[self.chunks[run.first].region].paged {
                    between = between.max(run.size() - self.holes_in(run));
                }
            },
        );
        supply.saturating_add(between) >= request.size
    }

    /// The addresses without memory in a row.
    fn holes_in(&self, run: Run) -> u64 {
        self.sum_in(run, |state| state == State::Hole)
    }

    /// The bytes in a row that backend calls in progress are about.
    fn marked_in(&self, run: Run) -> u64 {
        self.sum_in(run, |state| {
            matches!(state, State::Mapping | State::Unmapping)
        })
    }

    fn sum_in(&self, run: Run, wanted: impl Fn(State) -> bool) -> u64 {
        let (mut bytes, mut id) = (0, run.first);
        loop {
            let chunk = &self.chunks[id];
            if wanted(chunk.state) {
                bytes += chunk.size;
            }
            if id == run.last {
                return bytes;
            }
            id = chunk.next;
        }
    }
}

/// The search of [`Engine::plan_wait`]: a window moves over each row, from the start of one chunk to
/// that of the next, and takes in as many chunks as hold the request.
struct Windows<'a> {
    engine: &'a Engine,
    request: &'a Request,
    /// Chunks in the window that are waited for, of each lane.
    counts: Vec<u32>,
    lanes: usize,
    /// From `head` on: the chunks in the window that are waited for and that none of the later ones
    /// is as late as, so that the first is the latest.
    late: Vec<ChunkId>,
    head: usize,
    /// The best place, the chunk where its window begins, and its address.
    best: Option<(Wait, ChunkId, u64)>,
}

impl<'a> Windows<'a> {
    fn new(engine: &'a Engine, request: &'a Request) -> Result<Self, HostMemoryExhausted> {
        let mut counts = Vec::new();
        let lanes = engine.lanes.end();
        counts
            .try_reserve_exact(lanes)
            .map_err(|_| HostMemoryExhausted)?;
        counts.resize(lanes, 0);
        Ok(Self {
            engine,
            request,
            counts,
            lanes: 0,
            late: Vec::new(),
            head: 0,
            best: None,
        })
    }

    fn search(&mut self, run: Run) -> Result<(), HostMemoryExhausted> {
        let Self {
            engine, request, ..
        } = *self;
        self.counts.fill(0);
        self.lanes = 0;
        self.late.clear();
        self.head = 0;
        // The first chunk in the window, and the end of its last.
        let (mut first, mut end) = (run.first, run.addr);
        let mut next = run.first;
        loop {
            let Some(start) = round_up(engine.chunks[first].addr, request.align) else {
                return Ok(());
            };
            let Some(needed) = start.checked_add(request.size).filter(|&to| to <= run.end) else {
                return Ok(());
            };
            while end < needed {
                self.enter(next)?;
                end = engine.chunks[next].end();
                next = engine.chunks[next].next;
            }
            let late = self.late.get(self.head);
            let wait = Wait {
                lanes: self.lanes,
                latest: late.map_or(0, |&id| engine.chunks[id].freed_at()),
            };
            if self.best.is_none_or(|(best, _, _)| wait < best) {
                self.best = Some((wait, first, start));
            }
            self.leave(first);
            first = engine.chunks[first].next;
            if first == NIL || engine.chunks[first].addr >= run.end {
                return Ok(());
            }
        }
    }

    /// Takes a chunk into the window, behind all others.
    fn enter(&mut self, id: ChunkId) -> Result<(), HostMemoryExhausted> {
        let chunk = &self.engine.chunks[id];
        if self.engine.is_usable(chunk, self.request) {
            return Ok(());
        }
        let count = &mut self.counts[usize::from(chunk.tag)];
        *count += 1;
        self.lanes += usize::from(*count == 1);
        let is_earlier =
            |&other: &ChunkId| self.engine.chunks[other].freed_at() <= chunk.freed_at();
        while self.late.len() > self.head && self.late.last().is_some_and(is_earlier) {
            self.late.pop();
        }
        self.late.try_push(id)
    }

    /// Takes the first chunk out of the window.
    fn leave(&mut self, id: ChunkId) {
        let chunk = &self.engine.chunks[id];
        if self.engine.is_usable(chunk, self.request) {
            return;
        }
        let count = &mut self.counts[usize::from(chunk.tag)];
        *count -= 1;
        self.lanes -= usize::from(*count == 0);
        self.head += usize::from(self.late.get(self.head) == Some(&id));
    }
}
