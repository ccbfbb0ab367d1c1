#![forbid(unsafe_code)]
//! Cuts an order into segments that belong together, and strings them together again.

use super::problem::{NONE, Problem};

/// Cuts `order` after positions where the least is alive that a spill would have to copy out: such
/// a stretch, often one tile of the output, is worth moving as a whole. A cut is a minimum of that
/// within `reach` positions on each side, below some point of its segment.
pub(super) fn cut(problem: &Problem, order: &[u32], reach: usize) -> Vec<Vec<u32>> {
    let live = dirty_live(problem, order);
    let mut segments = Vec::new();
    let mut from = 0;
    let mut most = 0;
    for at in 0..order.len() {
        let low = at.saturating_sub(reach);
        let high = (at + reach).min(order.len() - 1);
        most = most.max(live[at]);
        let lowest = most > live[at] && live[low..=high].iter().all(|&other| other >= live[at]);
        if lowest || at + 1 == order.len() {
            most = 0;
            segments.push(order[from..=at].to_vec());
            from = at + 1;
        }
    }
    segments
}

/// After each position, the part of its memory that each live buffer without a right copy outside
/// takes, summed over the buffers, in parts of 2^20.
fn dirty_live(problem: &Problem, order: &[u32]) -> Vec<u64> {
    let buffers = problem.size.len();
    let mut span = vec![(NONE, 0); buffers];
    for (at, &step) in order.iter().enumerate() {
        for &used in problem.uses(step) {
            let span = &mut span[problem.use_buffer[used as usize] as usize];
            span.0 = span.0.min(at as u32);
            span.1 = at as u32;
        }
    }
    let mut change = vec![0i64; order.len() + 1];
    for (buffer, &(first, last)) in span.iter().enumerate() {
        if first != NONE && !problem.backed[buffer] {
            let room = problem.room[problem.memory[buffer] as usize];
            let part = ((u128::from(problem.size[buffer]) << 20) / u128::from(room.max(1))) as i64;
            change[first as usize] += part;
            change[last as usize] -= part;
        }
    }
    let mut live = 0;
    change
        .iter()
        .take(order.len())
        .map(|&change| {
            live += change;
            live as u64
        })
        .collect()
}

/// Segments that are woven into one, at most.
pub(super) const GROUP: usize = 4;

/// Segments in a row, some of them woven with the one before.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Segments, each once.
    pub(super) segment: Vec<u32>,
    /// For each place: woven with what is in the place before.
    pub(super) woven: Vec<bool>,
}

impl Row {
    /// One after another.
    pub(super) fn new(segments: usize) -> Self {
        Self {
            segment: (0..segments as u32).collect(),
            woven: vec![false; segments],
        }
    }

    /// The first place from `place` on where a group starts, or the end.
    pub(super) fn group_end(&self, mut place: usize) -> usize {
        while place < self.woven.len() && self.woven[place] {
            place += 1;
        }
        place
    }
}

/// Appends the steps of several segments to `out`, each segment in its order and all at the same
/// pace.
pub(super) fn weave(
    segments: &[Vec<u32>],
    group: &[u32],
    taken: &mut Vec<usize>,
    out: &mut Vec<u32>,
) {
    if let [only] = group {
        out.extend_from_slice(&segments[*only as usize]);
        return;
    }
    taken.clear();
    taken.resize(group.len(), 0);
    loop {
        let mut best: Option<(usize, u64, u64)> = None;
        for (member, &segment) in group.iter().enumerate() {
            let length = segments[segment as usize].len() as u64;
            let next = taken[member] as u64 + 1;
            if next <= length && best.is_none_or(|(_, num, den)| next * den < num * length) {
                best = Some((member, next, length));
            }
        }
        let Some((member, _, _)) = best else { return };
        out.push(segments[group[member] as usize][taken[member]]);
        taken[member] += 1;
    }
}
