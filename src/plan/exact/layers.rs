#![forbid(unsafe_code)]
//! Which gaps to spill, whole: a search over the cuts of a line, one layer a cut.
//!
//! A state is the set of spilled gaps that cross the cut. A gap is spilled no earlier than at the first
//! cut that has to have it, so that a cut is met by sets none of whose gaps can be spared. The flow's
//! potentials bound what a state still has to pay: with prices for the cuts, every gap that is spilled is
//! worth at most what it costs and at most the prices that it still crosses (Lagrangean duality;
//! Fisher 1981). Of each layer the states with the least bounds are kept, at most `width`. Where
//! none had to be left out that could have led to less than the best known, the best is the optimum.

use std::cmp::Reverse;

use super::states::{Layer, State};
use crate::plan::bound::flow::{Flow, Gap, Line};

/// A choice of whole gaps.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Of each gap of the line: it is spilled.
    pub spilled: Vec<bool>,
    /// What that costs.
    pub cost: i128,
}

/// What a pass found.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The best choice that costs less than the limit.
    pub choice: Option<Choice>,
    /// No choice costs less, nor does any that costs less than the limit if this is the limit.
    pub lower_bound: i128,
}

/// Gaps that are tried at a cut for one state, in widths.
const TRIES: usize = 64;
/// States that a layer may grow to before it is cut back to its width, in widths.
const GROWTH: usize = 8;
/// No decision.
const NONE: u32 = u32::MAX;
/// Decisions made since they were last gone through for those still of use.
const LITTER: usize = 1 << 20;

/// A search over a line: the prices, and what lies ahead of each cut.
pub struct Search<'a> {
    line: &'a Line,
    potentials: &'a [u64],
    /// Of each node, what everything behind it costs at least if nothing that crosses it is spilled.
    ahead: Vec<i128>,
    /// The most gaps that cross a cut.
    widest: usize,
}

impl<'a> Search<'a> {
    /// A search guided by a flow of the same line.
    pub fn new(line: &'a Line, flow: &'a Flow) -> Self {
        let potentials = &flow.potentials[..];
        let nodes = line.demands.len() + 1;
        // What prices above its cost gain for a gap from a node on.
        let gain = |gap: &Gap, node: u32| {
            let prices = potentials[node as usize] - potentials[gap.end as usize];
            i128::from(prices.saturating_sub(gap.unit)) * i128::from(gap.weight)
        };
        let mut ahead = vec![0; nodes];
        // Gains of the gaps that begin at a node.
        let mut beginning = vec![0; nodes];
        let mut crossing = vec![0_i64; nodes];
        for gap in &line.gaps {
            crossing[gap.first as usize] += 1;
            crossing[gap.end as usize] -= 1;
            beginning[gap.first as usize] += gain(gap, gap.first);
            for node in gap.first + 1..gap.end {
                let gain = gain(gap, node);
                if gain == 0 {
                    break;
                }
                ahead[node as usize] -= gain;
            }
        }
        let (mut priced, mut gained) = (0, 0);
        for node in (0..nodes).rev() {
            gained += beginning[node];
            ahead[node] += priced - gained;
            if node > 0 {
                let price = potentials[node - 1] - potentials[node];
                priced += i128::from(price) * i128::from(line.demands[node - 1]);
            }
        }
        let mut widest = 0;
        let mut now = 0;
        for change in crossing {
            now += change;
            widest = widest.max(now);
        }
        Self {
            line,
            potentials,
            ahead,
            widest: widest as usize,
        }
    }

    /// What every choice costs at least, by the prices alone.
    pub fn lower_bound(&self) -> i128 {
        self.ahead[0]
    }

    /// One pass, which looks for a choice that costs less than `limit` and keeps at most `width`
    /// states a layer. `go_on` hears how many states each layer had; none where it says to stop.
    pub fn pass(
        &self,
        width: usize,
        limit: i128,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<Pass> {
        let mut walk = Walk::new(self, width, limit);
        for cut in 0..self.line.demands.len() {
            walk.enter(cut);
            walk.cross(cut);
            if !go_on(walk.work) {
                return None;
            }
            walk.work = 0;
        }
        Some(walk.finish())
    }
}

/// A gap that crosses the current cut.
#[derive(Clone, Copy)]
struct Active {
    gap: u32,
    slot: u32,
    end: u32,
    weight: u64,
    cost: i128,
}

/// A gap that a state may spill.
#[derive(Clone, Copy)]
struct Open {
    active: Active,
    /// What spilling it raises the bound by, as far as the prices tell.
    rise: i128,
    /// Its weight and that of all behind it.
    rest: u64,
}

/// A gap spilled, and the decision before.
#[derive(Clone, Copy)]
struct Decision {
    gap: u32,
    before: u32,
}

struct Walk<'a> {
    search: &'a Search<'a>,
    width: usize,
    limit: i128,
    /// Gaps of the line that have begun.
    begun: usize,
    /// Those that cross the current cut, by falling weight, then by rising cost, then by falling end.
    active: Vec<Active>,
    vacant: Vec<u32>,
    /// Of each slot: what it costs to spill the gap in it; what the gap is worth behind the cut.
    costs: Vec<i128>,
    worths: Vec<i128>,
    layer: Layer,
    next: Layer,
    spare: Layer,
    decisions: Vec<Decision>,
    /// The number of decisions at which to sort out those of no use.
    full: usize,
    /// The least bound of a state that was left out, or the limit.
    left_out: i128,
    open: Vec<Open>,
    picked: Vec<usize>,
    work: u64,
}

