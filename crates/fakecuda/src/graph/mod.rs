//! Stream capture and graphs.
//!
//! - `node`, `structure`: what a graph is made of, and how it is changed;
//! - `content`: what nodes do, from and to the structures of the interface;
//! - `capture`: streams whose work becomes a graph's nodes;
//! - `executable`: what is launched, a snapshot of a graph;
//! - `update`: changes of an executable graph;
//! - `memory`: what allocation and free nodes own;
//! - `user_object`: programs' objects that graphs keep;
//! - `dot`: a graph as text.

mod capture;
mod content;
mod dot;
mod executable;
mod memory;
mod node;
mod structure;
mod update;
mod user_object;

pub use capture::{CaptureInfo, CaptureStatus, mode};
pub use executable::{Executable, Refusal, flag};
pub use node::{Content, Edge, EdgeData, Node, Params, node_type};
pub use structure::Graph;
pub use update::{Change, Mismatch};
pub use user_object::{Held, UserObject};

use crate::handle::Table;
use capture::Capture;
use memory::GraphMemory;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All graphs.
#[derive(Debug)]
pub struct Graphs {
    graphs: Table<Graph>,
    nodes: Table<Node>,
    executables: Table<Executable>,
    objects: Table<Arc<UserObject>>,
    /// What is being captured, by the capture's number.
    captures: BTreeMap<u64, Capture>,
    memory: GraphMemory,
    /// Graphs, nodes, executable graphs and captures so far: each gets a number of its own.
    made: u64,
}

impl Graphs {
    /// No graphs.
    pub fn new() -> Self {
        Self {
            graphs: Table::new(4),
            nodes: Table::new(5),
            executables: Table::new(6),
            objects: Table::new(7),
            captures: BTreeMap::new(),
            memory: GraphMemory::default(),
            made: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// How many graphs programs have and not destroyed: those inside nodes do not count.
    pub fn live_graphs(&self) -> u64 {
        let graphs = self.graphs.iter();
        graphs.filter(|(_, graph)| graph.is_programs()).count() as u64
    }

    /// How many executable graphs there are.
    pub fn live_executables(&self) -> u64 {
        self.executables.len() as u64
    }
}
