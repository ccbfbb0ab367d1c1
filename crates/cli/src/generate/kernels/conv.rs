//! Convolutions down to small maps and up again, with links across (Ronneberger et al., U-Net, 2015):
//! the maps of the way down stay until the way up needs them, beside weights that come and go.

use super::sketch::{Buffer, Memory, Sketch};

/// How large it is.
pub struct Shape {
    pub levels: u32,
    pub depth: u32,
    pub channels: u32,
    pub tile: u64,
    pub weights: u64,
}

impl Shape {
    /// Bytes of a tile of the map at a level: a quarter of the points, twice the channels.
    fn map(&self, level: u32) -> u64 {
        (self.tile >> level).max(1)
    }
}

pub fn draw(shape: &Shape) -> Sketch {
    let mut sketch = Sketch::default();
    let mut map: Vec<Buffer> = (0..shape.channels)
        .map(|_| sketch.copy_in(shape.map(0)))
        .collect();
    let mut links = Vec::new();
    for level in 0..=shape.levels {
        for at in 0..shape.depth {
            // The first convolution of a level reads the larger map of the one above.
            let reads = if at == 0 {
                level.saturating_sub(1)
            } else {
                level
            };
            map = layer(&mut sketch, shape, &map, shape.map(reads), shape.map(level));
        }
        links.push(map.clone());
    }
    links.pop();
    for (level, link) in links.into_iter().enumerate().rev() {
        let size = shape.map(level as u32);
        let upper: Vec<Buffer> = map
            .iter()
            .map(|&tile| {
                let larger = sketch.alloc(Memory::L1, size);
                sketch.write("D2S", "MTE1", 16 + size / 4, larger, &[tile]);
                larger
            })
            .collect();
        map = upper;
        for (tile, linked) in map.iter().zip(&link) {
            sketch.write("ADD", "CUBE", 16 + size / 4, *tile, &[*tile, *linked]);
        }
        for _ in 0..shape.depth {
            map = layer(&mut sketch, shape, &map, size, size);
        }
    }
    for tile in map {
        sketch.copy_out(tile);
    }
    sketch.finish()
}

/// A convolution: every tile of the result sums over all tiles of the map before.
fn layer(
    sketch: &mut Sketch,
    shape: &Shape,
    map: &[Buffer],
    reads: u64,
    writes: u64,
) -> Vec<Buffer> {
    let cycles = 16 + (reads + writes) * shape.weights / 128;
    (0..shape.channels)
        .map(|_| {
            let sum = sketch.alloc(Memory::L1, writes);
            for &tile in map {
                let weights = sketch.copy_in(shape.weights);
                let half = shape.weights.div_ceil(2);
                let loaded = sketch.load(Memory::L0b, half, weights);
                sketch.write("CONV", "CUBE", cycles, sum, &[loaded, tile]);
            }
            sum
        })
        .collect()
}
