#![forbid(unsafe_code)]
//! The words and columns of a trace file, shared by the reader and the writer.

/// The header line of a recorded trace. A reader finds columns by their names, in any order, and
/// passes over names that it does not know.
pub const HEADER: &str = "op,id,size,stream,addr_off,t_us";

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `pre`: a block that was live before the recording began.
    Pre,
    /// `alloc`: a block was handed out.
    Alloc,
    /// `alloc_failed`: a request was refused for want of memory. There is no block.
    AllocFailed,
    /// `free_req`: the program gave the block back, while work may still have been using it.
    FreeRequest,
    /// `free`: the block became free.
    Free,
    /// `segment_alloc`: the recorded allocator took memory from its backend. There is no block.
    SegmentAlloc,
}

impl Op {
    /// Every operation, in the order in which documentation lists them.
    pub const ALL: [Op; 6] = [
        Op::Pre,
        Op::Alloc,
        Op::AllocFailed,
        Op::FreeRequest,
        Op::Free,
        Op::SegmentAlloc,
    ];

    /// The word in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Pre => "pre",
            Op::Alloc => "alloc",
            Op::AllocFailed => "alloc_failed",
            Op::FreeRequest => "free_req",
            Op::Free => "free",
            Op::SegmentAlloc => "segment_alloc",
        }
    }

    /// The operation of that word, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the event is about one block, so that its id means something. In the file the id
    /// of the others is -1.
    #[must_use]
    pub const fn has_block(self) -> bool {
        !matches!(self, Op::AllocFailed | Op::SegmentAlloc)
    }
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub op: Op,
    /// The block's number, unique among the live blocks; 0 where [`Op::has_block`] says no.
    pub id: u64,
    /// Bytes asked for. A free repeats its allocation's size.
    pub size: u64,
    /// The stream; 0 is the default stream.
    pub stream: u64,
    /// Microseconds since the recording began; 0 in a file without times.
    pub time_us: u64,
    /// The line in the file, from 1.
    pub line: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_by_its_own_name_only() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
        for word in ["", "Alloc", "allocs", "free ", "realloc"] {
            assert_eq!(Op::from_name(word), None, "{word:?}");
        }
    }

    #[test]
    fn only_blocks_have_ids() {
        let without: Vec<_> = Op::ALL.into_iter().filter(|op| !op.has_block()).collect();
        assert_eq!(without, [Op::AllocFailed, Op::SegmentAlloc]);
    }
}
