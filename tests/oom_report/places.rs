//! Every place that a refused request could have had, as the device and the live blocks show them,
//! whatever the pool knows of them.

use crate::State;
use luma::backend::{Backend, Pages};

const GRAIN: u64 = 256;

/// Addresses from the first on, up to the second.
type Extent = (u64, u64);

/// A request, rounded.
#[derive(Clone, Copy)]
struct Wanted {
    size: u64,
    align: u64,
}

/// Addresses of a range between live blocks, and the parts of them that have memory.
struct Gap {
    from: u64,
    to: u64,
    memory: Vec<Extent>,
}

fn whole_pages((from, to): Extent, page: u64) -> u64 {
    (to / page * page).saturating_sub(from.next_multiple_of(page))
}

fn overlap(one: Extent, other: Extent) -> Extent {
    let from = one.0.max(other.0);
    (from, one.1.min(other.1).max(from))
}

/// What is left of a grant between the live blocks.
fn gaps(grant: Extent, live: &[Extent]) -> Vec<Extent> {
    let mut at = grant.0;
    let mut gaps = Vec::new();
    for &(from, to) in live {
        if (grant.0..grant.1).contains(&from) {
            gaps.push((at, from));
            at = to;
        }
    }
    gaps.push((at, grant.1));
    gaps.retain(|(from, to)| from < to);
    gaps
}

impl Gap {
    fn new(gap: Extent, mapped: &[Extent]) -> Self {
        let parts = mapped.iter().map(|&part| overlap(gap, part));
        Self {
            from: gap.0,
            to: gap.1,
            memory: parts.filter(|(from, to)| from < to).collect(),
        }
    }

    fn reclaimable(&self, page: u64) -> u64 {
        self.memory
            .iter()
            .map(|&part| whole_pages(part, page))
            .sum()
    }

    /// Where the request may begin so that what it takes is least.
    fn starts(&self, wanted: Wanted) -> Vec<u64> {
        let edges = self.memory.iter().flat_map(|&(from, to)| [from, to]);
        let mut starts = Vec::new();
        for edge in edges.chain([self.from, self.to]) {
            starts.push(edge.next_multiple_of(wanted.align));
            starts.push(edge.saturating_sub(wanted.size) / wanted.align * wanted.align);
        }
        starts.retain(|&start| self.from <= start && start + wanted.size <= self.to);
        starts
    }

    /// What must be mapped for the request to be at `start`, and how much less can be given back then.
    fn costs(&self, start: u64, wanted: Wanted, pages: Pages) -> (u64, u64) {
        let window = (start, start + wanted.size);
        let (mut cost, mut kept) = (0, 0);
        let mut hole_from = self.from;
        let ends = self.memory.iter().copied().chain([(self.to, self.to)]);
        for (from, to) in ends {
            let (first, last) = overlap(window, (hole_from, from));
            if first < last {
                let first = (first / pages.map * pages.map).max(hole_from);
                cost += last.next_multiple_of(pages.map).min(from) - first;
            }
            hole_from = to;
            let rest = [(from, to.min(start)), (from.max(window.1), to)];
            let left: u64 = rest
                .into_iter()
                .map(|part| whole_pages(part, pages.finest))
                .sum();
            kept += whole_pages((from, to), pages.finest) - left;
        }
        (cost, kept)
    }
}

/// That a request of `bytes` was refused rightly: no free memory holds it, and it fits nowhere with
/// what could be mapped, be it after everything else that is free was given back.
pub(crate) fn none_would_do(
    state: &State,
    limit: Option<u64>,
    bytes: u64,
    align: u64,
) -> Result<(), String> {
    let device = &state.device;
    let wanted = Wanted {
        size: bytes.next_multiple_of(GRAIN),
        align: align.max(GRAIN),
    };
    let mut live: Vec<Extent> = Vec::new();
    for &addr in &state.live {
        let size = state.pool.usable_size(addr).ok_or("it is not live")?;
        live.push((addr, addr + size));
    }
    live.sort_unstable();
    let extents = |pairs: Vec<(u64, u64)>| -> Vec<Extent> {
        pairs
            .into_iter()
            .map(|(addr, len)| (addr, addr + len))
            .collect()
    };
    let memory = device.memory().map_err(|error| format!("{error:?}"))?;
    let free = memory.ok_or("the device says nothing")?.free;
    let room = limit.map_or(free, |limit| free.min(limit - device.used()));
    let mut reclaimable = 0;
    for segment in extents(device.segments()) {
        let gaps = gaps(segment, &live);
        if gaps == [segment] {
            reclaimable += segment.1 - segment.0;
        }
        for (from, to) in gaps {
            if from.next_multiple_of(wanted.align) + wanted.size <= to {
                return Err(format!("it fits at {from:#x} of a segment"));
            }
        }
    }
    let Some(pages) = device.pages() else {
        let least = if wanted.align <= device.segment_align() {
            wanted.size
        } else {
            wanted.size + wanted.align
        };
        return if least <= room + reclaimable {
            Err("it fits into a segment of its own".to_owned())
        } else {
            Ok(())
        };
    };
    let mapped = extents(device.mapped());
    // Of each range what can be given back without its own places, and those.
    let mut ranges: Vec<(u64, Vec<Gap>)> = Vec::new();
    for range in extents(device.ranges()) {
        let gaps = gaps(range, &live);
        let is_idle = gaps == [range];
        let gaps: Vec<Gap> = gaps.into_iter().map(|gap| Gap::new(gap, &mapped)).collect();
        let of_pages: u64 = gaps.iter().map(|gap| gap.reclaimable(pages.finest)).sum();
        let all: u64 = gaps
            .iter()
            .flat_map(|gap| &gap.memory)
            .map(|(from, to)| to - from)
            .sum();
        let given = if is_idle { all } else { of_pages };
        reclaimable += given;
        ranges.push((given - of_pages, gaps));
    }
    let alone = wanted.size.next_multiple_of(pages.map);
    if wanted.align <= device.segment_align() && alone <= room + reclaimable {
        return Err(format!(
            "it fits into a range of its own: it takes {alone}, there are {room} and {reclaimable} can be given back"
        ));
    }
    for (edges, gaps) in &ranges {
        for gap in gaps {
            for start in gap.starts(wanted) {
                let (cost, kept) = gap.costs(start, wanted, pages);
                if cost <= room + (reclaimable - edges - kept) {
                    let holes = gap.memory.len() + 1;
                    return Err(format!(
                        "it fits at {start:#x}, between live blocks with up to {holes} holes: it takes {cost}, there are {room}, and {reclaimable} can be given back, of which it needs {kept} itself"
                    ));
                }
            }
        }
    }
    Ok(())
}
