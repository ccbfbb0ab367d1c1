//! Training a transformer: what an eager framework allocates step by step.

use super::rng::Rng;
use super::tape::{Block, Tape};

const FLOAT: u64 = 4;

/// The model and its batch.
struct Model {
    layers: u64,
    hidden: u64,
    heads: u64,
    vocabulary: u64,
    sequence: u64,
    batch: u64,
}

impl Model {
    fn draw(rng: &mut Rng) -> Self {
        let heads = rng.between(6, 16);
        Self {
            layers: rng.between(8, 16),
            hidden: heads * 64,
            heads,
            vocabulary: rng.pick(&[10_000, 32_000, 50_257]),
            sequence: rng.pick(&[256, 512, 1024]),
            batch: rng.between(2, 8),
        }
    }

    fn tokens(&self) -> u64 {
        self.batch * self.sequence
    }

    /// One float for each token and unit.
    fn activation(&self, units: u64) -> u64 {
        self.tokens() * units * FLOAT
    }

    /// Attention scores of all heads.
    fn scores(&self) -> u64 {
        self.batch * self.heads * self.sequence * self.sequence * FLOAT
    }

    /// The parameters of one layer: two norms, attention, feed-forward.
    fn layer_parameters(&self) -> [u64; 12] {
        let h = self.hidden;
        [
            h,
            h,
            3 * h * h,
            3 * h,
            h * h,
            h,
            h,
            h,
            4 * h * h,
            4 * h,
            4 * h * h,
            h,
        ]
        .map(|count| count * FLOAT)
    }

    fn parameters(&self) -> Vec<u64> {
        let mut sizes = vec![self.vocabulary * self.hidden * FLOAT];
        for _ in 0..self.layers {
            sizes.extend(self.layer_parameters());
        }
        sizes.push(self.hidden * FLOAT);
        sizes
    }
}

pub fn play(rng: &mut Rng, tape: &mut Tape, events: usize) {
    let model = Model::draw(rng);
    for size in model.parameters() {
        tape.pre(size);
    }
    let mut states = Vec::new();
    let mut steps = 0;
    while tape.events() < events || steps == 0 {
        step(&model, rng, tape, &mut states);
        steps += 1;
        if steps % 4 == 0 {
            evaluate(&model, rng, tape);
        }
    }
    tape.free_in_reverse(states);
}

fn step(model: &Model, rng: &mut Rng, tape: &mut Tape, states: &mut Vec<Block>) {
    let batch = [
        tape.alloc(model.tokens() * 8),
        tape.alloc(model.tokens() * 8),
    ];
    let embedding = tape.alloc(model.activation(model.hidden));
    let saved: Vec<_> = (0..model.layers)
        .map(|_| forward(model, rng, tape))
        .collect();
    let output = tape.alloc(model.activation(model.hidden));
    let gradients = loss_and_backward(model, rng, tape, output, saved);
    tape.free(embedding);
    optimize(model, tape, states);
    tape.free_in_reverse(gradients);
    for part in batch {
        tape.free(part);
    }
}

/// One layer forward; answers what the backward pass needs.
fn forward(model: &Model, rng: &mut Rng, tape: &mut Tape) -> Vec<Block> {
    let hidden = model.activation(model.hidden);
    let mut saved = vec![tape.alloc(hidden), tape.alloc(model.activation(2))];
    saved.push(tape.alloc(3 * hidden));
    let scores = tape.alloc(model.scores());
    saved.push(tape.alloc(model.scores()));
    tape.free(scores);
    workspace(rng, tape);
    saved.push(tape.alloc(hidden));
    let projected = tape.alloc(hidden);
    saved.push(tape.alloc(hidden));
    tape.free(projected);
    saved.push(tape.alloc(hidden));
    saved.push(tape.alloc(model.activation(2)));
    saved.push(tape.alloc(4 * hidden));
    saved.push(tape.alloc(4 * hidden));
    workspace(rng, tape);
    let projected = tape.alloc(hidden);
    saved.push(tape.alloc(hidden));
    tape.free(projected);
    saved
}

/// Matrix multiplications sometimes want scratch memory.
fn workspace(rng: &mut Rng, tape: &mut Tape) {
    if rng.one_in(2) {
        tape.temporary(rng.heavy_tailed(64 << 10, 32 << 20));
    }
}

/// Answers the gradients, in the order in which they came up.
fn loss_and_backward(
    model: &Model,
    rng: &mut Rng,
    tape: &mut Tape,
    output: Block,
    saved: Vec<Vec<Block>>,
) -> Vec<Block> {
    let hidden = model.activation(model.hidden);
    let logits = tape.alloc(model.activation(model.vocabulary));
    let log_softmax = tape.alloc(model.activation(model.vocabulary));
    let loss = tape.alloc(FLOAT);
    let logits_gradient = tape.alloc(model.activation(model.vocabulary));
    tape.free(log_softmax);
    tape.free(logits);
    let mut gradients = vec![tape.alloc(model.hidden * FLOAT)];
    let mut upstream = tape.alloc(hidden);
    tape.free(logits_gradient);
    tape.free(output);

    for layer in saved.into_iter().rev() {
        let parameters = model.layer_parameters();
        let mut parameters = parameters.into_iter().rev();
        for (place, block) in layer.into_iter().rev().enumerate() {
            // A weight's gradient comes up where its input's activation is let go.
            if place % 2 == 0 {
                gradients.extend(parameters.by_ref().take(2).map(|size| tape.alloc(size)));
                workspace(rng, tape);
            }
            let wide = place == 2 || place == 3;
            let downstream = tape.alloc(if wide { 4 * hidden } else { hidden });
            tape.free(block);
            tape.free(upstream);
            upstream = downstream;
        }
        gradients.extend(parameters.map(|size| tape.alloc(size)));
    }
    gradients.push(tape.alloc(model.vocabulary * model.hidden * FLOAT));
    tape.free(upstream);
    tape.free(loss);
    gradients
}

/// Adam: two states a parameter, made at the first step, and temporaries at each.
fn optimize(model: &Model, tape: &mut Tape, states: &mut Vec<Block>) {
    let first = states.is_empty();
    for size in model.parameters() {
        if first {
            states.push(tape.alloc(size));
            states.push(tape.alloc(size));
        }
        let denominator = tape.alloc(size);
        tape.temporary(size);
        tape.free(denominator);
    }
}

/// A forward pass of which nothing is kept.
fn evaluate(model: &Model, rng: &mut Rng, tape: &mut Tape) {
    let batch = tape.alloc(model.tokens() * 8);
    for _ in 0..model.layers {
        for block in forward(model, rng, tape) {
            tape.free(block);
        }
    }
    let logits = tape.alloc(model.activation(model.vocabulary));
    tape.temporary(model.tokens() * 8);
    tape.free(logits);
    tape.free(batch);
}
