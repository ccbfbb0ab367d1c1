//! Graphs of kernels for a processor with small memories: the same on every machine, without chance.
//!
//! Their operations move tiles from outside to L1 (COPY_IN), on to L0A and L0B (MOVE), multiply them
//! into L0C, and compute on vectors in UB. Cycles are of the order of such a processor's.

mod attention;
mod conv;
mod matmul;
mod sketch;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::Outcome;
use crate::planning::files::{with_suffix, write};
use sketch::Sketch;

/// The most tile operations of a graph, so that a slip of a digit does not fill the machine.
const MOST: u64 = 2_000_000;

/// Options of all graphs.
#[derive(clap::Args)]
struct Output {
    /// Write PREFIX_Nodes.csv and PREFIX_Edges.csv; a PREFIX that ends in .json is one JSON document
    /// [default: JSON to the standard output]
    #[arg(long, value_name = "PREFIX", verbatim_doc_comment)]
    out: Option<PathBuf>,
}

impl Output {
    fn put(&self, sketch: &Sketch) -> Result<Outcome> {
        match &self.out {
            None => std::io::stdout()
                .lock()
                .write_all(sketch.json()?.as_bytes())?,
            Some(path) if path.extension().is_some_and(|end| end == "json") => {
                write(path, &sketch.json()?)?;
            }
            Some(prefix) => {
                write(&with_suffix(prefix, "_Nodes.csv"), &sketch.nodes_csv())?;
                write(&with_suffix(prefix, "_Edges.csv"), &sketch.edges_csv())?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Refuses a graph that is too large; `counts` multiply.
fn bounded(counts: &[u32], options: &str) -> Result<()> {
    let total = counts
        .iter()
        .try_fold(1u64, |total, count| total.checked_mul(u64::from(*count)));
    if total.is_none_or(|total| total > MOST) {
        bail!("more than {MOST} operations on tiles: make {options} smaller");
    }
    Ok(())
}

/// A product of matrices: C[M,N] = A[M,K] x B[K,N], by tiles
#[derive(clap::Args)]
pub struct Matmul {
    /// Tiles of M, N and K
    #[arg(long, value_name = "MxNxK", default_value = "4x6x6", value_parser = parse_tiles)]
    tiles: [u32; 3],

    /// Bytes of a tile of A or B; one of C takes twice as many
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    tile: u32,

    #[command(flatten)]
    output: Output,
}

/// Attention by blocks of keys with a running softmax, as in FlashAttention
#[derive(clap::Args)]
pub struct Attention {
    /// Heads, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    heads: u32,

    /// Blocks of queries; the results of all of them are kept while keys pass by
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    queries: u32,

    /// Blocks of keys and values
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,

    /// Bytes of a block in UB and L0; in L1 and L0C it takes twice as many
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(8..))]
    tile: u32,

    #[command(flatten)]
    output: Output,
}

/// Convolutions down to small maps and up again, with links across, as in a U-Net
#[derive(clap::Args)]
pub struct Conv {
    /// Halvings of the map
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=16))]
    levels: u32,

    /// Convolutions at each level on each way
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    depth: u32,

    /// Tiles of channels at each level
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    channels: u32,

    /// Bytes of a tile of the first map; each level down it takes half as many
    #[arg(long, value_name = "BYTES", default_value_t = 1152, value_parser = clap::value_parser!(u32).range(1..))]
    tile: u32,

    /// Bytes of the weights between two tiles of channels
    #[arg(long, value_name = "BYTES", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..))]
    weights: u32,

    #[command(flatten)]
    output: Output,
}

fn parse_tiles(text: &str) -> Result<[u32; 3]> {
    let parts: Option<Vec<u32>> = text
        .split('x')
        .map(|part| part.parse().ok().filter(|count| *count > 0))
        .collect();
    match parts.as_deref() {
        Some(&[m, n, k]) => Ok([m, n, k]),
        _ => bail!("not three numbers above 0, such as 4x6x6"),
    }
}

