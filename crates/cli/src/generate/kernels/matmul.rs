//! A product of matrices by tiles: every tile of A and B comes in once and is used again and again.

use super::sketch::{Buffer, Memory, Sketch};

/// Cycles of a product of two tiles.
pub fn product(tile: u64) -> u64 {
    tile
}

pub fn draw([rows, columns, depth]: [u32; 3], tile: u64) -> Sketch {
    let mut sketch = Sketch::default();
    let mut a: Vec<Option<Buffer>> = vec![None; (rows * depth) as usize];
    let mut b: Vec<Option<Buffer>> = vec![None; (depth * columns) as usize];
    for row in 0..rows {
        for column in 0..columns {
            let sum = sketch.alloc(Memory::L0c, 2 * tile);
            for k in 0..depth {
                let left =
                    *a[(row * depth + k) as usize].get_or_insert_with(|| sketch.copy_in(tile));
                let right =
                    *b[(k * columns + column) as usize].get_or_insert_with(|| sketch.copy_in(tile));
                let left = sketch.load(Memory::L0a, tile, left);
                let right = sketch.load(Memory::L0b, tile, right);
                sketch.write("MATMUL", "CUBE", product(tile), sum, &[right, left]);
            }
            sketch.read_only("COPY_OUT", "FIXP", 8 + 2 * tile, sum);
        }
    }
    sketch.finish()
}
