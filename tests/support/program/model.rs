//! What a pool must hold, worked out from the list of live blocks and the memory that the device
//! gave.

use super::intervals::{Interval, Intervals};
use super::op::{Gives, Setup};
use super::watched::Seen;
use luma::backend::SEGMENT_ALIGN;
use luma::size::{GRAIN, round_down, round_up};
use luma::{Preset, Stats};

/// Pages of a simulated device are unmapped in this size; where it gives whole pages, mapped too.
pub const PAGE: u64 = SEGMENT_ALIGN;
/// The growth that the default preset may do at any time.
const LARGEST_STEP: u64 = 32 << 20;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub addr: u64,
    pub size: u64,
    pub requested: u64,
}

impl Block {
    pub fn interval(&self) -> Interval {
        (self.addr, self.addr + self.size)
    }
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Foreign,
    Free,
    Start(Block),
    Inside(Block),
}

/// What the pool was asked to do so far, and what of it lasts.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub live: Vec<Block>,
    pub freed: Vec<u64>,
    pub limit: u64,
    pub alloc_calls: u64,
    pub free_calls: u64,
    pub out_of_memory: u64,
    pub peak: u64,
    pub peak_reserved: u64,
}

impl Model {
    pub fn allocated(&self) -> u64 {
        self.live.iter().map(|block| block.size).sum()
    }

    pub fn live(&self) -> Intervals {
        Intervals::of(self.live.iter().map(Block::interval))
    }

    pub fn sorted(&self) -> Vec<Block> {
        let mut sorted = self.live.clone();
        sorted.sort_by_key(|block| block.addr);
        sorted
    }

    pub fn locate(&self, addr: u64, seen: &Seen) -> At {
        let block = self
            .live
            .iter()
            .find(|block| (block.addr..block.addr + block.size).contains(&addr));
        match block {
            Some(block) if block.addr == addr => At::Start(*block),
            Some(block) => At::Inside(*block),
            None => {
                let held = seen
                    .grants
                    .iter()
                    .any(|(&base, &span)| base <= addr && addr - base < span);
                if held { At::Free } else { At::Foreign }
            }
        }
    }

    /// Maximal runs of memory that no live block is in. Grants never touch, so that no run goes
    /// from one into another.
    pub fn free_runs(&self, seen: &Seen) -> Intervals {
        seen.memory.without(&self.live())
    }

    /// What the figures of the pool must be. The count of retries is the pool's own.
    pub fn stats(&self, seen: &Seen, retries: u64) -> Stats {
        let live = self.live();
        let runs = self.free_runs(seen);
        // A grant with nothing live is one free block, though addresses without memory may lie in it.
        let free_blocks = seen.grants.iter().map(|(&base, &span)| {
            let grant = (base, base + span);
            let apart = runs.within(grant).iter().count() as u64;
            if live.touches(grant) {
                apart
            } else {
                apart.min(1)
            }
        });
        Stats {
            allocated_bytes: self.allocated(),
            reserved_bytes: seen.memory.bytes(),
            peak_bytes: self.peak,
            live_blocks: self.live.len() as u64,
            free_blocks: free_blocks.sum(),
            segments: seen.grants.len() as u64,
            backend_allocations: seen.granted,
            backend_releases: seen.returned,
            requested_bytes: self.live.iter().map(|block| block.requested).sum(),
            peak_reserved_bytes: self.peak_reserved,
            largest_free_block: runs.iter().map(|(from, to)| to - from).max().unwrap_or(0),
            memory_limit: self.limit,
            alloc_calls: self.alloc_calls,
            free_calls: self.free_calls,
            alloc_retries: retries,
            out_of_memory_count: self.out_of_memory,
            pending_bytes: 0,
            event_records: 0,
            event_queries: 0,
            stream_waits: 0,
            oom_waits: 0,
            oom_wait_ns: 0,
            handler_calls: 0,
        }
    }

