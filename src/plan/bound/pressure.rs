#![forbid(unsafe_code)]
//! What each memory must give up, and which gaps it can come from.

use super::flow::{Gap, Line};
use crate::plan::graph::{Graph, NodeKind};
use crate::plan::timeline::Timeline;

/// The problem of one memory: which gaps to spill, so that what is resident fits at every event.
///
/// What is resident changes between events only by what leaves, so that the positions of a memory's
/// events are all that constrain it. Of these the line keeps those where not all fits, and that no
/// neighbour implies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// The cuts and the gaps that are open to choice. Weights are in units of `scale`.
    pub line: Line,
    /// Of each gap of the line: its number in the timeline.
    pub gaps: Vec<usize>,
    /// Gaps (numbers in the timeline) that every plan must spill: something that they cross leaves
    /// no room for their buffer.
    pub forced: Vec<usize>,
    /// Bytes moved by the spills of the forced gaps.
    pub forced_traffic: u128,
    /// Weights and demands of the line are in units of this many of the memory's.
    pub scale: u64,
}

/// A gap with the points that it crosses: from `first` up to `end`, exclusively.
#[derive(Clone, Copy)]
struct Candidate {
    number: usize,
    first: u32,
    end: u32,
    weight: u64,
    traffic: u64,
}

/// A memory's points, the positions of its events in their order.
#[derive(Clone, Default)]
struct Points {
    /// The position of the last point so far.
    last: Option<usize>,
    /// What the buffers with an event at the point take.
    pinned: Vec<u64>,
    candidates: Vec<Candidate>,
}

/// The problem of each memory.
#[must_use]
pub fn pressures(graph: &Graph, timeline: &Timeline) -> Vec<Pressure> {
    let mut memories = vec![Points::default(); graph.memories().len()];
    let mut progress = vec![Cursor::default(); graph.buffers()];
    for (at, &node) in timeline.order().iter().enumerate() {
        let mut event = |buffer: u32| {
            let weight = graph.footprint(buffer);
            let memory = &mut memories[graph.memory(buffer) as usize];
            let point = memory.pin(at, weight);
            let cursor = &mut progress[buffer as usize];
            if cursor.events > 0 && weight > 0 && cursor.point + 1 < point {
                let gap = cursor.events - 1;
                memory.candidates.push(Candidate {
                    number: timeline.first_gap(buffer) + gap,
                    first: cursor.point + 1,
                    end: point,
                    weight,
                    traffic: timeline.gap_traffic(buffer, gap),
                });
            }
            cursor.events += 1;
            cursor.point = point;
        };
        match graph.kind(node) {
            NodeKind::Alloc(buffer) | NodeKind::Free(buffer) => event(buffer),
            NodeKind::Operation => graph
                .uses(node)
                .iter()
                .for_each(|usage| event(usage.buffer)),
        }
    }
    (0..)
        .zip(memories)
        .map(|(memory, points)| points.pressure(graph.room(memory)))
        .collect()
}

/// A buffer's events so far, and the point of the latest.
#[derive(Clone, Copy, Default)]
struct Cursor {
    events: usize,
    point: u32,
}

impl Points {
    /// Notes an event at a position; answers its point.
    fn pin(&mut self, position: usize, weight: u64) -> u32 {
        if self.last != Some(position) {
            self.last = Some(position);
            self.pinned.push(0);
        }
        let point = self.pinned.len() - 1;
        self.pinned[point] = self.pinned[point].saturating_add(weight);
        point as u32
    }

    fn pressure(mut self, room: u64) -> Pressure {
        let rooms: Vec<u64> = self
            .pinned
            .iter()
            .map(|pinned| room.saturating_sub(*pinned))
            .collect();
        let mut pressure = Pressure {
            scale: 1,
            ..Pressure::default()
        };
        self.take_forced(&rooms, &mut pressure);
        self.candidates
            .sort_unstable_by_key(|gap| (gap.first, gap.end, gap.number));
        let scale = self
            .candidates
            .iter()
            .fold(0, |scale, gap| gcd(scale, gap.weight));
        pressure.scale = scale.max(1);
        for gap in &mut self.candidates {
            gap.weight /= pressure.scale;
        }
        let cuts = cuts(&rooms, &self.candidates, pressure.scale);
        pressure.line.demands = cuts.iter().map(|cut| cut.demand).collect();
        // Of each point the number of cuts before it.
        let mut before = Vec::with_capacity(rooms.len() + 1);
        let mut passed = 0;
        for point in 0..=rooms.len() {
            before.push(passed);
            let is_cut = cuts
                .get(passed as usize)
                .is_some_and(|cut| cut.point == point);
            passed += u32::from(is_cut);
        }
        for gap in &self.candidates {
            let (first, end) = (before[gap.first as usize], before[gap.end as usize]);
            if first < end {
                pressure.gaps.push(gap.number);
                pressure.line.gaps.push(Gap {
                    first,
                    end,
                    weight: gap.weight,
                    unit: gap.traffic / (gap.weight * pressure.scale),
                });
            }
        }
        pressure
    }

    /// Takes out the gaps that find no room at some point that they cross. Candidates come by
    /// ascending end.
    fn take_forced(&mut self, rooms: &[u64], pressure: &mut Pressure) {
        // Points such that each has the least room from the one before on; the newest is last.
        let mut lowest: Vec<u32> = Vec::new();
        let mut next = 0;
        self.candidates.retain(|gap| {
            while next < gap.end {
                while lowest
                    .last()
                    .is_some_and(|&at| rooms[at as usize] >= rooms[next as usize])
                {
                    lowest.pop();
                }
                lowest.push(next);
                next += 1;
            }
            let least = lowest.partition_point(|&at| at < gap.first);
            let fits = gap.weight <= rooms[lowest[least] as usize];
            if !fits {
                pressure.forced.push(gap.number);
                pressure.forced_traffic += u128::from(gap.traffic);
            }
            fits
        });
    }
}

/// A point that not all that crosses it can stay resident at.
struct Cut {
    point: usize,
    room: u64,
    demand: u64,
    /// Gaps that begin, and gaps that end, up to here.
    begun: usize,
    ended: usize,
}

/// The points that constrain the choice. Candidates are sorted by `first`, their weights and the
/// demands in units of `scale`.
fn cuts(rooms: &[u64], candidates: &[Candidate], scale: u64) -> Vec<Cut> {
    let mut ending = vec![(0, 0_u64); rooms.len() + 1];
    for gap in candidates {
        let (count, weight) = &mut ending[gap.end as usize];
        *count += 1;
        *weight += gap.weight;
    }
    let mut cuts: Vec<Cut> = Vec::new();
    let (mut begun, mut ended, mut crossing) = (0, 0, 0);
    for (point, room) in rooms.iter().enumerate() {
        ended += ending[point].0;
        crossing -= ending[point].1;
        while let Some(gap) = candidates
            .get(begun)
            .filter(|gap| gap.first as usize == point)
        {
            crossing += gap.weight;
            begun += 1;
        }
        let room = room / scale;
        if crossing <= room {
            continue;
        }
        // All that crosses the last cut crosses this point, and finds no more room here.
        while cuts
            .last()
            .is_some_and(|cut| cut.ended == ended && cut.room >= room)
        {
            cuts.pop();
        }
        // All that crosses this point crosses the last cut, and found no more room there.
        if cuts
            .last()
            .is_some_and(|cut| cut.begun == begun && cut.room <= room)
        {
            continue;
        }
        cuts.push(Cut {
            point,
            room,
            demand: crossing - room,
            begun,
            ended,
        });
    }
    cuts
}

fn gcd(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