impl<'a> Walk<'a> {
    fn new(search: &'a Search<'a>, width: usize, limit: i128) -> Self {
        let slots = search.widest;
        let mut layer = Layer::new(slots);
        layer.push_empty(State {
            cost: 0,
            bound: search.ahead[0],
            weight: 0,
            decision: NONE,
        });
        Self {
            search,
            width,
            limit,
            begun: 0,
            active: Vec::new(),
            vacant: (0..slots as u32).rev().collect(),
            costs: vec![0; slots],
            worths: vec![0; slots],
            layer,
            next: Layer::new(slots),
            spare: Layer::new(slots),
            decisions: Vec::new(),
            full: LITTER,
            left_out: limit,
            open: Vec::new(),
            picked: Vec::new(),
            work: 0,
        }
    }

    /// Brings the gaps that cross the cut up to date.
    fn enter(&mut self, cut: usize) {
        let Self { layer, vacant, .. } = self;
        self.active.retain(|gap| {
            let stays = gap.end as usize > cut;
            if !stays {
                layer.forget(gap.slot, gap.weight);
                vacant.push(gap.slot);
            }
            stays
        });
        let gaps = &self.search.line.gaps;
        while let Some(gap) = gaps.get(self.begun).filter(|gap| gap.first as usize == cut) {
            let Some(slot) = self.vacant.pop() else {
                break;
            };
            let active = Active {
                gap: self.begun as u32,
                slot,
                end: gap.end,
                weight: gap.weight,
                cost: gap.cost(),
            };
            self.costs[slot as usize] = active.cost;
            let key = |gap: &Active| (Reverse(gap.weight), gap.cost, Reverse(gap.end), gap.gap);
            let place = self
                .active
                .partition_point(|other| key(other) < key(&active));
            self.active.insert(place, active);
            self.begun += 1;
        }
    }

    /// Takes every state over the cut.
    fn cross(&mut self, cut: usize) {
        let search = self.search;
        for gap in &self.active {
            self.worths[gap.slot as usize] = worth(search.potentials, cut + 1, gap);
        }
        let demand = search.line.demands[cut];
        self.next.clear();
        for at in 0..self.layer.len() {
            self.work += 1;
            let state = *self.layer.state(at);
            if state.weight >= demand {
                let bound = state.cost + self.ahead(cut + 1, self.layer.set(at));
                self.keep(at, State { bound, ..state });
            } else {
                self.spill(at, cut, demand - state.weight);
            }
            if self.next.len() >= self.width.saturating_mul(GROWTH) {
                self.shrink();
            }
        }
        self.shrink();
        std::mem::swap(&mut self.layer, &mut self.next);
        if self.decisions.len() > self.full {
            self.sort_out();
        }
    }

    /// Forgets the decisions that no state stands on.
    fn sort_out(&mut self) {
        // Of each decision its new number, if it has one; NONE stands for those to be forgotten.
        let mut numbers = vec![NONE; self.decisions.len()];
        for at in 0..self.layer.len() {
            let mut decision = self.layer.state(at).decision;
            while decision != NONE && numbers[decision as usize] == NONE {
                numbers[decision as usize] = 0;
                decision = self.decisions[decision as usize].before;
            }
        }
        let renumber = |numbers: &[u32], decision: u32| match decision {
            NONE => NONE,
            decision => numbers[decision as usize],
        };
        let mut kept = 0;
        for at in 0..numbers.len() {
            if numbers[at] != NONE {
                let Decision { gap, before } = self.decisions[at];
                let before = renumber(&numbers, before);
                self.decisions[kept] = Decision { gap, before };
                numbers[at] = kept as u32;
                kept += 1;
            }
        }
        self.decisions.truncate(kept);
        self.full = 2 * kept + LITTER;
        self.layer
            .each_decision(|decision| renumber(&numbers, decision));
    }

    /// What is ahead of a node at least when these gaps are spilled.
    fn ahead(&self, node: usize, set: &[u64]) -> i128 {
        let mut ahead = self.search.ahead[node];
        for (word, bits) in set.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                ahead -= self.worths[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
        }
        ahead
    }

