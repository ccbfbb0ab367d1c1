//! A graph as text.

use super::Graphs;
use super::node::{Content, node_type};
use crate::status::Result;
use std::fmt::Write;

fn type_name(content: &Content) -> &'static str {
    match content.node_type() {
        node_type::KERNEL => "KERNEL",
        node_type::COPY => "MEMCPY",
        node_type::SET => "MEMSET",
        node_type::HOST => "HOST",
        node_type::GRAPH => "GRAPH",
        node_type::EMPTY => "EMPTY",
        node_type::WAIT_EVENT => "WAIT_EVENT",
        node_type::EVENT_RECORD => "EVENT_RECORD",
        node_type::ALLOCATE => "MEM_ALLOC",
        node_type::FREE => "MEM_FREE",
        _ => "BATCH_MEM_OP",
    }
}

impl Graphs {
    /// A graph in the language of Graphviz: `cuGraphDebugDotPrint`.
    pub fn dot(&self, graph: u64) -> Result<String> {
        let mut text = String::from("digraph dot {\n");
        self.dot_cluster(graph, &mut text)?;
        text.push_str("}\n");
        Ok(text)
    }

    fn dot_cluster(&self, graph: u64, text: &mut String) -> Result {
        let number = self.graph(graph)?.number;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "subgraph cluster_{number} {{\nlabel=\"graph_{number}\""
        );
        for &handle in &self.graph(graph)?.nodes {
            let node = self.node(handle)?;
            let name = type_name(&node.content);
            let (local, detail) = (node.local, self.detail(&node.content));
            let _ = writeln!(
                text,
                "\"graph_{number}_node_{local}\" [shape=\"record\" label=\"{{{local} | {name}{detail}}}\"]"
            );
            for edge in &node.dependencies {
                let from = self.node(edge.from)?.local;
                let _ = writeln!(
                    text,
                    "\"graph_{number}_node_{from}\" -> \"graph_{number}_node_{local}\""
                );
            }
        }
        for &handle in &self.graph(graph)?.nodes {
            if let Content::Child { graph } = self.node(handle)?.content {
                self.dot_cluster(graph, text)?;
            }
        }
        text.push_str("}\n");
        Ok(())
    }

    fn detail(&self, content: &Content) -> String {
        match *content {
            Content::Allocate { address } | Content::Free { address } => {
                format!(" | {address:#x}")
            }
            Content::Child { graph } => match self.graph(graph) {
                Ok(graph) => format!(" | graph_{}", graph.number),
                Err(_) => String::new(),
            },
            _ => String::new(),
        }
    }
}
