//! Graphs, and how they are changed.

use super::Graphs;
use super::node::{Content, Edge, Node};
use super::user_object::Held;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Whom a graph belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Program,
    /// The child graph node with this handle.
    Node(u64),
    /// A capture that has not ended.
    Capture,
}

/// A graph.
#[derive(Debug)]
pub struct Graph {
    /// Never given twice, other than its handle.
    pub number: u64,
    pub owner: Owner,
    /// Handles of its nodes, in the order in which they were made.
    pub nodes: Vec<u64>,
    /// How many nodes were ever made.
    pub nodes_made: u32,
    /// The capture that adds nodes to it.
    pub capture: Option<u64>,
    /// What it keeps of programs' objects.
    pub objects: Vec<Held>,
    /// The number of the graph of which it is a clone.
    pub clone_of: Option<u64>,
    /// How many executable graphs of it there are.
    pub executables: usize,
}

impl Graph {
    /// Whether a program has to destroy it.
    pub fn is_programs(&self) -> bool {
        self.owner == Owner::Program
    }
}

impl Graphs {
    /// Makes an empty graph.
    pub fn create(&mut self, owner: Owner) -> u64 {
        let number = self.number();
        self.graphs.insert(Graph {
            number,
            owner,
            nodes: Vec::new(),
            nodes_made: 0,
            capture: None,
            objects: Vec::new(),
            clone_of: None,
            executables: 0,
        })
    }

    /// Makes an empty graph for a program.
    pub fn create_for_program(&mut self) -> u64 {
        self.create(Owner::Program)
    }

    /// A graph by its handle.
    pub fn graph(&self, handle: u64) -> Result<&Graph> {
        self.graphs.get(handle).ok_or(Code::INVALID_VALUE)
    }

    pub fn graph_mut(&mut self, handle: u64) -> Result<&mut Graph> {
        self.graphs.get_mut(handle).ok_or(Code::INVALID_VALUE)
    }

    /// A node by its handle.
    pub fn node(&self, handle: u64) -> Result<&Node> {
        self.nodes.get(handle).ok_or(Code::INVALID_VALUE)
    }

    pub fn node_mut(&mut self, handle: u64) -> Result<&mut Node> {
        self.nodes.get_mut(handle).ok_or(Code::INVALID_VALUE)
    }

