//! A trace made ready to be replayed: checked, and with ids turned into places of a table, so that
//! the replaying loop does nothing but calls.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use luma::trace::{Event, Op, Reader};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Allocates into the slot.
    Alloc,
    /// Asks for memory that the recorded program did not get; what comes is freed again.
    Try,
    /// Frees what is in the slot.
    Free,
}

/// One call of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub bytes: usize,
    pub slot: u32,
    pub action: Action,
}

/// A whole trace.
#[derive(Debug, Default)]
pub struct Program {
    /// The file, as it was named on the command line.
    pub name: String,
    /// The calls in file order. The first `prelude` of them are blocks that were live before the
    /// recording began.
    pub steps: Vec<Step>,
    /// How many of the steps are made before timing starts.
    pub prelude: usize,
    /// Each step's line in the file.
    pub lines: Vec<u64>,
    /// How large the table of blocks must be.
    pub slots: usize,
    /// The most bytes that were live at once, as requested.
    pub peak_live: u64,
}

impl Program {
    /// Reads a trace file. An error names the file, and the line where there is one.
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        Self::read(name, BufReader::new(file))
    }

    /// The calls of one replay, without those before timing starts.
    pub fn timed_calls(&self) -> usize {
        self.steps.len() - self.prelude
    }

    fn read(name: String, input: impl BufRead) -> Result<Self> {
        let mut builder = Builder::default();
        for event in Reader::new(input) {
            let event =
                event.map_err(|error| anyhow!("{name}:{}: {}", error.line(), error.problem()))?;
            builder
                .add(&event)
                .map_err(|problem| anyhow!("{name}:{}: {problem}", event.line))?;
        }
        let mut program = builder.program;
        if program.steps.is_empty() {
            return Err(anyhow!("{name}: the trace has no allocations"));
        }
        program.name = name;
        Ok(program)
    }
}

#[derive(Default)]
struct Builder {
    program: Program,
    slot_of: HashMap<u64, u32>,
    unused: Vec<u32>,
    live: u64,
}

impl Builder {
    fn add(&mut self, event: &Event) -> Result<(), &'static str> {
        let (action, slot) = match event.op {
            Op::Pre | Op::Alloc => {
                let slot = self.take_slot()?;
                self.slot_of.insert(event.id, slot);
                self.live = (self.live.checked_add(event.size))
                    .ok_or("the live blocks together pass 2^64 - 1 bytes")?;
                (Action::Alloc, slot)
            }
            Op::Free => {
                // The reader lets only live blocks be freed.
                let slot = self.slot_of.remove(&event.id).expect("the block is live");
                self.unused.push(slot);
                self.live -= event.size;
                (Action::Free, slot)
            }
            Op::AllocFailed => (Action::Try, 0),
            // A block is free when the program and its streams are done with it, which is `free`;
            // what the recorded allocator took from its own backend is none of our calls.
            Op::FreeRequest | Op::SegmentAlloc => return Ok(()),
        };
        let bytes =
            usize::try_from(event.size).map_err(|_| "the size does not fit this machine")?;
        let program = &mut self.program;
        program.steps.push(Step {
            bytes,
            slot,
            action,
        });
        program.lines.push(event.line);
        program.prelude += usize::from(event.op == Op::Pre);
        program.peak_live = program.peak_live.max(self.live);
        Ok(())
    }

    /// The slot that was left last, so that the table stays small and warm.
    fn take_slot(&mut self) -> Result<u32, &'static str> {
        if let Some(slot) = self.unused.pop() {
            return Ok(slot);
        }
        let slot = u32::try_from(self.program.slots).map_err(|_| "more than 2^32 live blocks")?;
        self.program.slots += 1;
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Program> {
        Program::read("t.csv".into(), text.as_bytes())
    }

    #[test]
    fn ids_become_slots_and_other_events_are_left_out() {
        let program = read(
            "op,id,size\nsegment_alloc,-1,4096\npre,90,10\nalloc,70,20\nfree_req,90,10\nfree,90,10\n\
             alloc_failed,-1,99\nalloc,80,5\nfree,70,20\n",
        )
        .unwrap();
        let step = |action, slot, bytes| Step {
            bytes,
            slot,
            action,
        };
        assert_eq!(
            program.steps,
            [
                step(Action::Alloc, 0, 10),
                step(Action::Alloc, 1, 20),
                step(Action::Free, 0, 10),
                step(Action::Try, 0, 99),
                step(Action::Alloc, 0, 5),
                step(Action::Free, 1, 20),
            ]
        );
        assert_eq!(program.lines, [3, 4, 6, 7, 8, 9]);
        assert_eq!(
            (program.prelude, program.slots, program.peak_live),
            (1, 2, 30)
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = read("op,id,size\nfree,1,1\n").unwrap_err().to_string();
        assert_eq!(error, "t.csv:2: free of block 1, which is not live");
        let huge = format!("op,id,size\nalloc,1,{0}\nalloc,2,{0}\n", u64::MAX);
        let error = read(&huge).unwrap_err().to_string();
        assert_eq!(
            error,
            "t.csv:3: the live blocks together pass 2^64 - 1 bytes"
        );
        let error = read("op,id,size\n").unwrap_err().to_string();
        assert_eq!(error, "t.csv: the trace has no allocations");
    }
}
