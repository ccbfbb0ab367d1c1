#![forbid(unsafe_code)]
//! The caller's graph in the form that the checker walks.

use super::violation::{Class, Violation};
use crate::plan::graph::{GraphInput, NodeKind, Use};

/// Lists of values, one for each key, in one array.
pub(super) struct Lists<T> {
    starts: Vec<usize>,
    values: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// `pairs` by key, each list in the pairs' order. Keys are below `keys`.
    pub(super) fn new(keys: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut starts = vec![0; keys + 1];
        let mut first = None;
        for (key, value) in pairs.clone() {
            starts[key as usize + 1] += 1;
            first = first.or(Some(value));
        }
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        let Some(first) = first else {
            return Self {
                starts,
                values: Vec::new(),
            };
        };
        let mut values = vec![first; starts[keys]];
        let mut next = starts.clone();
        for (key, value) in pairs {
            values[next[key as usize]] = value;
            next[key as usize] += 1;
        }
        Self { starts, values }
    }

    /// Where the list of `key` begins among all values.
    pub(super) fn start(&self, key: u32) -> usize {
        self.starts[key as usize]
    }

    pub(super) fn of(&self, key: u32) -> &[T] {
        &self.values[self.starts[key as usize]..self.starts[key as usize + 1]]
    }

    pub(super) fn of_mut(&mut self, key: u32) -> &mut [T] {
        &mut self.values[self.starts[key as usize]..self.starts[key as usize + 1]]
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// How many lists there are.
    pub(super) fn keys(&self) -> usize {
        self.starts.len() - 1
    }
}

pub(super) struct Model<'a> {
    pub input: &'a GraphInput,
    /// Nodes of the graph.
    pub nodes: u32,
    /// Nodes of the graph and of the spills.
    pub ids: u32,
    pub buffers: u32,
    /// The ALLOC of each buffer.
    pub alloc: Vec<u32>,
    /// The FREE of each buffer.
    pub free: Vec<u32>,
    /// The uses of each node, one a buffer, by buffer.
    pub uses: Lists<Use>,
    pub predecessors: Lists<u32>,
}

fn broken(message: String) -> Violation {
    Violation::new(Class::Graph, message)
}

/// The node of `kind` of each buffer; `word` names the kind.
fn one_a_buffer(
    input: &GraphInput,
    word: &str,
    of: impl Fn(&NodeKind) -> Option<u32>,
) -> Result<Vec<u32>, Violation> {
    let mut found: Vec<Option<u32>> = vec![None; input.buffers.len()];
    for (node, buffer) in (0u32..).zip(input.nodes.iter().map(|node| of(&node.kind))) {
        let Some(buffer) = buffer else { continue };
        let Some(slot) = found.get_mut(buffer as usize) else {
            let message = format!("{word} {node} is of buffer {buffer}, which is not there");
            return Err(broken(message).node(node).buffer(buffer));
        };
        if let Some(first) = *slot {
            let message = format!("buffer {buffer} has two nodes {word}, {first} and {node}");
            return Err(broken(message).node(node).buffer(buffer));
        }
        *slot = Some(node);
    }
    (0u32..)
        .zip(found)
        .map(|(buffer, node)| {
            node.ok_or_else(|| broken(format!("buffer {buffer} has no node {word}")).buffer(buffer))
        })
        .collect()
}

