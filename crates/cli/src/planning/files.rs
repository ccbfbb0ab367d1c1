//! Orders and plans in files: the form that they are exchanged in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use luma::plan::{Plan, check::NO_OFFSET};

/// What a plan says, as arrays.
pub struct Arrays {
    /// Nodes of the graph and of spills.
    pub order: Vec<u32>,
    /// Of each buffer the first offset; [`NO_OFFSET`] where the file has none.
    pub offsets: Vec<u64>,
    /// Each spill's buffer, and its offset afterwards.
    pub spills: Vec<(u32, u64)>,
}

impl Arrays {
    pub fn of(plan: &Plan) -> Self {
        let spills = plan.spills.iter();
        Self {
            order: plan.order.clone(),
            offsets: plan.offsets.clone(),
            spills: spills.map(|spill| (spill.buffer, spill.offset)).collect(),
        }
    }

    /// Writes PREFIX_schedule.txt, PREFIX_memory.txt and PREFIX_spill.txt; answers their names.
    pub fn write(&self, prefix: &Path) -> Result<[PathBuf; 3]> {
        let paths = paths(prefix);
        let pairs = |items: &mut dyn Iterator<Item = (u64, u64)>| {
            let mut text = String::new();
            for (buffer, offset) in items {
                text += &format!("{buffer}:{offset}\n");
            }
            text
        };
        let mut offsets = (0..).zip(self.offsets.iter().copied());
        let mut spills = self
            .spills
            .iter()
            .map(|&(buffer, offset)| (u64::from(buffer), offset));
        let texts = [lines(&self.order), pairs(&mut offsets), pairs(&mut spills)];
        for (path, text) in paths.iter().zip(texts) {
            write(path, &text)?;
        }
        Ok(paths)
    }

    /// Reads what [`Arrays::write`] writes, for a graph of so many buffers.
    pub fn read(prefix: &Path, buffers: usize) -> Result<Self> {
        let [schedule, memory, spill] = paths(prefix);
        let mut offsets = vec![NO_OFFSET; buffers];
        for (line, buffer, offset) in pairs(&memory)? {
            let place = memory.display();
            match offsets.get_mut(buffer as usize) {
                Some(slot) if *slot == NO_OFFSET => *slot = offset,
                Some(_) => bail!("{place}:{line}: buffer {buffer} is there twice"),
                None => {
                    bail!("{place}:{line}: there is no buffer {buffer}: the graph has {buffers}")
                }
            }
        }
        let spills = pairs(&spill)?.into_iter();
        Ok(Self {
            order: read_order(&schedule)?,
            offsets,
            spills: spills.map(|(_, buffer, offset)| (buffer, offset)).collect(),
        })
    }
}

fn paths(prefix: &Path) -> [PathBuf; 3] {
    ["schedule", "memory", "spill"].map(|what| with_suffix(prefix, &format!("_{what}.txt")))
}

/// A path with text added to its end.
pub fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Writes a file; an error names it.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// One number a line.
pub fn lines(numbers: &[u32]) -> String {
    let mut text = String::with_capacity(numbers.len() * 6);
    for number in numbers {
        text += &number.to_string();
        text.push('\n');
    }
    text
}

/// Reads nodes, one a line.
pub fn read_order(path: &Path) -> Result<Vec<u32>> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| name.to_string())?;
    content(&text)
        .map(|(line, text)| {
            text.parse()
                .map_err(|_| anyhow!("{name}:{line}: not the number of a node: {text:?}"))
        })
        .collect()
}

/// Reads lines of BUFFER:OFFSET, with their numbers.
fn pairs(path: &Path) -> Result<Vec<(u64, u32, u64)>> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| name.to_string())?;
    content(&text)
        .map(|(line, text)| {
            let pair = text.split_once(':').and_then(|(buffer, offset)| {
                let offset = offset.trim().parse().ok()?;
                Some((line, buffer.trim().parse().ok()?, offset))
            });
            pair.ok_or_else(|| anyhow!("{name}:{line}: not BUFFER:OFFSET: {text:?}"))
        })
        .collect()
}

/// Lines that say something, with their numbers.
fn content(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
