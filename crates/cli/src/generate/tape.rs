//! The trace that a generator writes.

use std::fmt::Write;

use luma::trace::Op;

/// A block of the trace. It is not `Copy`: what is freed cannot be freed again.
#[must_use]
pub struct Block {
    id: u64,
    size: u64,
}

impl Block {
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// The lines so far.
pub struct Tape {
    text: String,
    next_id: u64,
    events: usize,
}

impl Tape {
    pub fn new(comment: &str) -> Self {
        Self {
            text: format!("# {comment}\nop,id,size,stream\n"),
            next_id: 0,
            events: 0,
        }
    }

    /// A block that is live before the trace begins, and stays.
    pub fn pre(&mut self, size: u64) {
        let _ = self.make(Op::Pre, size);
    }

    pub fn alloc(&mut self, size: u64) -> Block {
        self.make(Op::Alloc, size)
    }

    pub fn free(&mut self, block: Block) {
        self.push(Op::Free, block.id, block.size);
    }

    /// A block that is needed for one operation only.
    pub fn temporary(&mut self, size: u64) {
        let block = self.alloc(size);
        self.free(block);
    }

    /// Frees the youngest first.
    pub fn free_in_reverse(&mut self, blocks: Vec<Block>) {
        for block in blocks.into_iter().rev() {
            self.free(block);
        }
    }

    /// Events so far.
    pub fn events(&self) -> usize {
        self.events
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn make(&mut self, op: Op, size: u64) -> Block {
        let id = self.next_id;
        self.next_id += 1;
        self.push(op, id, size);
        Block { id, size }
    }

    fn push(&mut self, op: Op, id: u64, size: u64) {
        self.events += 1;
        writeln!(self.text, "{},{id},{size},0", op.name()).expect("a string takes any text");
    }
}
