//! Lifetimes in files: id, lower, upper, size, and where they are placed.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use luma::plan::place::Lifetime;

use super::table::Table;

/// A table of lifetimes, in the order of the file.
pub struct Lifetimes {
    /// The file.
    pub name: String,
    /// What the file calls each.
    pub ids: Vec<String>,
    pub list: Vec<Lifetime>,
    /// Where each is, if the file says so.
    pub offsets: Option<Vec<u64>>,
}

/// Two lifetimes that share time and bytes, by their places in the file.
pub struct Overlap(pub usize, pub usize);

impl Lifetimes {
    /// Reads a table; `placed`: it must have offsets.
    pub fn load(path: &Path, placed: bool) -> Result<Self> {
        let columns = ["id", "lower", "upper", "size", "offset"];
        let needed = if placed { 5 } else { 4 };
        let table = Table::load(path, &columns[..needed])?;
        let id = table.needed("id");
        let [lower, upper, size] = ["lower", "upper", "size"].map(|name| table.needed(name));
        let offset = table.column("offset").filter(|_| placed);
        let mut lifetimes = Self {
            name: table.name.clone(),
            ids: Vec::new(),
            list: Vec::new(),
            offsets: offset.map(|_| Vec::new()),
        };
        for row in table.rows() {
            let lifetime = Lifetime {
                lower: table.required(row, lower)?,
                upper: table.required(row, upper)?,
                size: table.required(row, size)?,
            };
            if lifetime.lower > lifetime.upper {
                return Err(table.error(row, "lower is above upper"));
            }
            lifetimes.ids.push(row.field(id).to_string());
            lifetimes.list.push(lifetime);
            if let (Some(column), Some(offsets)) = (offset, &mut lifetimes.offsets) {
                offsets.push(table.required(row, column)?);
            }
        }
        Ok(lifetimes)
    }

    /// The table with offsets.
    pub fn with_offsets(&self, offsets: &[u64]) -> String {
        let mut text = String::from("id,lower,upper,size,offset\n");
        for ((id, lifetime), offset) in self.ids.iter().zip(&self.list).zip(offsets) {
            let quoted = if id.contains(',') || id.contains('"') {
                format!("\"{}\"", id.replace('"', "\"\""))
            } else {
                id.clone()
            };
            let Lifetime { lower, upper, size } = lifetime;
            text += &format!("{quoted},{lower},{upper},{size},{offset}\n");
        }
        text
    }

    /// First and last moment.
    pub fn span(&self) -> (u64, u64) {
        let lower = self.list.iter().map(|lifetime| lifetime.lower).min();
        let upper = self.list.iter().map(|lifetime| lifetime.upper).max();
        (lower.unwrap_or(0), upper.unwrap_or(0))
    }

    /// The most bytes live at once: no placement is lower.
    pub fn peak(&self) -> u128 {
        let (mut live, mut peak) = (0u128, 0u128);
        for (_, starts, at) in self.events() {
            let size = u128::from(self.list[at].size);
            if starts {
                live += size;
                peak = peak.max(live);
            } else {
                live -= size;
            }
        }
        peak
    }

    /// The first overlap in time.
    pub fn overlap(&self, offsets: &[u64]) -> Option<Overlap> {
        // Live ones by where they start: as they do not overlap, each new one must fit between its
        // two neighbours.
        let mut live: BTreeSet<(u64, usize)> = BTreeSet::new();
        for (_, starts, at) in self.events() {
            let (offset, size) = (offsets[at], self.list[at].size);
            if size == 0 {
                continue;
            }
            if !starts {
                live.remove(&(offset, at));
                continue;
            }
            let end =
                |(offset, at): (u64, usize)| u128::from(offset) + u128::from(self.list[at].size);
            let below = live.range(..=(offset, usize::MAX)).next_back().copied();
            if let Some(other) = below.filter(|&other| end(other) > u128::from(offset)) {
                return Some(Overlap(other.1, at));
            }
            let above = live.range((offset, usize::MAX)..).next().copied();
            if let Some(other) = above.filter(|&(next, _)| end((offset, at)) > u128::from(next)) {
                return Some(Overlap(other.1, at));
            }
            live.insert((offset, at));
        }
        None
    }

    /// Starts and ends in time, at equal times the ends first; without the lifetimes that are empty.
    fn events(&self) -> Vec<(u64, bool, usize)> {
        let all = self.list.iter().enumerate();
        let mut events: Vec<_> = all
            .filter(|(_, lifetime)| lifetime.lower < lifetime.upper)
            .flat_map(|(at, lifetime)| [(lifetime.lower, true, at), (lifetime.upper, false, at)])
            .collect();
        events.sort_unstable();
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetimes(list: &[(u64, u64, u64)]) -> Lifetimes {
        Lifetimes {
            name: String::new(),
            ids: (0..list.len()).map(|id| id.to_string()).collect(),
            list: list
                .iter()
                .map(|&(lower, upper, size)| Lifetime { lower, upper, size })
                .collect(),
            offsets: None,
        }
    }

    #[test]
    fn overlaps_are_found_and_touching_is_none() {
        let three = lifetimes(&[(0, 4, 10), (4, 8, 10), (2, 6, 5), (3, 3, 100), (1, 7, 0)]);
        assert!(three.overlap(&[0, 0, 10, 0, 3]).is_none());
        assert_eq!(three.peak(), 15);
        assert_eq!(three.span(), (0, 8));
        for offsets in [[0, 0, 9, 0, 0], [5, 20, 1, 0, 0], [0, 0, 0, 0, 0]] {
            let Overlap(one, other) = three.overlap(&offsets).unwrap();
            assert_eq!((one, other), (0, 2), "{offsets:?}");
        }
        let Overlap(one, other) = three.overlap(&[0, 11, 10, 0, 0]).unwrap();
        assert_eq!((one, other), (2, 1));
        let large = lifetimes(&[(0, 1, u64::MAX), (0, 1, u64::MAX)]);
        assert!(large.overlap(&[u64::MAX, 0]).is_none());
        assert!(large.overlap(&[u64::MAX - 1, 0]).is_some());
    }
}
