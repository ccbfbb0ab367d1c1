//! Training on packed batches of changing token counts: no step's sizes are another's.

use super::rng::Rng;
use super::tape::{Block, Tape};

/// Bytes that a step keeps for one token, over all layers.
const BYTES_PER_TOKEN: u64 = 270_000;
const EXPERTS: usize = 8;

pub fn play(rng: &mut Rng, tape: &mut Tape, events: usize) {
    let layers = rng.between(12, 24);
    for _ in 0..layers {
        for megabytes in [4, 12, 16, 16] {
            tape.pre(megabytes << 20);
        }
    }

    let mut tokens = rng.between(14_500, 20_480);
    let mut input = tape.alloc(tokens * 4096);
    let mut steps = 0;
    while tape.events() < events || steps == 0 {
        let mut saved = Vec::new();
        for _ in 0..layers {
            layer(rng, tape, &mut saved, tokens, BYTES_PER_TOKEN / layers);
        }
        // The next batch is loaded while this one is worked on.
        tokens = rng.between(14_500, 20_480);
        let next_input = tape.alloc(tokens * 4096);
        backward(rng, tape, saved);
        tape.free(input);
        input = next_input;
        steps += 1;
    }
    tape.free(input);
}

/// Saves `width` bytes a token: norm and attention take half, the experts the rest, each as many
/// tokens as the router sends it.
fn layer(rng: &mut Rng, tape: &mut Tape, saved: &mut Vec<Block>, tokens: u64, width: u64) {
    saved.push(tape.alloc(tokens * width / 8));
    saved.push(tape.alloc(tokens * width * 3 / 8));
    let routing = tape.alloc(tokens * 8 * EXPERTS as u64);
    for share in shares(rng, tokens) {
        let gathered = tape.alloc(share * width / 4);
        saved.push(tape.alloc(share * width / 2));
        tape.free(gathered);
    }
    tape.free(routing);
}

/// Splits the tokens among the experts, none left without.
fn shares(rng: &mut Rng, tokens: u64) -> [u64; EXPERTS] {
    let weights: [u64; EXPERTS] = std::array::from_fn(|_| rng.between(1, 8));
    let total: u64 = weights.iter().sum();
    weights.map(|weight| tokens * weight / total)
}

/// Frees the newest first, each against a gradient of about its size.
fn backward(rng: &mut Rng, tape: &mut Tape, saved: Vec<Block>) {
    for block in saved.into_iter().rev() {
        let gradient = tape.alloc(block.size() - block.size() / rng.between(2, 8));
        tape.free(block);
        tape.free(gradient);
    }
}
