#![forbid(unsafe_code)]
//! Changes to how segments are strung together.

use super::decode::Decoder;
use super::moves::Shuffle;
use super::pricer::Pricer;
use super::problem::Problem;
use super::random::Random;
use super::segments::{GROUP, Row, weave};

/// Segments in a row, and the row with a change that is being tried.
#[derive(Debug)]
pub(super) struct Strung {
    segments: Vec<Vec<u32>>,
    row: Row,
    changed: Row,
    /// The position where each place's steps start in the order, for places where groups start.
    bounds: Vec<u32>,
    changed_bounds: Vec<u32>,
    /// The places that the change spans.
    low: usize,
    high: usize,
    taken: Vec<usize>,
    wanted: Vec<u32>,
}

impl Strung {
    /// The whole row is the first change to be put in place, with [`Self::decode`] and
    /// [`Self::keep`]. There are two segments at least.
    pub(super) fn new(segments: Vec<Vec<u32>>, row: Row) -> Self {
        let places = segments.len();
        Self {
            segments,
            changed: row.clone(),
            row,
            bounds: vec![0; places + 1],
            changed_bounds: Vec::new(),
            low: 0,
            high: places,
            taken: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// Draws a change. False: it is none.
    pub(super) fn draw(
        &mut self,
        problem: &Problem,
        pricer: &Pricer,
        random: &mut Random,
        shuffle: &mut Shuffle,
    ) -> bool {
        let places = self.segments.len();
        let (low, high) = match random.below(8) {
            0 | 1 => {
                let at = 1 + random.below(places as u32 - 1) as usize;
                self.changed.woven[at] = !self.changed.woven[at];
                (at, at + 1)
            }
            2 => {
                let length = random.magnitude(places as u32 - 1) as usize;
                let at = 1 + random.below((places - length) as u32) as usize;
                let kind = random.below(4);
                for place in at..at + length {
                    self.changed.woven[place] = match kind {
                        0 => false,
                        1 => (place - at) % 2 == 0,
                        2 => (place - at) % 2 == 1,
                        _ => (place - at) % 3 != 0,
                    };
                }
                (at, at + length)
            }
            _ => {
                if !self.shuffle(problem, pricer, random, shuffle) {
                    return false;
                }
                let (low, high) = (shuffle.start, shuffle.start + shuffle.from.len());
                let along = random.below(4) > 0;
                for (place, &from) in (low..high).zip(&shuffle.from) {
                    self.changed.segment[place] = self.row.segment[from as usize];
                    if along {
                        self.changed.woven[place] = self.row.woven[from as usize];
                    }
                }
                self.changed.woven[0] = false;
                (low, high)
            }
        };
        self.span(low, high);
        true
    }

    fn shuffle(
        &self,
        problem: &Problem,
        pricer: &Pricer,
        random: &mut Random,
        shuffle: &mut Shuffle,
    ) -> bool {
        let places = self.segments.len();
        if random.below(2) == 0 {
            return shuffle.draw(random, places);
        }
        let place = |position: u32| self.bounds.partition_point(|&bound| bound <= position) - 1;
        match pricer.eviction(problem, random) {
            Some((last, next)) => shuffle.close(random, places, place(last), place(next)),
            None => false,
        }
    }

    /// Keeps groups small, and widens the change to whole groups of the row as it is and as it is to
    /// be.
    fn span(&mut self, low: usize, mut high: usize) {
        let places = self.segments.len();
        for place in low.max(GROUP)..(high + GROUP).min(places) {
            if (place + 1 - GROUP..=place).all(|place| self.changed.woven[place]) {
                self.changed.woven[place] = false;
                high = high.max(place + 1);
            }
        }
        self.low = low;
        while self.low > 0 && (self.row.woven[self.low] || self.changed.woven[self.low]) {
            self.low -= 1;
        }
        while high < places && (self.row.woven[high] || self.changed.woven[high]) {
            high += 1;
        }
        self.high = high;
    }

    /// Sets `steps` to what the change puts into the order, which `pos` describes, and gives the
    /// position where it starts.
    pub(super) fn decode(
        &mut self,
        problem: &Problem,
        pos: &[u32],
        decoder: &mut Decoder,
        steps: &mut Vec<u32>,
    ) -> u32 {
        let start = self.bounds[self.low];
        self.changed_bounds.clear();
        self.changed_bounds.push(start);
        steps.clear();
        decoder.begin();
        let mut place = self.low;
        while place < self.high {
            let end = self.changed.group_end(place + 1);
            self.wanted.clear();
            let group = &self.changed.segment[place..end];
            weave(&self.segments, group, &mut self.taken, &mut self.wanted);
            decoder.add(problem, pos, start, &self.wanted, steps);
            self.changed_bounds
                .resize(end - self.low + 1, start + steps.len() as u32);
            place = end;
        }
        start
    }

    /// Keeps the change, or takes it back.
    pub(super) fn settle(&mut self, keep: bool) {
        let span = self.low..self.high;
        let (from, to) = match keep {
            true => (&self.changed, &mut self.row),
            false => (&self.row, &mut self.changed),
        };
        to.segment[span.clone()].copy_from_slice(&from.segment[span.clone()]);
        to.woven[span.clone()].copy_from_slice(&from.woven[span]);
        if keep {
            self.bounds[self.low..=self.high].copy_from_slice(&self.changed_bounds);
        }
    }
}