impl<'a> Model<'a> {
    pub(super) fn new(input: &'a GraphInput, spills: usize) -> Result<Self, Violation> {
        let ids = spills
            .checked_mul(2)
            .and_then(|added| added.checked_add(input.nodes.len()))
            .and_then(|ids| u32::try_from(ids).ok())
            // The greatest number stands for no node in other places.
            .filter(|&ids| ids < u32::MAX)
            .ok_or_else(|| broken("more nodes than can be numbered".to_owned()))?;
        let nodes = input.nodes.len() as u32;
        let buffers = u32::try_from(input.buffers.len())
            .map_err(|_| broken("more buffers than can be numbered".to_owned()))?;
        let alloc = one_a_buffer(input, "ALLOC", |kind| match kind {
            NodeKind::Alloc(buffer) => Some(*buffer),
            _ => None,
        })?;
        let free = one_a_buffer(input, "FREE", |kind| match kind {
            NodeKind::Free(buffer) => Some(*buffer),
            _ => None,
        })?;
        for (buffer, data) in (0u32..).zip(&input.buffers) {
            if data.memory as usize >= input.memories.len() {
                let memory = data.memory;
                let message = format!("buffer {buffer} is in memory {memory}, which is not there");
                return Err(broken(message).buffer(buffer));
            }
        }
        for &(node, used) in &input.uses {
            let buffer = used.buffer;
            if node >= nodes || buffer >= buffers {
                let message = format!("node {node} uses buffer {buffer}: one is not there");
                return Err(broken(message).node(node).buffer(buffer));
            }
            if !matches!(input.nodes[node as usize].kind, NodeKind::Operation) {
                let message = format!("node {node} is no operation and uses buffer {buffer}");
                return Err(broken(message).node(node).buffer(buffer));
            }
        }
        if let Some(&(from, to)) = input.edges.iter().find(|(from, to)| *from.max(to) >= nodes) {
            let message = format!("the edge from {from} to {to} has an end that is not there");
            return Err(broken(message).node(from.max(to)));
        }
        let flipped = input.edges.iter().map(|&(from, to)| (to, from));
        Ok(Self {
            input,
            nodes,
            ids,
            buffers,
            alloc,
            free,
            uses: distinct_uses(nodes, &input.uses),
            predecessors: Lists::new(nodes as usize, flipped),
        })
    }

    pub(super) fn size(&self, buffer: u32) -> u64 {
        self.input.buffers[buffer as usize].size
    }

    pub(super) fn memory(&self, buffer: u32) -> u32 {
        self.input.buffers[buffer as usize].memory
    }

    /// The spill and whether it is its SPILL_IN, of a node that is not the graph's.
    pub(super) fn spill_of(&self, node: u32) -> (u32, bool) {
        let added = node - self.nodes;
        (added / 2, added % 2 == 1)
    }

    pub(super) fn out_node(&self, spill: u32) -> u32 {
        self.nodes + 2 * spill
    }

    pub(super) fn in_node(&self, spill: u32) -> u32 {
        self.nodes + 2 * spill + 1
    }

    /// How messages name a node.
    pub(super) fn describe(&self, node: u32) -> String {
        if node < self.nodes {
            return match self.input.nodes[node as usize].kind {
                NodeKind::Operation => format!("operation {node}"),
                NodeKind::Alloc(buffer) => format!("node {node}, ALLOC of buffer {buffer}"),
                NodeKind::Free(buffer) => format!("node {node}, FREE of buffer {buffer}"),
            };
        }
        match self.spill_of(node) {
            (spill, false) => format!("node {node}, SPILL_OUT of spill {spill}"),
            (spill, true) => format!("node {node}, SPILL_IN of spill {spill}"),
        }
    }
}

/// Uses by node, then by buffer. Uses of one buffer by one node are one, of which nothing is known
/// unless something is known of each.
fn distinct_uses(nodes: u32, uses: &[(u32, Use)]) -> Lists<Use> {
    let mut sorted: Vec<(u32, Use)> = uses.to_vec();
    sorted.sort_by_key(|(node, used)| (*node, used.buffer));
    sorted.dedup_by(|next, kept| {
        let same = next.0 == kept.0 && next.1.buffer == kept.1.buffer;
        if same {
            let known = |used: &Use| used.reads || used.writes;
            let both = known(&kept.1) && known(&next.1);
            kept.1.reads = both && (kept.1.reads || next.1.reads);
            kept.1.writes = both && (kept.1.writes || next.1.writes);
        }
        same
    });
    Lists::new(nodes as usize, sorted.iter().copied())
}
