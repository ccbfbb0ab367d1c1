#![forbid(unsafe_code)]
//! Turns a wish for an order into an order that keeps the dependencies: each step is preceded by what it still needs.

use super::problem::{NONE, Problem};

/// Work space of the decoding.
#[derive(Debug)]
pub(super) struct Decoder {
    stamp: Vec<u32>,
    epoch: u32,
    stack: Vec<u32>,
}

impl Decoder {
    pub(super) fn new(problem: &Problem) -> Decoder {
        Decoder {
            stamp: vec![0; problem.steps()],
            epoch: 0,
            stack: Vec::new(),
        }
    }

    /// Forgets what is done, but for the steps at positions before those that `pos` says in `add`.
    pub(super) fn begin(&mut self) {
        if self.epoch == NONE {
            self.stamp.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1;
    }

    /// Appends `wanted` to `out` in order, each step after those that it still needs; steps whose `pos` is below `start` are done.
    pub(super) fn add(
        &mut self,
        problem: &Problem,
        pos: &[u32],
        start: u32,
        wanted: &[u32],
        out: &mut Vec<u32>,
    ) {
        for &step in wanted {
            if pos[step as usize] < start || self.stamp[step as usize] == self.epoch {
                continue;
            }
            self.stack.push(step);
            while let Some(&step) = self.stack.last() {
                if self.stamp[step as usize] == self.epoch {
                    self.stack.pop();
                    continue;
                }
                let depth = self.stack.len();
                for &needed in problem.before.list(step).iter().rev() {
                    if pos[needed as usize] >= start && self.stamp[needed as usize] != self.epoch {
                        self.stack.push(needed);
                    }
                }
                if self.stack.len() == depth {
                    self.stamp[step as usize] = self.epoch;
                    out.push(step);
                    self.stack.pop();
                }
            }
        }
    }
}