pub fn matmul(arguments: &Matmul) -> Result<Outcome> {
    bounded(&arguments.tiles, "--tiles")?;
    let sketch = matmul::draw(arguments.tiles, u64::from(arguments.tile));
    arguments.output.put(&sketch)
}

pub fn attention(arguments: &Attention) -> Result<Outcome> {
    let Attention {
        heads,
        queries,
        keys,
        tile,
        ref output,
    } = *arguments;
    bounded(&[heads, queries, keys], "--heads, --queries or --keys")?;
    output.put(&attention::draw(heads, queries, keys, u64::from(tile)))
}

pub fn conv(arguments: &Conv) -> Result<Outcome> {
    let Conv {
        levels,
        depth,
        channels,
        tile,
        weights,
        ref output,
    } = *arguments;
    bounded(
        &[2 * levels + 2, depth, channels, channels],
        "--depth or --channels",
    )?;
    let shape = conv::Shape {
        levels,
        depth,
        channels,
        tile: u64::from(tile),
        weights: u64::from(weights),
    };
    output.put(&conv::draw(&shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use luma::plan::check::check_plan;
    use luma::plan::{Control, Graph, Options, greedy_order, plan_spills};

    use crate::planning::kernel::Kernel;
    use crate::planning::memories;

    /// FNV-1a, 64 bits.
    fn checksum(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    fn small() -> [(&'static str, Sketch); 3] {
        let shape = conv::Shape {
            levels: 2,
            depth: 2,
            channels: 2,
            tile: 1152,
            weights: 96,
        };
        [
            ("matmul", matmul::draw([4, 6, 6], 128)),
            ("attention", attention::draw(1, 6, 4, 128)),
            ("conv", conv::draw(&shape)),
        ]
    }

    #[test]
    fn graphs_are_valid_and_spill_and_their_plans_too() {
        let large = [
            ("matmul", matmul::draw([16, 16, 8], 128)),
            ("attention", attention::draw(2, 8, 16, 128)),
            (
                "conv",
                conv::draw(&conv::Shape {
                    levels: 3,
                    depth: 3,
                    channels: 4,
                    tile: 768,
                    weights: 144,
                }),
            ),
        ];
        for (name, sketch) in small().into_iter().chain(large) {
            let kernel = Kernel::parse(name, &sketch.json().unwrap(), memories::default()).unwrap();
            let graph = Graph::new(&kernel.input).unwrap_or_else(|error| panic!("{name}: {error}"));
            let order = greedy_order(&graph).unwrap();
            let ids: Vec<u32> = (0..graph.len() as u32).collect();
            for order in [order, ids] {
                let Ok(plan) =
                    plan_spills(&graph, &order, &Options::default(), &Control::default())
                else {
                    panic!("{name}: no plan");
                };
                let spills: Vec<(u32, u64)> = plan
                    .spills
                    .iter()
                    .map(|spill| (spill.buffer, spill.offset))
                    .collect();
                let report = check_plan(
                    &kernel.input,
                    Some(&order),
                    &plan.order,
                    &plan.offsets,
                    &spills,
                );
                assert_eq!(report.unwrap().extra_bytes, plan.extra_bytes, "{name}");
            }
        }
    }

    /// The graphs under examples/graphs and every published figure rest on these.
    #[test]
    fn the_text_is_the_same_on_every_machine() {
        let sums: Vec<String> = small()
            .iter()
            .map(|(name, sketch)| {
                let (nodes, edges) = (sketch.nodes_csv(), sketch.edges_csv());
                format!("{name} {:016x} {:016x}", checksum(&nodes), checksum(&edges))
            })
            .collect();
        assert_eq!(
            sums,
            [
                "matmul a7aa75ae1bde155f 555ea8549161350f",
                "attention 663219fd49bbd40f ab563709b2734f15",
                "conv 258812061946f9e9 271694472c44217b",
            ]
        );
    }
}