    /// Memory that live blocks keep the pool from giving back: of a segment all, of a range what
    /// is not in whole free pages.
    pub fn kept(&self, setup: &Setup, seen: &Seen) -> u64 {
        let live = self.live();
        let runs = self.free_runs(seen);
        seen.grants
            .iter()
            .map(|(&base, &span)| (base, base + span))
            .filter(|&grant| live.touches(grant))
            .map(|grant| {
                let held = seen.memory.within(grant).bytes();
                let pages: u64 = if has_pages(setup) && seen.ranges.contains(&grant.0) {
                    runs.within(grant).iter().map(whole_pages).sum()
                } else {
                    0
                };
                held - pages
            })
            .sum()
    }

    /// Whether a request that no free block holds must be served all the same. Nothing must fail
    /// that:
    /// - has a place in free memory;
    /// - fits beside what is held, for any preset;
    /// - fits beside what live blocks keep ([`Model::kept`]), for presets that give back. With
    ///   pages that is all but the pages in which live blocks lie, wherever the free ones are.
    ///
    /// Segments are aligned to 2 MiB only, so that a request with a larger alignment takes more.
    pub fn must_serve(&self, setup: &Setup, seen: &Seen, size: u64, align: u64) -> bool {
        let has_place = self.free_runs(seen).iter().any(|(from, to)| {
            round_up(from, align)
                .and_then(|start| start.checked_add(size))
                .is_some_and(|end| end <= to)
        });
        if has_place {
            return true;
        }
        // A request takes whole pages of a range, or all that it may need of a segment.
        let as_segment = if align <= SEGMENT_ALIGN {
            Some(size)
        } else {
            size.checked_add(align - GRAIN)
        };
        let need = match (has_pages(setup), setup.gives) {
            (false, _) => as_segment,
            (true, Gives::WholePages) => round_up(size, PAGE).min(as_segment),
            (true, _) => Some(size),
        };
        let Some(need) = need else { return false };
        let end = seen.grants.iter().map(|(base, span)| base + span).max();
        let addresses_last = size
            .checked_add(align)
            .and_then(|room| room.checked_mul(2)?.checked_add(1 << 47)?.checked_add(end?))
            .is_some()
            || (end.is_none() && size < 1 << 50 && align < 1 << 50);
        let most = match self.limit {
            0 => setup.capacity,
            limit => limit.min(setup.capacity),
        };
        let taken = if setup.preset == Preset::Xla {
            seen.memory.bytes()
        } else {
            self.kept(setup, seen)
        };
        // The last bytes of an odd capacity or limit are no grain.
        addresses_last && taken + need <= round_down(most, GRAIN)
    }

    /// Where a request without alignment may lie: at the start of a smallest free run that holds
    /// it; as in XLA, of the lowest. Empty: no run does.
    pub fn best_fits(&self, setup: &Setup, seen: &Seen, size: u64) -> Vec<u64> {
        let runs = self.free_runs(seen);
        let holding = || runs.iter().filter(|(from, to)| to - from >= size);
        let smallest = holding().map(|(from, to)| to - from).min();
        let equals = holding().filter(|(from, to)| Some(to - from) == smallest);
        let wanted = if setup.preset == Preset::Xla {
            1
        } else {
            usize::MAX
        };
        equals.map(|(from, _)| from).take(wanted).collect()
    }
}

/// Whether the pool takes memory by pages.
pub fn has_pages(setup: &Setup) -> bool {
    setup.gives != Gives::Segments && setup.preset == Preset::Default
}

fn whole_pages((from, to): Interval) -> u64 {
    let first = round_up(from, PAGE).expect("simulated addresses are not the last ones");
    round_down(to, PAGE).saturating_sub(first)
}

/// The largest block that may be handed out for a request of this rounded size.
pub fn largest_block(preset: Preset, size: u64) -> u64 {
    match preset {
        Preset::Default | Preset::Luma03 => size,
        // A rest as large as the request is always split off.
        Preset::Xla => size.saturating_mul(2).saturating_sub(GRAIN),
    }
}

/// The most that the default preset may ask of its device at once, when `reserved` are held. What
/// an alignment leaves out before the block may be part of it, and memory that begins inside a page
/// goes on to the end of one.
pub fn largest_step(size: u64, align: u64, reserved: u64) -> u64 {
    let request = if align > GRAIN {
        size.saturating_add(align)
    } else {
        size
    };
    round_up(request, PAGE)
        .unwrap_or(u64::MAX)
        .max(LARGEST_STEP)
        .max(reserved / 8)
}
