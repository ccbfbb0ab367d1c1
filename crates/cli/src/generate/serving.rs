//! Serving a language model: requests of very different lengths, many at a time.

use super::rng::Rng;
use super::tape::{Block, Tape};

const HALF: u64 = 2;
const MAX_REQUESTS: usize = 48;

/// A request that is being answered.
struct Request {
    blocks: Vec<Block>,
    length: u64,
    tokens_left: u64,
}

/// The model's dimensions.
struct Model {
    layers: u64,
    hidden: u64,
    vocabulary: u64,
}

pub fn play(rng: &mut Rng, tape: &mut Tape, events: usize) {
    let model = Model {
        layers: rng.between(16, 32),
        hidden: 128 * rng.between(16, 40),
        vocabulary: rng.pick(&[32_000, 128_256]),
    };
    tape.pre(model.vocabulary * model.hidden * HALF);
    for _ in 0..model.layers {
        for units in [
            1,
            3 * model.hidden,
            model.hidden,
            1,
            8 * model.hidden,
            4 * model.hidden,
        ] {
            tape.pre(units * model.hidden * HALF);
        }
    }

    let mut running: Vec<Request> = Vec::new();
    // Answers wait for their readers after the request's memory is gone.
    let mut answers: Vec<Block> = Vec::new();
    while tape.events() < events {
        while running.len() < MAX_REQUESTS && (running.is_empty() || rng.one_in(2)) {
            running.push(prefill(&model, rng, tape));
        }
        decode(&model, tape, &running);
        let mut place = 0;
        while place < running.len() {
            let request = &mut running[place];
            request.tokens_left = request.tokens_left.saturating_sub(16);
            request.length += 16;
            if request.tokens_left > 0 {
                place += 1;
                continue;
            }
            let request = running.swap_remove(place);
            answers.push(tape.alloc(request.length * 8));
            for block in request.blocks {
                tape.free(block);
            }
        }
        while !answers.is_empty() && rng.one_in(2) {
            let read = rng.below(answers.len() as u64) as usize;
            let answer = answers.swap_remove(read);
            tape.free(answer);
        }
    }
    for request in running {
        tape.free_in_reverse(request.blocks);
    }
    tape.free_in_reverse(answers);
}

/// Takes a request in: what stays is its token list and its cache, sized for the whole answer.
fn prefill(model: &Model, rng: &mut Rng, tape: &mut Tape) -> Request {
    let prompt = rng.heavy_tailed(32, 32_768);
    let answer = rng.heavy_tailed(32, 4096);
    let width = prompt * model.hidden * HALF;
    let mut blocks = vec![tape.alloc((prompt + answer) * 8)];
    if rng.one_in(8) {
        // An image: patches in, an embedding kept.
        let patches = rng.between(256, 4096);
        let pixels = tape.alloc(patches * 588 * HALF);
        blocks.push(tape.alloc(patches * model.hidden * HALF));
        tape.free(pixels);
    }
    // Grouped-query attention: keys and values of a quarter of the width.
    let cache = (prompt + answer) * model.layers * model.hidden / 4 * 2 * HALF;
    blocks.push(tape.alloc(cache));

    let mut hidden = tape.alloc(width);
    for _ in 0..2 {
        let projected = tape.alloc(3 * width);
        let attended = tape.alloc(width);
        tape.free(projected);
        let wide = tape.alloc(4 * width);
        let next = tape.alloc(width);
        tape.free(wide);
        tape.free(attended);
        tape.free(hidden);
        hidden = next;
    }
    tape.temporary(model.vocabulary * HALF);
    tape.free(hidden);
    Request {
        blocks,
        length: prompt,
        tokens_left: answer,
    }
}

/// Sixteen tokens for every request that runs; the scratch memory follows batch and lengths.
fn decode(model: &Model, tape: &mut Tape, running: &[Request]) {
    let batch = running.len() as u64;
    let context: u64 = running.iter().map(|request| request.length).sum();
    let hidden = tape.alloc(batch * model.hidden * HALF);
    tape.temporary(context * 4 * 32);
    let logits = tape.alloc(batch * model.vocabulary * 4);
    let sorted = tape.alloc(batch * model.vocabulary * 4);
    tape.temporary(batch * 8);
    tape.free(sorted);
    tape.free(logits);
    tape.free(hidden);
}
