//! `luma generate`: traces of programs and graphs of kernels that do not exist, the same on every
//! machine.

mod kernels;
mod kv_cache;
mod rng;
mod serving;
mod shifting;
mod tape;
mod training;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::Outcome;
use rng::Rng;
use tape::Tape;

/// Generate an allocation trace, or a graph of a kernel
///
/// It follows from the arguments alone. A trace's blocks are all freed at the end, but for those
/// that were live before it began. A graph is for luma plan.
#[derive(clap::Args)]
#[command(
    override_usage = "luma generate <training|serving|kv-cache|shifting> --seed <N> [OPTIONS]\n       \
                            luma generate <matmul|attention|conv> [OPTIONS]"
)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A trace: steps of training; activations kept forward, freed backward, gradients, optimizer states
    Training(TraceArguments),
    /// A trace: requests of very different lengths that arrive and end at different times
    Serving(TraceArguments),
    /// A trace: key-value caches that grow: by pages, and by doubling and copying
    KvCache(TraceArguments),
    /// A trace: steps whose sizes follow a token count that is never the same
    Shifting(TraceArguments),
    /// A graph: a product of matrices by tiles
    Matmul(kernels::Matmul),
    /// A graph: attention by blocks of keys, with a running softmax
    Attention(kernels::Attention),
    /// A graph: convolutions down to small maps and up again, with links across
    Conv(kernels::Conv),
}

#[derive(clap::Args)]
struct TraceArguments {
    /// Another seed, another trace
    #[arg(long, value_name = "N")]
    seed: u64,

    /// About how many lines the trace has; it ends with a whole step
    #[arg(long, value_name = "N", default_value_t = 6000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    events: u32,

    /// Where to write it [default: the standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What the program of a trace seems to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Training,
    Serving,
    KvCache,
    Shifting,
}

impl Kind {
    /// The name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Serving => "serving",
            Self::KvCache => "kv-cache",
            Self::Shifting => "shifting",
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let (kind, arguments) = match &arguments.what {
        What::Training(arguments) => (Kind::Training, arguments),
        What::Serving(arguments) => (Kind::Serving, arguments),
        What::KvCache(arguments) => (Kind::KvCache, arguments),
        What::Shifting(arguments) => (Kind::Shifting, arguments),
        What::Matmul(arguments) => return kernels::matmul(arguments),
        What::Attention(arguments) => return kernels::attention(arguments),
        What::Conv(arguments) => return kernels::conv(arguments),
    };
    let text = generate(kind, arguments.seed, arguments.events as usize);
    match &arguments.out {
        Some(path) => fs::write(path, text).with_context(|| path.display().to_string())?,
        None => std::io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(Outcome::Done)
}

fn generate(kind: Kind, seed: u64, events: usize) -> String {
    let mut rng = Rng::new(seed);
    let name = kind.name();
    let mut tape = Tape::new(&format!(
        "made by: luma generate {name} --seed {seed} --events {events}"
    ));
    let play = match kind {
        Kind::Training => training::play,
        Kind::Serving => serving::play,
        Kind::KvCache => kv_cache::play,
        Kind::Shifting => shifting::play,
    };
    play(&mut rng, &mut tape, events);
    tape.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use luma::trace::{Event, Op, Reader};

    const KINDS: &[Kind] = &[Kind::Training, Kind::Serving, Kind::KvCache, Kind::Shifting];

    fn events(text: &str) -> Vec<Event> {
        Reader::new(text.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap()
    }

    /// FNV-1a, 64 bits.
    fn checksum(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn traces_are_valid_and_free_what_they_allocate() {
        for kind in KINDS {
            for (seed, count) in [(0, 1), (1, 3000), (u64::MAX, 20_000)] {
                let events = events(&generate(*kind, seed, count));
                let number = |op| events.iter().filter(|event| event.op == op).count();
                assert_eq!(number(Op::Alloc), number(Op::Free), "{kind:?} {seed}");
                assert!(
                    events.len() >= count,
                    "{kind:?} {seed}: {} events",
                    events.len()
                );
                assert!(events.iter().all(|event| event.size > 0), "{kind:?} {seed}");
            }
        }
    }

    #[test]
    fn the_number_of_events_is_about_what_was_asked_for() {
        for kind in KINDS {
            let count = events(&generate(*kind, 7, 10_000)).len();
            assert!((10_000..15_000).contains(&count), "{kind:?}: {count}");
        }
    }

    #[test]
    fn seeds_make_a_difference_and_kinds_too() {
        let bodies: Vec<String> = KINDS
            .iter()
            .flat_map(|kind| [1, 2].map(|seed| generate(*kind, seed, 500)))
            .map(|text| text.split_once('\n').unwrap().1.to_string())
            .collect();
        for (index, body) in bodies.iter().enumerate() {
            assert!(
                !bodies[..index].contains(body),
                "text {index} is there twice"
            );
        }
    }

    /// The traces under examples/traces and every published figure rest on these.
    #[test]
    fn the_text_is_the_same_on_every_machine() {
        let sums: Vec<String> = KINDS
            .iter()
            .map(|kind| {
                format!(
                    "{} {:016x}",
                    kind.name(),
                    checksum(&generate(*kind, 42, 5000))
                )
            })
            .collect();
        assert_eq!(
            sums,
            [
                "training d4378a35113414ca",
                "serving c1810b0e45a116e9",
                "kv-cache f8deb01025330ca1",
                "shifting 5a884aca562868f4"
            ]
        );
    }
}
