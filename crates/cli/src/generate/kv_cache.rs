//! Key-value caches that grow while sequences do, in the three ways that servers let them.

use super::rng::Rng;
use super::tape::{Block, Tape};

/// Tokens in a page.
const PAGE: u64 = 16;
const MAX_SEQUENCES: usize = 40;

/// How a cache makes room.
enum Cache {
    /// A page at a time.
    Paged(Vec<Block>),
    /// A page at a time, and the oldest is let go once the window is full.
    Window {
        pages: std::collections::VecDeque<Block>,
        most: usize,
    },
    /// One buffer, twice as large each time, with the old one live until it is copied.
    Doubling { buffer: Block, capacity: u64 },
}

struct Sequence {
    cache: Cache,
    length: u64,
    end: u64,
}

pub fn play(rng: &mut Rng, tape: &mut Tape, events: usize) {
    // Keys and values of 16 bits in every layer.
    let token = 2 * 2 * rng.between(16, 40) * 128 * rng.pick(&[2, 4, 8]);
    for _ in 0..rng.between(40, 80) {
        tape.pre(rng.between(1, 64) << 20);
    }

    let mut sequences: Vec<Sequence> = Vec::new();
    while tape.events() < events {
        if sequences.len() < MAX_SEQUENCES && (sequences.is_empty() || rng.one_in(3)) {
            sequences.push(start(rng, tape, token));
        }
        let mut place = 0;
        while place < sequences.len() {
            let sequence = &mut sequences[place];
            // Speculation accepts a few tokens or many.
            sequence.length += rng.between(1, 12);
            grow(sequence, tape, token);
            if sequence.length < sequence.end {
                place += 1;
            } else {
                let ended = sequences.swap_remove(place);
                end(ended.cache, tape);
            }
        }
        tape.temporary(sequences.len() as u64 * 4096 + 512);
    }
    for sequence in sequences {
        end(sequence.cache, tape);
    }
}

fn start(rng: &mut Rng, tape: &mut Tape, token: u64) -> Sequence {
    let length = rng.heavy_tailed(16, 2048);
    let end = length + rng.heavy_tailed(64, 4096);
    let cache = match rng.below(5) {
        0 | 1 => Cache::Paged(Vec::new()),
        2 => Cache::Window {
            pages: Default::default(),
            most: rng.between(8, 32) as usize,
        },
        _ => {
            let capacity = length.next_power_of_two();
            Cache::Doubling {
                buffer: tape.alloc(capacity * token),
                capacity,
            }
        }
    };
    let mut sequence = Sequence { cache, length, end };
    grow(&mut sequence, tape, token);
    sequence
}

/// Makes room for the sequence's length.
fn grow(sequence: &mut Sequence, tape: &mut Tape, token: u64) {
    let pages_needed = sequence.length.div_ceil(PAGE) as usize;
    match &mut sequence.cache {
        Cache::Paged(pages) => {
            while pages.len() < pages_needed {
                pages.push(tape.alloc(PAGE * token));
            }
        }
        Cache::Window { pages, most } => {
            if pages.len() < pages_needed.min(*most) {
                while pages.len() < pages_needed.min(*most) {
                    pages.push_back(tape.alloc(PAGE * token));
                }
            } else if sequence.length % PAGE == 0 {
                pages.push_back(tape.alloc(PAGE * token));
                if let Some(oldest) = pages.pop_front() {
                    tape.free(oldest);
                }
            }
        }
        Cache::Doubling { buffer, capacity } => {
            while *capacity < sequence.length {
                *capacity *= 2;
                let larger = tape.alloc(*capacity * token);
                let old = std::mem::replace(buffer, larger);
                tape.free(old);
            }
        }
    }
}

fn end(cache: Cache, tape: &mut Tape) {
    match cache {
        Cache::Paged(pages) => {
            for page in pages {
                tape.free(page);
            }
        }
        Cache::Window { pages, .. } => {
            for page in pages {
                tape.free(page);
            }
        }
        Cache::Doubling { buffer, .. } => tape.free(buffer),
    }
}
