//! Operations, and how any bytes are read as a program of them.

use luma::backend::BackendError;
use luma::{Preset, Status};

const MIB: u64 = 1 << 20;

/// What a backend is made to fail with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    OutOfMemory,
    Driver,
}

impl Failure {
    /// The message of an injected driver failure.
    pub const MESSAGE: &'static str = "injected failure";

    pub fn error(self) -> BackendError {
        match self {
            Self::OutOfMemory => BackendError::OutOfMemory,
            Self::Driver => BackendError::failed(Status::Driver, Self::MESSAGE),
        }
    }
}

/// One operation. Places are taken modulo what there is, so that any value means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Allocates at a multiple of `align`, which need not be a power of two.
    Alloc {
        bytes: u64,
        align: u64,
    },
    /// Frees a live block.
    Free {
        place: usize,
    },
    /// Frees an address that was never the pool's.
    FreeForeign {
        address: u64,
    },
    /// Frees an address inside a live block.
    FreeInside {
        place: usize,
        offset: u64,
    },
    /// Frees a block that was freed before.
    FreeAgain {
        place: usize,
    },
    EmptyCache,
    /// Sets the limit; 0 takes it away.
    SetLimit {
        bytes: u64,
    },
    ResetPeak,
    /// Makes the `call`-th backend call from now on fail.
    FailCall {
        call: u64,
        failure: Failure,
    },
    /// Asks the pool for everything that it tells without changing anything.
    Inspect,
}

/// What a device gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Ranges, in which any grain can be mapped, as the host has them.
    Grains,
    /// Ranges, in which whole pages are mapped, as CUDA has them.
    WholePages,
    /// Segments only.
    Segments,
}

pub const GIVES: [Gives; 3] = [Gives::Grains, Gives::WholePages, Gives::Segments];

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub preset: Preset,
    /// What the device gives.
    pub gives: Gives,
    /// Bytes of the device.
    pub capacity: u64,
    /// The pool's limit; 0: none.
    pub limit: u64,
}

pub const PRESETS: [Preset; 3] = [Preset::Default, Preset::Xla, Preset::Luma03];
/// The last: more than the addresses of a simulated device hold.
pub const CAPACITIES: [u64; 6] = [
    3 * MIB / 2,
    8 * MIB + 256,
    64 * MIB,
    1 << 30,
    1 << 40,
    u64::MAX,
];
/// None, exact, odd, no multiple of 256, less than one grain.
pub const LIMITS: [u64; 7] = [0, 16 * MIB, MIB + 256, 5 * MIB + 100, 48 * MIB, 4096, 255];

/// Reads values from bytes; past their end, zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u64 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                u64::from(first)
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u64 {
        self.byte() << 8 | self.byte()
    }

    /// One of the bytes that lie around a value.
    fn near(&mut self, value: u64) -> u64 {
        value.wrapping_add(self.byte() % 3).wrapping_sub(1)
    }

    /// Sizes of all the kinds that an allocator treats differently.
    fn size(&mut self) -> u64 {
        match self.byte() % 16 {
            0 => self.byte() % 4,
            1 | 2 => 1 + self.word() % 4096,
            3..=5 => 256 * (1 + self.byte()),
            6 => self.near(MIB),
            7 => self.near(2 * MIB),
            8 => {
                let power = 1 << (8 + self.byte() % 26);
                self.near(power)
            }
            9 | 10 => self.word() * 512,
            11 | 12 => (1 + self.byte() % 12) * MIB,
            13 => (1 + self.byte()) * MIB / 2 + self.byte(),
            14 => self.word() << (12 + self.byte() % 24),
            _ => u64::MAX - (self.word() >> (self.byte() % 16)),
        }
    }

    fn alignment(&mut self) -> u64 {
        match self.byte() % 16 {
            0 => 0,
            1 => 1 + self.byte(),
            2 => 1 << (self.byte() % 64),
            3..=6 => 512,
            7..=9 => 4096,
            10 | 11 => 2 * MIB,
            12 => 4 * MIB,
            _ => 256 << (self.byte() % 16),
        }
    }

    fn op(&mut self) -> Op {
        match self.byte() % 32 {
            0..=10 => Op::Alloc {
                bytes: self.size(),
                align: 0,
            },
            11..=13 => Op::Alloc {
                bytes: self.size(),
                align: self.alignment(),
            },
            14..=22 => Op::Free {
                place: self.byte() as usize,
            },
            23 => Op::FreeInside {
                place: self.byte() as usize,
                offset: self.word(),
            },
            24 => Op::FreeAgain {
                place: self.byte() as usize,
            },
            25 => Op::FreeForeign {
                address: match self.byte() % 3 {
                    0 => self.word(),
                    1 => u64::MAX - self.word(),
                    _ => self.word() << 48,
                },
            },
            26 => Op::EmptyCache,
            27 | 28 => Op::SetLimit {
                bytes: match self.byte() % 8 {
                    0..=3 => 0,
                    4 => LIMITS[self.byte() as usize % LIMITS.len()],
                    5 => self.word() * 4096,
                    6 => (1 + self.byte()) * MIB,
                    _ => self.size(),
                },
            },
            29 => Op::ResetPeak,
            30 => Op::FailCall {
                call: 1 + self.byte() % 6,
                failure: [Failure::OutOfMemory, Failure::Driver][self.byte() as usize % 2],
            },
            _ => Op::Inspect,
        }
    }
}

/// The program that some bytes are.
pub fn program(bytes: &[u8]) -> Vec<Op> {
    let mut bytes = Bytes(bytes);
    let mut program = Vec::new();
    while !bytes.0.is_empty() {
        program.push(bytes.op());
    }
    program
}

/// Bytes as a setup and a program.
pub fn setup_and_program(bytes: &[u8]) -> (Setup, Vec<Op>) {
    let mut bytes = Bytes(bytes);
    let mut pick = |count: usize| bytes.byte() as usize % count;
    let setup = Setup {
        preset: PRESETS[pick(PRESETS.len())],
        gives: GIVES[pick(GIVES.len())],
        capacity: CAPACITIES[pick(CAPACITIES.len())],
        limit: LIMITS[pick(LIMITS.len())],
    };
    (setup, program(bytes.0))
}
