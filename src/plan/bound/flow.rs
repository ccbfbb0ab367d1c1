#![forbid(unsafe_code)]
//! The least-cost fractional choice of gaps to spill in one memory, as a min-cost flow on a line.
//!
//! A [`Line`] has cuts 0, 1, …, and gaps, each of which crosses a run of them. Spilling gap g by
//! z(g) of its weight costs unit(g) * z(g); at each cut the spilled weight that crosses it must reach
//! the cut's demand. The matrix has consecutive ones in its columns, so the differences of
//! neighbouring rows are the balance equations of a flow: node i lies before cut i, a gap is an arc
//! from the node before its first cut to the node after its last, and what a cut has above its demand
//! flows back from node i + 1 to node i for nothing.
//!
//! The flow is found by successive shortest paths with potentials (Ahuja, Magnanti and Orlin, Network
//! Flows, 1993, section 9.7), one cut after the other: while cut k is served all nodes behind it
//! are one, the sink, so that a path from node k stays among nodes near it. A path of reduced
//! length at most the dearest unit always exists, so that a handful of stacks serve as the queue
//! (Dial 1969). Whenever the sweep stops, its cost is the optimum for the cuts served so far and
//! therefore a lower bound for all.

/// A gap that may be spilled, and the cuts that it crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first cut that it crosses.
    pub first: u32,
    /// One more than the last cut that it crosses.
    pub end: u32,
    /// What spilling it takes off each cut that it crosses; more than 0.
    pub weight: u64,
    /// What it costs to spill one of `weight`.
    pub unit: u64,
}

impl Gap {
    /// What it costs to spill it whole.
    pub fn cost(&self) -> i128 {
        i128::from(self.unit) * i128::from(self.weight)
    }
}

/// The gaps of one memory and what they must give up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What must be spilled of the gaps that cross each cut; at most their weight in sum.
    pub demands: Vec<u64>,
    /// The gaps, ascending by `first`. The weights that cross a cut sum up to less than 2^64.
    pub gaps: Vec<Gap>,
}

/// A least-cost flow, or one for the first cuts only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What is spilled of each gap.
    pub spilled: Vec<u64>,
    /// The cost; a lower bound for the whole line where not `complete`.
    pub cost: u128,
    /// Of each node, and of the sink, the dual potential: falls from node to node, and the fall
    /// across a cut is its price.
    pub potentials: Vec<u64>,
    /// Every cut has its demand.
    pub complete: bool,
}

/// Solves the line. After each search for a path `go_on` hears how many nodes the search visited, and
/// says whether to go on.
pub fn solve(line: &Line, go_on: &mut dyn FnMut(u64) -> bool) -> Flow {
    let mut sweep = Sweep::new(line);
    let complete = sweep.run(go_on);
    let cost = line
        .gaps
        .iter()
        .zip(&sweep.spilled)
        .map(|(gap, spilled)| u128::from(gap.unit) * u128::from(*spilled))
        .sum();
    Flow {
        spilled: sweep.spilled,
        cost,
        potentials: sweep.potentials,
        complete,
    }
}

/// How the search came to a node.
#[derive(Clone, Copy)]
enum Step {
    /// From the next node, over a cut.
    Left,
    /// From the node before, over a cut that has more than its demand.
    Right,
    /// Over a gap, spilling more of it.
    Spill(u32),
    /// Over a gap backwards, spilling less of it.
    Keep(u32),
}

struct Sweep<'a> {
    line: &'a Line,
    /// Of each gap, what is spilled.
    spilled: Vec<u64>,
    /// Of each cut, what is spilled above the demand.
    surplus: Vec<u64>,
    /// Of each node; the sink's is 0, as is that of every node not yet split off it.
    potentials: Vec<u64>,
    /// Of each node, where the gaps that begin there start in `line.gaps`.
    begins: Vec<u32>,
    /// Of each node, where the gaps that end there start in `ending`.
    ends: Vec<u32>,
    ending: Vec<u32>,
    search: Search,
}

/// One search for a shortest path.
struct Search {
    /// Its number, and of each node that of the search that reached it last.
    number: u32,
    reached: Vec<u32>,
    distances: Vec<u64>,
    steps: Vec<Step>,
    settled: Vec<u32>,
    /// Reached nodes by distance; a node may lie at a longer distance too, which is then stale.
    queue: Vec<Vec<u32>>,
    /// The shortest way into the sink so far: the gap that enters it, and the length.
    best: Option<(u32, u64)>,
}

/// Of each key in 0..keys, where its items start when items are sorted by key; one more at the end.
fn starts(keys: usize, items: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0; keys + 1];
    for key in items {
        starts[key as usize + 1] += 1;
    }
    for at in 0..keys {
        starts[at + 1] += starts[at];
    }
    starts
}

impl Search {
    fn new(nodes: usize, dearest: u64) -> Self {
        Self {
            number: 0,
            reached: vec![0; nodes],
            distances: vec![0; nodes],
            steps: vec![Step::Left; nodes],
            settled: Vec::new(),
            queue: vec![Vec::new(); dearest as usize + 1],
            best: None,
        }
    }