    /// Whether a graph has nodes that own or free memory.
    pub fn has_memory_nodes(&self, graph: u64) -> Result<bool> {
        for &node in &self.graph(graph)?.nodes {
            match self.node(node)?.content {
                Content::Child { graph } if self.has_memory_nodes(graph)? => return Ok(true),
                ref content if content.is_memory() => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Whether a graph is another one, or a child in it at any depth.
    fn is_inside(&self, mut graph: u64, outer: u64) -> bool {
        while graph != outer {
            let owner = self.graph(graph).map(|graph| graph.owner);
            let Ok(Owner::Node(node)) = owner else {
                return false;
            };
            let Ok(node) = self.node(node) else {
                return false;
            };
            graph = node.graph;
        }
        true
    }

    /// Checks what a new node is to depend on.
    ///
    /// # Errors
    /// `INVALID_VALUE`: a node of another graph, or one twice.
    pub fn check_edges(&self, graph: u64, edges: &[Edge]) -> Result {
        let mut seen = BTreeSet::new();
        for edge in edges {
            if self.node(edge.from)?.graph != graph || !seen.insert(edge.from) {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Adds a node and gives its handle.
    pub fn add_node(&mut self, graph: u64, content: Content, edges: Vec<Edge>) -> Result<u64> {
        self.check_edges(graph, &edges)?;
        let number = self.number();
        let in_graph = self.graph_mut(graph)?;
        let local = in_graph.nodes_made;
        in_graph.nodes_made += 1;
        let child = match content {
            Content::Child { graph } => Some(graph),
            _ => None,
        };
        let handle = self.nodes.insert(Node {
            number,
            graph,
            local,
            content,
            dependencies: edges,
            attributes: BTreeMap::new(),
            copy_of: None,
        });
        self.graph_mut(graph)?.nodes.push(handle);
        if let Some(child) = child {
            self.graph_mut(child)?.owner = Owner::Node(handle);
        }
        Ok(handle)
    }

    /// Adds dependencies.
    ///
    /// # Errors
    /// `INVALID_VALUE`: a node of another graph, a dependency that exists, a node on itself.
    pub fn add_dependencies(&mut self, graph: u64, edges: &[(Edge, u64)]) -> Result {
        for (index, &(edge, to)) in edges.iter().enumerate() {
            let exists = self.node(to)?.dependencies.iter();
            let exists = exists.chain(edges[..index].iter().filter(|e| e.1 == to).map(|e| &e.0));
            let is_bad = self.node(edge.from)?.graph != graph
                || self.node(to)?.graph != graph
                || edge.from == to
                || exists.into_iter().any(|other| other.from == edge.from);
            if is_bad {
                return Err(Code::INVALID_VALUE);
            }
        }
        for &(edge, to) in edges {
            self.node_mut(to)?.dependencies.push(edge);
        }
        Ok(())
    }

    /// Removes dependencies.
    ///
    /// # Errors
    /// `INVALID_VALUE`: one does not exist, or the graph has memory nodes.
    pub fn remove_dependencies(&mut self, graph: u64, edges: &[(Edge, u64)]) -> Result {
        if !edges.is_empty() && self.has_memory_nodes(graph)? {
            return Err(Code::INVALID_VALUE);
        }
        for &(edge, to) in edges {
            let node = self.node(to)?;
            if node.graph != graph || !node.dependencies.contains(&edge) {
                return Err(Code::INVALID_VALUE);
            }
        }
        for &(edge, to) in edges {
            self.node_mut(to)?.dependencies.retain(|&own| own != edge);
        }
        Ok(())
    }

    /// Nodes that depend on a node, with the dependency.
    pub fn dependents(&self, handle: u64) -> Result<Vec<Edge>> {
        let graph = self.node(handle)?.graph;
        let mut dependents = Vec::new();
        for &other in &self.graph(graph)?.nodes {
            let edges = self.node(other)?.dependencies.iter();
            dependents.extend(edges.filter(|edge| edge.from == handle).map(|edge| Edge {
                from: other,
                data: edge.data,
            }));
        }
        Ok(dependents)
    }

    /// All dependencies of a graph: what has to be done, and before what.
    pub fn edges(&self, graph: u64) -> Result<Vec<(Edge, u64)>> {
        let mut edges = Vec::new();
        for &to in &self.graph(graph)?.nodes {
            edges.extend(self.node(to)?.dependencies.iter().map(|&edge| (edge, to)));
        }
        Ok(edges)
    }

    /// Nodes from which others can be reached backwards: `from` and all they depend on.
    pub fn ancestors(&self, from: &[u64]) -> BTreeSet<u64> {
        let mut seen = BTreeSet::new();
        let mut todo = from.to_vec();
        while let Some(handle) = todo.pop() {
            if seen.insert(handle) {
                let node = self.nodes.get(handle);
                todo.extend(
                    node.iter()
                        .flat_map(|node| &node.dependencies)
                        .map(|edge| edge.from),
                );
            }
        }
        seen
    }

    /// The copy of a node in a clone of its graph.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not a clone of that graph, or the copy is not there.
    pub fn find_in_clone(&self, node: u64, clone: u64) -> Result<u64> {
        let original = self.node(node)?;
        let clone = self.graph(clone)?;
        if clone.clone_of != Some(self.graph(original.graph)?.number) {
            return Err(Code::INVALID_VALUE);
        }
        let is_copy = |&copy: &u64| {
            let copy = self.node(copy);
            copy.is_ok_and(|copy| copy.copy_of == Some(original.number))
        };
        clone
            .nodes
            .iter()
            .copied()
            .find(is_copy)
            .ok_or(Code::INVALID_VALUE)
    }

    /// A copy of a graph, with all graphs inside it. Its memory nodes stay what they are.
    pub fn copy(&mut self, handle: u64, owner: Owner) -> Result<u64> {
        let copy = self.create(owner);
        let original = self.graph(handle)?;
        let (number, nodes) = (original.number, original.nodes.clone());
        let objects = original.objects.iter().map(Held::again).collect();
        let mut copies = BTreeMap::new();
        for node in nodes {
            let original = self.node(node)?;
            let (number, edges) = (original.number, original.dependencies.clone());
            let attributes = original.attributes.clone();
            let content = match original.content {
                Content::Child { graph } => Content::Child {
                    graph: self.copy(graph, Owner::Program)?,
                },
                ref content => content.clone(),
            };
            let added = self.add_node(copy, content, Vec::new())?;
            copies.insert(node, added);
            let added = self.node_mut(added)?;
            added.copy_of = Some(number);
            added.attributes = attributes;
            added.dependencies = edges;
        }
        // A node may have been given a dependency on one that was made later.
        for &added in copies.values() {
            for edge in &mut self.node_mut(added)?.dependencies {
                edge.from = copies[&edge.from];
            }
        }
        let graph = self.graph_mut(copy)?;
        graph.clone_of = Some(number);
        graph.objects = objects;
        Ok(copy)
    }
}

impl State {
    /// `cuGraphClone`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such graph, or it has memory nodes.
    pub fn clone_graph(&mut self, handle: u64) -> Result<u64> {
        if self.graphs.has_memory_nodes(handle)? {
            return Err(Code::INVALID_VALUE);
        }
        self.graphs.copy(handle, Owner::Program)
    }

    /// `cuGraphDestroy`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such graph, or it is a node's, or it is being captured.
    pub fn destroy_graph(&mut self, handle: u64) -> Result {
        let graph = self.graphs.graph(handle)?;
        if !graph.is_programs() || graph.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        self.drop_graph(handle);
        Ok(())
    }

    /// Ends a graph, whoever owns it.
    pub(super) fn drop_graph(&mut self, handle: u64) {
        let Some(graph) = self.graphs.graphs.remove(handle) else {
            return;
        };
        for node in graph.nodes {
            self.drop_node(node);
        }
    }

    fn drop_node(&mut self, handle: u64) {
        match self.graphs.nodes.remove(handle).map(|node| node.content) {
            Some(Content::Child { graph }) => self.drop_graph(graph),
            Some(Content::Allocate { address }) => self.let_go_graph_memory(address),
            Some(Content::Free { address }) => self.graphs.memory.forget_free(address, handle),
            _ => {}
        }
    }

    /// `cuGraphDestroyNode`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such node, its graph has memory nodes, or is being captured.
    pub fn destroy_node(&mut self, handle: u64) -> Result {
        let graph = self.graphs.node(handle)?.graph;
        let is_captured = self.graphs.graph(graph)?.capture.is_some();
        if is_captured || self.graphs.has_memory_nodes(graph)? {
            return Err(Code::INVALID_VALUE);
        }
        let in_graph = self.graphs.graph_mut(graph)?;
        in_graph.nodes.retain(|&node| node != handle);
        for other in in_graph.nodes.clone() {
            let node = self.graphs.node_mut(other)?;
            node.dependencies.retain(|edge| edge.from != handle);
        }
        self.drop_node(handle);
        Ok(())
    }

    /// `cuGraphAddChildGraphNode`: the node gets a copy, or the graph itself if it is moved.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no such graph, the graph itself, memory nodes without a move, or a move of a graph
    /// that is not the program's alone, or that the other is in.
    pub fn add_child_node(
        &mut self,
        graph: u64,
        child: u64,
        is_moved: bool,
        edges: Vec<Edge>,
    ) -> Result<u64> {
        self.graphs.graph(graph)?;
        self.graphs.check_edges(graph, &edges)?;
        let found = self.graphs.graph(child)?;
        let is_taken = is_moved
            && (!found.is_programs()
                || found.executables > 0
                || self.graphs.is_inside(graph, child));
        let has_memory = self.graphs.has_memory_nodes(child)?;
        if graph == child || is_taken || has_memory && !is_moved {
            return Err(Code::INVALID_VALUE);
        }
        let child = if is_moved {
            child
        } else {
            self.graphs.copy(child, Owner::Program)?
        };
        self.graphs
            .add_node(graph, Content::Child { graph: child }, edges)
    }
}