    fn shrink(&mut self) {
        if let Some(bound) = self.next.shrink(self.width, &self.costs, &mut self.spare) {
            self.left_out = self.left_out.min(bound);
        }
    }

    /// Adds a state with what it has picked to the next layer.
    fn keep(&mut self, at: usize, mut state: State) {
        if state.bound >= self.limit {
            return;
        }
        for &pick in &self.picked {
            self.decisions.push(Decision {
                gap: self.open[pick].active.gap,
                before: state.decision,
            });
            state.decision = self.decisions.len() as u32 - 1;
        }
        let picked = self.picked.iter().map(|pick| self.open[*pick].active.slot);
        self.next.push(self.layer.set(at), picked, state);
    }

    /// Tries the sets of gaps that a state may spill to meet a demand. Gaps come by falling weight,
    /// and a set is complete as soon as it is heavy enough, so that each set has no gap to spare.
    fn spill(&mut self, at: usize, cut: usize, demand: u64) {
        let state = *self.layer.state(at);
        self.collect_open(at, cut);
        self.picked.clear();
        let mut sum = 0_u64;
        let mut bound = state.bound;
        let mut tried = 0;
        let mut next = 0;
        loop {
            let rest = self.open.get(next).map_or(0, |open| open.rest);
            if sum.saturating_add(rest) < demand {
                let Some(last) = self.picked.pop() else {
                    break;
                };
                sum -= self.open[last].active.weight;
                bound -= self.open[last].rise;
                next = last + 1;
                continue;
            }
            tried += 1;
            if tried > self.width.saturating_mul(TRIES) {
                self.left_out = self.left_out.min(state.bound);
                break;
            }
            let open = self.open[next];
            if bound + open.rise < self.limit && !self.has_better(next) {
                self.picked.push(next);
                sum += open.active.weight;
                bound += open.rise;
                if sum >= demand {
                    self.complete(at, cut, &state, sum);
                    self.picked.pop();
                    sum -= open.active.weight;
                    bound -= open.rise;
                }
            }
            next += 1;
        }
        self.picked.clear();
        self.work += tried as u64 / 4;
    }

    fn collect_open(&mut self, at: usize, cut: usize) {
        let set = self.layer.set(at);
        self.open.clear();
        for active in &self.active {
            if set[active.slot as usize / 64] >> (active.slot % 64) & 1 == 0 {
                self.open.push(Open {
                    active: *active,
                    rise: active.cost - worth(self.search.potentials, cut, active),
                    rest: 0,
                });
            }
        }
        let mut rest = 0_u64;
        for open in self.open.iter_mut().rev() {
            rest += open.active.weight;
            open.rest = rest;
        }
    }

    /// Whether a gap that was passed over is no lighter, no dearer and no shorter than this one: it
    /// could take its place.
    fn has_better(&self, open: usize) -> bool {
        let mine = &self.open[open].active;
        let mut picked = self.picked.iter().rev().peekable();
        for (other, rival) in self.open[..open].iter().enumerate().rev() {
            if picked.next_if(|pick| **pick == other).is_some() {
                continue;
            }
            if rival.active.cost <= mine.cost && rival.active.end >= mine.end {
                return true;
            }
        }
        false
    }

    /// Adds the state that the picked gaps lead to.
    fn complete(&mut self, at: usize, cut: usize, state: &State, sum: u64) {
        let mut cost = state.cost;
        let mut ahead = self.ahead(cut + 1, self.layer.set(at));
        for &pick in &self.picked {
            let active = &self.open[pick].active;
            cost += active.cost;
            ahead -= self.worths[active.slot as usize];
        }
        let state = State {
            cost,
            bound: cost + ahead,
            weight: state.weight + sum,
            ..*state
        };
        self.keep(at, state);
    }

    fn finish(self) -> Pass {
        let best = (0..self.layer.len())
            .map(|at| self.layer.state(at))
            .min_by_key(|state| state.cost)
            .filter(|state| state.cost < self.limit);
        let choice = best.map(|state| {
            let mut spilled = vec![false; self.search.line.gaps.len()];
            let mut decision = state.decision;
            while decision != NONE {
                let Decision { gap, before } = self.decisions[decision as usize];
                spilled[gap as usize] = true;
                decision = before;
            }
            Choice {
                spilled,
                cost: state.cost,
            }
        });
        let found = choice.as_ref().map_or(self.limit, |choice| choice.cost);
        Pass {
            choice,
            lower_bound: self.left_out.min(found).max(self.search.ahead[0]),
        }
    }
}

/// What a spilled gap is worth at a node: the prices that it crosses from there on, at most its cost.
fn worth(potentials: &[u64], node: usize, gap: &Active) -> i128 {
    let prices = potentials[node] - potentials[gap.end as usize];
    (i128::from(prices) * i128::from(gap.weight)).min(gap.cost)
}
