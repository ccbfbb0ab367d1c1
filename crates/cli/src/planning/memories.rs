//! The memories that a graph is planned for, from the command line.

use anyhow::{Result, anyhow};
use luma::config::parse_size;
use luma::plan::MemoryInput;

/// What there is without `--memory`: the memories of the NPU that the example graphs are for.
const DEFAULT: [(&str, u64); 5] = [
    ("L1", 4096),
    ("UB", 1024),
    ("L0A", 256),
    ("L0B", 256),
    ("L0C", 512),
];

#[derive(clap::Args)]
pub struct Memories {
    /// A memory and its bytes, such as L1=4096 or HBM=24G; may be repeated
    /// [default: L1=4096 UB=1024 L0A=256 L0B=256 L0C=512, each unless it is named here]
    #[arg(long = "memory", value_name = "NAME=SIZE", value_parser = parse, num_args = 1.., verbatim_doc_comment)]
    memories: Vec<Memory>,

    /// L0A, L0B and L0C hold one buffer at a time, whatever its size
    #[arg(long)]
    l0_single: bool,
}

#[derive(Clone)]
struct Memory {
    name: String,
    capacity: u64,
}

fn parse(text: &str) -> Result<Memory> {
    let (name, size) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| anyhow!("not a name and a size, such as L1=4096"))?;
    Ok(Memory {
        name: name.into(),
        capacity: parse_size(size).map_err(|error| anyhow!("{error}"))?,
    })
}

impl Memories {
    /// All memories; of one that is named twice, the last.
    pub fn list(&self) -> Vec<MemoryInput> {
        let default = DEFAULT.iter().map(|&(name, capacity)| Memory {
            name: name.into(),
            capacity,
        });
        let mut memories: Vec<MemoryInput> = Vec::new();
        for Memory { name, capacity } in default.chain(self.memories.iter().cloned()) {
            match memories.iter_mut().find(|memory| memory.name == name) {
                Some(memory) => memory.capacity = capacity,
                None => memories.push(MemoryInput {
                    single: self.l0_single && ["L0A", "L0B", "L0C"].contains(&name.as_str()),
                    name,
                    capacity,
                }),
            }
        }
        memories
    }
}

/// The memories without any argument.
#[cfg(test)]
pub fn default() -> Vec<MemoryInput> {
    let none = Memories {
        memories: Vec::new(),
        l0_single: false,
    };
    none.list()
}
