#![forbid(unsafe_code)]
//! One order of the steps with, for each use of a buffer, the use before it and the one after it, kept under changes to a stretch.

use super::problem::{Access, NONE, Problem};

/// An order of all steps and the links between the uses of each buffer along it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) order: Vec<u32>,
    /// The position of each step.
    pub(super) pos: Vec<u32>,
    /// For each use, the next and the previous use of its buffer.
    pub(super) next: Vec<u32>,
    pub(super) prev: Vec<u32>,
    /// For each use: a spill after it has to copy the buffer out.
    pub(super) dirty: Vec<bool>,
    /// The stretch last opened.
    pub(super) start: u32,
    pub(super) end: u32,
    /// From this position on the change makes no difference but for what is resident there.
    pub(super) settled: u32,
    /// The buffers used in the stretch, each once.
    pub(super) touched: Vec<u32>,
    /// The first use of each buffer.
    head: Vec<u32>,
    /// For each buffer touched: its last use before the stretch, and its first use in it.
    before: Vec<u32>,
    first: Vec<u32>,
    after: Vec<u32>,
    /// For each buffer touched: what the stretch left before it was changed.
    left_dirty: Vec<bool>,
    latest: Vec<u32>,
    stamp: Vec<u32>,
    epoch: u32,
}

impl Line {
    /// `order` holds every step once.
    pub(super) fn new(problem: &Problem, order: &[u32]) -> Line {
        let (uses, buffers) = (problem.use_step.len(), problem.size.len());
        let mut line = Line {
            order: order.to_vec(),
            pos: vec![0; problem.steps()],
            next: vec![NONE; uses],
            prev: vec![NONE; uses],
            dirty: vec![false; uses],
            start: 0,
            end: 0,
            settled: 0,
            touched: Vec::new(),
            head: vec![NONE; buffers],
            before: vec![NONE; buffers],
            first: vec![NONE; buffers],
            after: vec![NONE; buffers],
            left_dirty: vec![false; buffers],
            latest: vec![NONE; buffers],
            stamp: vec![0; buffers],
            epoch: 0,
        };
        line.open(problem, 0, order.len() as u32);
        line.put(problem, order);
        line
    }

    /// Makes `start..end` the stretch that `put` will change.
    pub(super) fn open(&mut self, problem: &Problem, start: u32, end: u32) {
        self.start = start;
        self.end = end;
        self.touched.clear();
        if self.epoch == u32::MAX {
            self.stamp.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1;
        for position in start..end {
            for &used in problem.uses(self.order[position as usize]) {
                let buffer = problem.use_buffer[used as usize];
                let b = buffer as usize;
                if self.stamp[b] != self.epoch {
                    self.stamp[b] = self.epoch;
                    self.before[b] = self.prev[used as usize];
                    self.touched.push(buffer);
                }
                self.after[b] = self.next[used as usize];
                self.left_dirty[b] = self.dirty[used as usize];
            }
        }
    }

    /// Puts `steps`, which are those of the open stretch in another order, in its place.
    pub(super) fn put(&mut self, problem: &Problem, steps: &[u32]) {
        for &buffer in &self.touched {
            self.latest[buffer as usize] = self.before[buffer as usize];
            self.first[buffer as usize] = NONE;
        }
        for (position, &step) in (self.start..self.end).zip(steps) {
            self.order[position as usize] = step;
            self.pos[step as usize] = position;
            for &used in problem.uses(step) {
                let b = problem.use_buffer[used as usize] as usize;
                let previous = std::mem::replace(&mut self.latest[b], used);
                self.prev[used as usize] = previous;
                self.dirty[used as usize] = self.dirty_after(problem, used);
                match previous {
                    NONE => self.head[b] = used,
                    _ => self.next[previous as usize] = used,
                }
                if self.first[b] == NONE {
                    self.first[b] = used;
                }
            }
        }
        self.settled = self.end;
        for index in 0..self.touched.len() {
            let b = self.touched[index] as usize;
            let (latest, mut after) = (self.latest[b], self.after[b]);
            self.next[latest as usize] = after;
            if after != NONE {
                self.prev[after as usize] = latest;
            }
            // Where a write and a fill changed places, later uses find another state.
            if after != NONE && self.dirty[latest as usize] != self.left_dirty[b] {
                self.settled = self.settled.max(self.position(problem, after));
            }
            while after != NONE {
                let dirty = self.dirty_after(problem, after);
                if dirty == self.dirty[after as usize] {
                    break;
                }
                self.dirty[after as usize] = dirty;
                after = self.next[after as usize];
                let until = if after == NONE {
                    self.order.len() as u32
                } else {
                    self.position(problem, after)
                };
                self.settled = self.settled.max(until);
            }
        }
    }

    /// Whether a spill right after a use has to copy the buffer out, by what the use before left.
    fn dirty_after(&self, problem: &Problem, used: u32) -> bool {
        match problem.use_access[used as usize] {
            Access::Fills => false,
            Access::Writes => true,
            Access::Keeps => match self.prev[used as usize] {
                NONE => !problem.backed[problem.use_buffer[used as usize] as usize],
                previous => self.dirty[previous as usize],
            },
        }
    }

    /// The position of a use.
    pub(super) fn position(&self, problem: &Problem, used: u32) -> u32 {
        self.pos[problem.use_step[used as usize] as usize]
    }

    /// The first use of a buffer that is used.
    pub(super) fn first_use(&self, buffer: u32) -> u32 {
        self.head[buffer as usize]
    }

    /// `buffer` is used in the open stretch.
    pub(super) fn is_touched(&self, buffer: u32) -> bool {
        self.stamp[buffer as usize] == self.epoch
    }

    /// For a buffer that is used in the open stretch and before it: the last use before, and the first one in it.
    pub(super) fn across(&self, buffer: u32) -> Option<(u32, u32)> {
        let before = self.before[buffer as usize];
        if before == NONE {
            None
        } else {
            Some((before, self.first[buffer as usize]))
        }
    }
}
