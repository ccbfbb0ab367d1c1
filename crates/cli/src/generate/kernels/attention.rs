//! Attention by blocks (Dao et al., FlashAttention, 2022): keys and values pass by block after block,
//! and of each block of queries a running maximum, a running sum and a result are kept in UB.

use super::matmul::product;
use super::sketch::{Buffer, Memory, Sketch};

/// What is kept of a block of queries.
struct Kept {
    result: Buffer,
    maximum: Buffer,
    sum: Buffer,
}

pub fn draw(heads: u32, queries: u32, keys: u32, tile: u64) -> Sketch {
    let mut sketch = Sketch::default();
    for _ in 0..heads {
        head(&mut sketch, queries, keys, tile);
    }
    sketch.finish()
}

fn head(sketch: &mut Sketch, queries: u32, keys: u32, tile: u64) {
    let mut blocks: Vec<Option<Buffer>> = vec![None; queries as usize];
    let mut kept: Vec<Option<Kept>> = (0..queries).map(|_| None).collect();
    for _ in 0..keys {
        let key = sketch.copy_in(2 * tile);
        let value = sketch.copy_in(2 * tile);
        for query in 0..queries as usize {
            let block = *blocks[query].get_or_insert_with(|| sketch.copy_in(2 * tile));
            let scores = multiply(sketch, block, key, tile);
            let step = softmax(sketch, scores, tile);
            let weights = sketch.alloc(Memory::L1, 2 * tile);
            sketch.write("COPY", "MTE3", 16 + 2 * tile, weights, &[step.result]);
            let part = multiply(sketch, weights, value, tile);
            let step = Kept {
                result: part,
                ..step
            };
            kept[query] = Some(match kept[query].take() {
                None => step,
                Some(before) => merge(sketch, &before, &step, tile),
            });
        }
    }
    for kept in kept.into_iter().flatten() {
        let inverse = vector(sketch, "REC", small(tile), &[kept.sum]);
        let result = vector(sketch, "MUL", tile, &[kept.result, inverse]);
        sketch.copy_out(result);
    }
}

/// Bytes of one number for each row of a block.
fn small(tile: u64) -> u64 {
    (tile / 64).max(1)
}

/// A product in L0C, copied to UB.
fn multiply(sketch: &mut Sketch, left: Buffer, right: Buffer, tile: u64) -> Buffer {
    let product_of = sketch.alloc(Memory::L0c, 2 * tile);
    let left = sketch.load(Memory::L0a, tile, left);
    let right = sketch.load(Memory::L0b, tile, right);
    sketch.write("MATMUL", "CUBE", product(tile), product_of, &[right, left]);
    let result = sketch.alloc(Memory::Ub, tile);
    sketch.write("COPY", "FIXP", 8 + tile / 4, result, &[product_of]);
    result
}

/// An operation on vectors with a new result.
fn vector(sketch: &mut Sketch, op: &'static str, size: u64, inputs: &[Buffer]) -> Buffer {
    let result = sketch.alloc(Memory::Ub, size);
    sketch.write(op, "VECTOR", 24 + size, result, inputs);
    result
}

/// Of a block of scores: the exponentials, the maximum and the sum of each row.
fn softmax(sketch: &mut Sketch, scores: Buffer, tile: u64) -> Kept {
    let maximum = vector(sketch, "ROWMAX", small(tile), &[scores]);
    let difference = vector(sketch, "SUB", tile, &[scores, maximum]);
    let result = vector(sketch, "EXP", tile, &[difference]);
    let sum = vector(sketch, "ROWSUM", small(tile), &[result]);
    Kept {
        result,
        maximum,
        sum,
    }
}

/// Two partial results scaled to their common maximum, and added.
fn merge(sketch: &mut Sketch, before: &Kept, step: &Kept, tile: u64) -> Kept {
    let maximum = vector(sketch, "MAX", small(tile), &[before.maximum, step.maximum]);
    let mut scaled = [before, step].map(|part| {
        let difference = vector(sketch, "SUB", small(tile), &[part.maximum, maximum]);
        let factor = vector(sketch, "EXP", small(tile), &[difference]);
        let sum = vector(sketch, "MUL", small(tile), &[part.sum, factor]);
        let result = vector(sketch, "MUL", tile, &[part.result, factor]);
        (sum, result)
    });
    let [(sum_before, before), (sum_step, step)] = &mut scaled;
    Kept {
        sum: vector(sketch, "ADD", small(tile), &[*sum_before, *sum_step]),
        result: vector(sketch, "ADD", tile, &[*before, *step]),
        maximum,
    }
}