    fn start(&mut self, node: usize) {
        if self.number == u32::MAX {
            self.reached.fill(0);
            self.number = 0;
        }
        self.number += 1;
        self.settled.clear();
        for stack in &mut self.queue {
            stack.clear();
        }
        self.best = None;
        self.reach(node, 0, Step::Left);
    }

    /// Nothing as long as the best way into the sink, or longer, is of use.
    fn is_too_long(&self, distance: u64) -> bool {
        let limit = self
            .best
            .map_or(self.queue.len() as u64, |(_, length)| length);
        distance >= limit
    }

    fn reach(&mut self, node: usize, distance: u64, step: Step) {
        if self.is_too_long(distance)
            || (self.reached[node] == self.number && self.distances[node] <= distance)
        {
            return;
        }
        self.reached[node] = self.number;
        self.distances[node] = distance;
        self.steps[node] = step;
        self.queue[distance as usize].push(node as u32);
    }

    fn reach_sink(&mut self, gap: u32, distance: u64) {
        if !self.is_too_long(distance) {
            self.best = Some((gap, distance));
        }
    }
}

impl<'a> Sweep<'a> {
    fn new(line: &'a Line) -> Self {
        let cuts = line.demands.len();
        let nodes = cuts + 1;
        let ends = starts(nodes, line.gaps.iter().map(|gap| gap.end));
        let mut next = ends.clone();
        let mut ending = vec![0; line.gaps.len()];
        for (at, gap) in (0..).zip(&line.gaps) {
            let place = &mut next[gap.end as usize];
            ending[*place as usize] = at;
            *place += 1;
        }
        let dearest = line.gaps.iter().map(|gap| gap.unit).max().unwrap_or(0);
        Self {
            line,
            spilled: vec![0; line.gaps.len()],
            surplus: vec![0; cuts],
            potentials: vec![0; nodes],
            begins: starts(nodes, line.gaps.iter().map(|gap| gap.first)),
            ends,
            ending,
            search: Search::new(nodes, dearest),
        }
    }

    /// Serves the cuts from left to right; false when it was told to stop.
    fn run(&mut self, go_on: &mut dyn FnMut(u64) -> bool) -> bool {
        // What is spilled across the current cut.
        let mut across = 0;
        for (cut, &demand) in self.line.demands.iter().enumerate() {
            let ending = self.ends[cut] as usize..self.ends[cut + 1] as usize;
            for &gap in &self.ending[ending] {
                across -= self.spilled[gap as usize];
            }
            while across < demand {
                let Some((last, length)) = self.shortest_path(cut) else {
                    return false;
                };
                self.raise_potentials(length);
                across += self.augment(cut, last, demand - across);
                if !go_on(self.search.settled.len() as u64) {
                    return false;
                }
            }
            self.surplus[cut] = across - demand;
        }
        true
    }

    /// Looks for a shortest path from the node before `cut` to the sink. Answers the gap by which
    /// it enters the sink, and its reduced length; there is one unless the demand is more than all.
    fn shortest_path(&mut self, cut: usize) -> Option<(u32, u64)> {
        self.search.start(cut);
        for distance in 0..self.search.queue.len() {
            while !self.search.is_too_long(distance as u64) {
                let Some(node) = self.search.queue[distance].pop() else {
                    break;
                };
                if self.search.distances[node as usize] == distance as u64 {
                    self.search.settled.push(node);
                    self.leave(node as usize, cut);
                }
            }
        }
        self.search.best
    }

    /// Reaches what lies one arc beyond a settled node, the sink being all behind `cut`.
    fn leave(&mut self, node: usize, cut: usize) {
        let search = &mut self.search;
        let distance = search.distances[node];
        let potential = self.potentials[node];
        if node > 0 {
            let fall = self.potentials[node - 1] - potential;
            search.reach(node - 1, distance + fall, Step::Left);
        }
        if node < cut && self.surplus[node] > 0 {
            // The price across a cut with a surplus is 0.
            search.reach(node + 1, distance, Step::Right);
        }
        for gap in self.begins[node]..self.begins[node + 1] {
            let Gap {
                end, weight, unit, ..
            } = self.line.gaps[gap as usize];
            if self.spilled[gap as usize] == weight {
                continue;
            }
            // Not spilled whole, so worth at most what it costs.
            let end = end as usize;
            if end > cut {
                search.reach_sink(gap, distance + unit - potential);
            } else {
                let length = distance + unit + self.potentials[end] - potential;
                search.reach(end, length, Step::Spill(gap));
            }
        }
        for &gap in &self.ending[self.ends[node] as usize..self.ends[node + 1] as usize] {
            if self.spilled[gap as usize] == 0 {
                continue;
            }
            // Spilled in part, so worth at least what it costs.
            let Gap { first, unit, .. } = self.line.gaps[gap as usize];
            let first = first as usize;
            let length = distance + self.potentials[first] - potential - unit;
            search.reach(first, length, Step::Keep(gap));
        }
    }

