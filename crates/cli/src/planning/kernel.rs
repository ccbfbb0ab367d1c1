//! Graphs in files: two tables, or one JSON document.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use luma::plan::{
    BufferInput, GraphInput, MTE2, MTE3, MemoryInput, NO_PIPE, NodeInput, NodeKind, SpillCost, Use,
};
use serde::Deserialize;

use super::table::Table;

/// A graph, with what the library does not need to know of it.
pub struct Kernel {
    /// The file or files.
    pub name: String,
    pub input: GraphInput,
}

/// A node as a file has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    id: u64,
    op: String,
    #[serde(default)]
    buf_id: Option<u64>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default, rename = "Type")]
    memory: Option<String>,
    #[serde(default)]
    pipe: Option<String>,
    #[serde(default)]
    cycles: Option<u64>,
    #[serde(default)]
    bufs: Option<Vec<u64>>,
    /// Of each of `bufs`: `r`, `w`, `rw`, or empty where it is not known.
    #[serde(default)]
    access: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Edge {
    Pair(u64, u64),
    Named {
        #[serde(rename = "StartNodeId")]
        start: u64,
        #[serde(rename = "EndNodeId")]
        end: u64,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Kernel {
    /// Reads a graph from its two tables or from its one document.
    pub fn load(files: &[PathBuf], memories: Vec<MemoryInput>) -> Result<Self> {
        match files {
            [nodes, edges] => Self::from_tables(nodes, edges, memories),
            [document] => Self::from_document(document, memories),
            _ => bail!("a graph is NODES.csv EDGES.csv, or GRAPH.json"),
        }
    }

    fn from_tables(nodes: &Path, edges: &Path, memories: Vec<MemoryInput>) -> Result<Self> {
        let columns = [
            "Id", "Op", "BufId", "Size", "Type", "Pipe", "Cycles", "Bufs",
        ];
        let table = Table::load(nodes, &columns)?;
        let [id, op, buffer, size, memory, pipe, cycles, bufs] =
            columns.map(|column| table.needed(column));
        let access = table.column("Access");
        let text = |field: &str| Some(field.to_string()).filter(|field| !field.is_empty());
        let mut builder = Builder::new(memories, table.rows().len());
        for row in table.rows() {
            let list = |field: &str| -> Vec<String> {
                let parts = field.split(',').map(|part| part.trim().to_string());
                if field.is_empty() {
                    Vec::new()
                } else {
                    parts.collect()
                }
            };
            let buffers = list(row.field(bufs));
            let buffers = buffers.iter().map(|part| part.parse().ok());
            let node = Node {
                id: table.required(row, id)?,
                op: row.field(op).to_string(),
                buf_id: table.number(row, buffer)?,
                size: table.number(row, size)?,
                memory: text(row.field(memory)),
                pipe: text(row.field(pipe)),
                cycles: table.number(row, cycles)?,
                bufs: Some(
                    buffers
                        .collect::<Option<Vec<u64>>>()
                        .ok_or_else(|| table.error(row, "Bufs is not a list of buffers"))?,
                ),
                access: access
                    .map(|column| list(row.field(column)))
                    .filter(|list| !list.is_empty()),
            };
            builder
                .add(&node)
                .map_err(|problem| table.error(row, &problem))?;
        }
        let mut input = builder.finish(&table.name)?;

        let table = Table::load(edges, &["StartNodeId", "EndNodeId"])?;
        let ends = ["StartNodeId", "EndNodeId"].map(|column| table.needed(column));
        for row in table.rows() {
            let [start, end] = [table.required(row, ends[0])?, table.required(row, ends[1])?];
            let edge = edge(start, end, input.nodes.len());
            input
                .edges
                .push(edge.map_err(|problem| table.error(row, &problem))?);
        }
        Ok(Self {
            name: nodes.display().to_string(),
            input,
        })
    }

    fn from_document(path: &Path, memories: Vec<MemoryInput>) -> Result<Self> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        Self::parse(&name, &text, memories)
    }

    /// A graph from the text of a document.
    pub fn parse(name: &str, text: &str, memories: Vec<MemoryInput>) -> Result<Self> {
        let document: Document = serde_json::from_str(text).map_err(|error| {
            anyhow!(
                "{name}: not a graph: {error}; a graph is one JSON object with the arrays Nodes and \
                 Edges, or two tables: NODES.csv EDGES.csv"
            )
        })?;
        let mut builder = Builder::new(memories, document.nodes.len());
        for (at, node) in document.nodes.iter().enumerate() {
            builder
                .add(node)
                .map_err(|problem| anyhow!("{name}: Nodes[{at}]: {problem}"))?;
        }
        let mut input = builder.finish(name)?;
        for (at, read) in document.edges.iter().enumerate() {
            let (Edge::Pair(start, end) | Edge::Named { start, end }) = read;
            let edge = edge(*start, *end, input.nodes.len());
            input
                .edges
                .push(edge.map_err(|problem| anyhow!("{name}: Edges[{at}]: {problem}"))?);
        }
        Ok(Self {
            name: name.to_string(),
            input,
        })
    }
}

fn edge(start: u64, end: u64, nodes: usize) -> Result<(u32, u32), String> {
    for node in [start, end] {
        if node >= nodes as u64 {
            return Err(format!("there is no node {node}: the graph has {nodes}"));
        }
    }
    Ok((start as u32, end as u32))
}

/// A graph of which nodes come in any order.
struct Builder {
    input: GraphInput,
    /// Of each node: whether it is there.
    seen: Vec<bool>,
    /// Of each buffer that has an ALLOC: its data. An id without one is found by the library.
    buffers: Vec<Option<BufferInput>>,
    /// Pipes, numbered from [`Builder::FIRST_PIPE`] on.
    pipes: Vec<String>,
}

impl Builder {
    /// Beyond the numbers that the costs of spills name.
    const FIRST_PIPE: u32 = 10;

    fn new(memories: Vec<MemoryInput>, nodes: usize) -> Self {
        let empty = NodeInput {
            kind: NodeKind::Operation,
            pipe: NO_PIPE,
            cycles: 0,
            is_copy_in: false,
        };
        Self {
            input: GraphInput {
                nodes: vec![empty; nodes],
                memories,
                cost: SpillCost::contest(),
                ..GraphInput::default()
            },
            seen: vec![false; nodes],
            buffers: Vec::new(),
            pipes: Vec::new(),
        }
    }

    fn add(&mut self, node: &Node) -> Result<(), String> {
        let count = self.seen.len();
        let id = node.id as usize;
        match self.seen.get_mut(id) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(format!("node {id} is there twice")),
            None => {
                return Err(format!(
                    "node {}: ids are 0 to {}, each once, for {count} nodes",
                    node.id,
                    count - 1
                ));
            }
        }
        let kind = match node.op.as_str() {
            "" => return Err(format!("node {id} has no Op")),
            "ALLOC" => NodeKind::Alloc(self.alloc(node)?),
            "FREE" => NodeKind::Free(self.buffer(node)?),
            _ => NodeKind::Operation,
        };
        self.uses(id as u32, node)?;
        self.input.nodes[id] = NodeInput {
            kind,
            pipe: self.pipe(node.pipe.as_deref().unwrap_or_default()),
            cycles: node.cycles.unwrap_or(0),
            is_copy_in: node.op == "COPY_IN",
        };
        Ok(())
    }

    /// The buffer of an ALLOC or a FREE.
    fn buffer(&self, node: &Node) -> Result<u32, String> {
        let buffer = node
            .buf_id
            .ok_or_else(|| format!("{} without BufId", node.op))?;
        self.number(buffer)
    }

    /// There are at most as many buffers as nodes, so that a larger number has no ALLOC and a wrong
    /// one takes no memory.
    fn number(&self, buffer: u64) -> Result<u32, String> {
        match u32::try_from(buffer) {
            Ok(number) if (number as usize) < self.seen.len() => Ok(number),
            _ => Err(format!(
                "buffer {buffer}: ids of buffers are 0, 1, 2 and so on, each with an ALLOC"
            )),
        }
    }

    fn alloc(&mut self, node: &Node) -> Result<u32, String> {
        let buffer = self.buffer(node)?;
        let size = node.size.ok_or("ALLOC without Size")?;
        let name = node.memory.as_deref().ok_or("ALLOC without Type")?;
        let memories = &self.input.memories;
        let Some(memory) = memories.iter().position(|memory| memory.name == name) else {
            let known: Vec<&str> = memories.iter().map(|memory| memory.name.as_str()).collect();
            return Err(format!(
                "memory {name} is not known ({}): give its size with --memory {name}=SIZE",
                known.join(", ")
            ));
        };
        let at = buffer as usize;
        if self.buffers.len() <= at {
            self.buffers.resize(at + 1, None);
        }
        if self.buffers[at].is_some() {
            return Err(format!("buffer {buffer} has two ALLOCs"));
        }
        self.buffers[at] = Some(BufferInput {
            size,
            memory: memory as u32,
        });
        Ok(buffer)
    }

    fn uses(&mut self, id: u32, node: &Node) -> Result<(), String> {
        let bufs = node.bufs.as_deref().unwrap_or_default();
        if let Some(access) = &node.access {
            if access.len() != bufs.len() {
                return Err(format!(
                    "Access has {} entries for {} buffers",
                    access.len(),
                    bufs.len()
                ));
            }
        }
        for (at, &buffer) in bufs.iter().enumerate() {
            let access = node.access.as_ref().map_or("", |list| list[at].as_str());
            let (reads, writes) = match access {
                "" => (false, false),
                "r" => (true, false),
                "w" => (false, true),
                "rw" => (true, true),
                other => return Err(format!("Access is not r, w or rw: {other:?}")),
            };
            let usage = Use {
                buffer: self.number(buffer)?,
                reads,
                writes,
            };
            self.input.uses.push((id, usage));
        }
        Ok(())
    }

    fn pipe(&mut self, name: &str) -> u32 {
        match name {
            "" => NO_PIPE,
            "MTE2" => MTE2,
            "MTE3" => MTE3,
            _ => {
                let known = self.pipes.iter().position(|pipe| pipe == name);
                let at = known.unwrap_or_else(|| {
                    self.pipes.push(name.to_string());
                    self.pipes.len() - 1
                });
                Self::FIRST_PIPE + at as u32
            }
        }
    }

    fn finish(mut self, name: &str) -> Result<GraphInput> {
        for (id, buffer) in self.buffers.into_iter().enumerate() {
            let buffer = buffer.with_context(|| {
                format!("{name}: buffer {id} has no ALLOC, though one with a larger id has")
            })?;
            self.input.buffers.push(buffer);
        }
        Ok(self.input)
    }
}
