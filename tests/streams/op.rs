//! Operations on a pool and its streams, and how any bytes are read as a program of them.

/// One operation. Places are taken modulo what there is, so that any value means something. Of six
/// streams the first one is the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Allocate {
        stream: usize,
        bytes: u64,
        align: u64,
    },
    Free {
        stream: usize,
        place: usize,
    },
    /// In the order of the stream that it was allocated on.
    FreeOwn {
        place: usize,
    },
    FreeBadly {
        stream: usize,
        place: usize,
    },
    RecordStream {
        stream: usize,
        place: usize,
    },
    ReleaseStream {
        stream: usize,
    },
    Queue {
        stream: usize,
    },
    Finish {
        stream: usize,
    },
    FinishOne {
        stream: usize,
    },
    /// Lets the work of streams run that were destroyed.
    FinishDestroyed,
    /// Destroys a stream, whatever it has queued, and makes another one, which gets its handle.
    Replace {
        stream: usize,
    },
    /// So many streams that allocate and free one block each, and are destroyed.
    Churn {
        count: usize,
    },
    BeginCapture {
        stream: usize,
    },
    JoinCapture {
        stream: usize,
        origin: usize,
    },
    Invalidate {
        stream: usize,
    },
    EndCapture {
        stream: usize,
    },
    CloneGraph {
        place: usize,
    },
    DropGraph {
        place: usize,
    },
    AllocateUnordered {
        bytes: u64,
        align: u64,
    },
    FreeUnordered {
        place: usize,
    },
    EmptyCache,
    SetLimit {
        bytes: u64,
    },
    Stats,
    FailBackend {
        call: u64,
    },
    FailStream {
        call: u64,
    },
}

/// What a device gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Grains,
    WholePages,
    Segments,
}

/// What a program runs on.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub preset: luma::Preset,
    pub gives: Gives,
    pub capacity: u64,
    /// Whether an event can stand for all streams.
    pub has_barriers: bool,
    /// Whether the figures are compared after every operation. They take finished work in.
    pub is_watchful: bool,
}

pub const MIB: u64 = 1 << 20;
pub const CAPACITIES: [u64; 3] = [6 * MIB, 24 * MIB, 1 << 30];
pub const STREAMS: usize = 6;

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first)
    }

    fn size(&mut self) -> u64 {
        let value = self.byte() as u64;
        match self.byte() % 8 {
            0 | 1 => 1 + value * 16,
            2 | 3 => 256 * (1 + value),
            4 => 2 * MIB + 256 * (value % 3) - 256,
            5 | 6 => (1 + value % 8) * MIB / 2,
            _ => (1 + value % 16) * MIB,
        }
    }

    fn op(&mut self) -> Op {
        let kind = self.byte() % 72;
        let stream = self.byte() % STREAMS;
        match kind {
            0..=11 => Op::Allocate {
                stream,
                bytes: self.size(),
                align: 0,
            },
            12 | 13 => Op::Allocate {
                stream,
                bytes: self.size(),
                align: 256 << (self.byte() % 15),
            },
            14..=18 => Op::Free {
                stream,
                place: self.byte(),
            },
            19..=26 => Op::FreeOwn { place: self.byte() },
            27 => Op::FreeBadly {
                stream,
                place: self.byte(),
            },
            28..=30 => Op::RecordStream {
                stream,
                place: self.byte(),
            },
            31 => Op::ReleaseStream { stream },
            32..=37 => Op::Queue { stream },
            38 | 39 => Op::Finish { stream },
            40..=42 => Op::FinishOne { stream },
            43 => Op::FinishDestroyed,
            44 | 45 => Op::Replace { stream },
            46 => Op::Churn {
                count: self.byte() % 24,
            },
            47..=49 => Op::BeginCapture { stream },
            50 => Op::JoinCapture {
                stream,
                origin: self.byte() % STREAMS,
            },
            51 => Op::Invalidate { stream },
            52 | 53 => Op::EndCapture { stream },
            54 => Op::CloneGraph { place: self.byte() },
            55 | 56 => Op::DropGraph { place: self.byte() },
            57 => Op::EmptyCache,
            58 => Op::SetLimit {
                bytes: [0, 0, 4 * MIB, 6 * MIB + 256, 16 * MIB][self.byte() % 5],
            },
            59 | 60 => Op::Stats,
            61 => Op::FailBackend {
                call: 1 + self.byte() as u64 % 4,
            },
            64..=67 => Op::AllocateUnordered {
                bytes: self.size(),
                align: 256 << (self.byte() % 3),
            },
            68..=71 => Op::FreeUnordered { place: self.byte() },
            _ => Op::FailStream {
                call: 1 + self.byte() as u64 % 6,
            },
        }
    }
}

/// The program that some bytes are, a few for each operation. `only`: all of it on one stream.
pub fn program(bytes: &[[u8; 5]], only: Option<usize>) -> Vec<Op> {
    let ops = bytes.iter().map(|bytes| {
        let mut bytes = *bytes;
        if let Some(stream) = only {
            bytes[1] = stream as u8;
        }
        Bytes(&bytes).op()
    });
    let is_of_others = |op: &Op| {
        let starts = matches!(op, Op::Replace { .. } | Op::BeginCapture { .. });
        let is_unordered = matches!(op, Op::AllocateUnordered { .. } | Op::FreeUnordered { .. });
        starts || is_unordered || matches!(op, Op::Churn { .. })
    };
    ops.filter(|op| only.is_none() || !is_of_others(op))
        .collect()
}