    /// Makes every arc of the path found tight.
    fn raise_potentials(&mut self, length: u64) {
        for &node in &self.search.settled {
            let node = node as usize;
            self.potentials[node] += length - self.search.distances[node];
        }
    }

    /// Sends as much as the path found can take, at most `wanted`, and answers how much.
    fn augment(&mut self, cut: usize, last: u32, wanted: u64) -> u64 {
        let mut amount = wanted;
        self.walk(cut, last, |sweep, step, node| {
            amount = amount.min(match step {
                Step::Left => u64::MAX,
                Step::Right => sweep.surplus[node - 1],
                Step::Spill(gap) => {
                    sweep.line.gaps[gap as usize].weight - sweep.spilled[gap as usize]
                }
                Step::Keep(gap) => sweep.spilled[gap as usize],
            });
        });
        self.walk(cut, last, |sweep, step, node| match step {
            Step::Left => sweep.surplus[node] += amount,
            Step::Right => sweep.surplus[node - 1] -= amount,
            Step::Spill(gap) => sweep.spilled[gap as usize] += amount,
            Step::Keep(gap) => sweep.spilled[gap as usize] -= amount,
        });
        amount
    }

    /// Calls `each` with the steps of the path found and the nodes that they lead to.
    fn walk(&mut self, cut: usize, last: u32, mut each: impl FnMut(&mut Self, Step, usize)) {
        each(self, Step::Spill(last), usize::MAX);
        let mut node = self.line.gaps[last as usize].first as usize;
        while node != cut {
            let step = self.search.steps[node];
            each(self, step, node);
            node = match step {
                Step::Left => node + 1,
                Step::Right => node - 1,
                Step::Spill(gap) => self.line.gaps[gap as usize].first as usize,
                Step::Keep(gap) => self.line.gaps[gap as usize].end as usize,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gap, Line, solve};

    /// Lines such that every demand can be met.
    fn random_line(state: &mut u64) -> Line {
        let mut below = |bound: u64| {
            *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (*state >> 33) % bound
        };
        let cuts = 1 + below(14) as u32;
        let mut gaps: Vec<Gap> = (0..1 + below(20))
            .map(|_| {
                let first = below(cuts.into()) as u32;
                Gap {
                    first,
                    end: cuts.min(first + 1 + below(6) as u32),
                    weight: 1 + below(9),
                    unit: 1 + below(2),
                }
            })
            .collect();
        gaps.sort_by_key(|gap| gap.first);
        let demands = (0..cuts).map(|cut| below(1 + crossing(&gaps, cut, |at| gaps[at].weight)));
        let demands = demands.collect();
        Line { demands, gaps }
    }

    fn crossing(gaps: &[Gap], cut: u32, amount: impl Fn(usize) -> u64) -> u64 {
        let crossing = |at: &usize| gaps[*at].first <= cut && cut < gaps[*at].end;
        (0..gaps.len()).filter(crossing).map(amount).sum()
    }

    #[test]
    fn a_flow_is_proved_by_its_potentials() {
        let mut state = 1;
        for _ in 0..3_000 {
            let line = random_line(&mut state);
            let flow = solve(&line, &mut |_| true);
            assert!(flow.complete);
            let price = |cut: usize| flow.potentials[cut] - flow.potentials[cut + 1];
            let mut dual = 0;
            for (cut, &demand) in line.demands.iter().enumerate() {
                let spilled = crossing(&line.gaps, cut as u32, |at| flow.spilled[at]);
                assert!(spilled >= demand, "{line:?}: {flow:?}");
                dual += u128::from(price(cut) * demand);
            }
            for (gap, &spilled) in line.gaps.iter().zip(&flow.spilled) {
                assert!(spilled <= gap.weight, "{line:?}: {flow:?}");
                let prices: u64 = (gap.first..gap.end).map(|cut| price(cut as usize)).sum();
                dual -= u128::from(prices.saturating_sub(gap.unit) * gap.weight);
            }
            assert_eq!(dual, flow.cost, "{line:?}: {flow:?}");
        }
    }

    #[test]
    fn a_flow_that_is_stopped_gives_a_bound() {
        let mut state = 2;
        for _ in 0..300 {
            let line = random_line(&mut state);
            let all = solve(&line, &mut |_| true).cost;
            let mut left = 3;
            let some = solve(&line, &mut |_| {
                left -= 1;
                left > 0
            });
            assert!(some.cost <= all);
            assert!(some.complete || left == 0);
        }
    }

    #[test]
    fn weights_near_the_end_of_what_is_counted_in_do_not_overflow() {
        let weight = u64::MAX / 2;
        let gap = |first, end| Gap {
            first,
            end,
            weight,
            unit: 2,
        };
        let line = Line {
            demands: vec![weight, u64::MAX - 1, weight],
            gaps: vec![gap(0, 2), gap(1, 3)],
        };
        let flow = solve(&line, &mut |_| true);
        assert_eq!(flow.spilled, [weight, weight]);
        assert_eq!(flow.cost, 4 * u128::from(weight));
    }
}
