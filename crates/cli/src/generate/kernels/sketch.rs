//! A graph while it is drawn.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};

/// Where a buffer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    L1,
    Ub,
    L0a,
    L0b,
    L0c,
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::Ub => "UB",
            Self::L0a => "L0A",
            Self::L0b => "L0B",
            Self::L0c => "L0C",
        }
    }
}

/// A buffer of the graph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Buffer(usize);

/// What a node does.
enum Kind {
    Alloc(Buffer),
    Free(Buffer),
    Operation {
        op: &'static str,
        pipe: &'static str,
        cycles: u64,
        buffers: Vec<Buffer>,
    },
}

/// What is known of a buffer so far.
struct Data {
    size: u64,
    memory: Memory,
    alloc: usize,
    /// The operation that wrote it last, and those that read that.
    writer: Option<usize>,
    readers: Vec<usize>,
    users: Vec<usize>,
}

/// Nodes and edges so far. ALLOCs stand before what first uses them; FREEs come last, as in the
/// kernels of compilers: when to free is the planner's choice.
#[derive(Default)]
pub struct Sketch {
    nodes: Vec<Kind>,
    edges: Vec<(usize, usize)>,
    buffers: Vec<Data>,
}

impl Sketch {
    /// A new buffer, with its ALLOC.
    pub fn alloc(&mut self, memory: Memory, size: u64) -> Buffer {
        let buffer = Buffer(self.buffers.len());
        self.buffers.push(Data {
            size: size.max(1),
            memory,
            alloc: self.nodes.len(),
            writer: None,
            readers: Vec::new(),
            users: Vec::new(),
        });
        self.nodes.push(Kind::Alloc(buffer));
        buffer
    }

    /// An operation that writes a buffer and reads others; one that is both is updated. `output` is
    /// first in the list of its buffers.
    pub fn write(
        &mut self,
        op: &'static str,
        pipe: &'static str,
        cycles: u64,
        output: Buffer,
        inputs: &[Buffer],
    ) {
        let node = self.operation(op, pipe, cycles, output, inputs);
        for &input in inputs {
            self.read(input, node);
        }
        // It waits for whatever read or wrote the buffer before.
        let data = &mut self.buffers[output.0];
        if data.readers.is_empty() {
            let before = data.writer.unwrap_or(data.alloc);
            self.edges.push((before, node));
        }
        let readers = data.readers.drain(..).filter(|&reader| reader != node);
        self.edges.extend(readers.map(|reader| (reader, node)));
        data.writer = Some(node);
    }

    /// An operation that reads a buffer and writes none.
    pub fn read_only(&mut self, op: &'static str, pipe: &'static str, cycles: u64, input: Buffer) {
        let node = self.operation(op, pipe, cycles, input, &[]);
        self.read(input, node);
    }

    fn operation(
        &mut self,
        op: &'static str,
        pipe: &'static str,
        cycles: u64,
        first: Buffer,
        others: &[Buffer],
    ) -> usize {
        let node = self.nodes.len();
        let mut buffers = vec![first];
        buffers.extend(others.iter().filter(|&&other| other != first));
        for buffer in &buffers {
            self.buffers[buffer.0].users.push(node);
        }
        self.nodes.push(Kind::Operation {
            op,
            pipe,
            cycles,
            buffers,
        });
        node
    }

    fn read(&mut self, buffer: Buffer, node: usize) {
        let data = &mut self.buffers[buffer.0];
        self.edges.push((data.writer.unwrap_or(data.alloc), node));
        data.readers.push(node);
    }

    pub fn size(&self, buffer: Buffer) -> u64 {
        self.buffers[buffer.0].size
    }

    /// Brings a new tile from outside into L1.
    pub fn copy_in(&mut self, size: u64) -> Buffer {
        let tile = self.alloc(Memory::L1, size);
        self.write("COPY_IN", "MTE2", 64 + 2 * size, tile, &[]);
        tile
    }

    /// Moves what the cube multiplies next from L1 to L0A or L0B.
    pub fn load(&mut self, memory: Memory, size: u64, from: Buffer) -> Buffer {
        let tile = self.alloc(memory, size);
        self.write("MOVE", "MTE1", 16 + size / 8, tile, &[from]);
        tile
    }

    /// Copies a result to the outside.
    pub fn copy_out(&mut self, from: Buffer) {
        let cycles = 64 + self.size(from);
        self.read_only("COPY_OUT", "MTE3", cycles, from);
    }

    /// Adds the FREEs.
    pub fn finish(mut self) -> Self {
        for at in 0..self.buffers.len() {
            let node = self.nodes.len();
            let data = &self.buffers[at];
            self.edges.push((data.alloc, node));
            self.edges
                .extend(data.users.iter().map(|&user| (user, node)));
            self.nodes.push(Kind::Free(Buffer(at)));
        }
        self.edges.sort_unstable();
        self.edges.dedup();
        self
    }

    pub fn nodes_csv(&self) -> String {
        let mut text = String::from("Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs\n");
        for (id, node) in self.nodes.iter().enumerate() {
            // Writing into a string cannot fail.
            let _ = match node {
                Kind::Alloc(buffer) => self.cache_line(&mut text, id, "ALLOC", *buffer),
                Kind::Free(buffer) => self.cache_line(&mut text, id, "FREE", *buffer),
                Kind::Operation {
                    op,
                    pipe,
                    cycles,
                    buffers,
                } => {
                    let list: Vec<String> = buffers.iter().map(|b| b.0.to_string()).collect();
                    let list = match &list[..] {
                        [one] => one.clone(),
                        more => format!("\"{}\"", more.join(",")),
                    };
                    writeln!(text, "{id},{op},,,,{pipe},{cycles},{list}")
                }
            };
        }
        text
    }

    fn cache_line(
        &self,
        text: &mut String,
        id: usize,
        op: &str,
        buffer: Buffer,
    ) -> std::fmt::Result {
        let data = &self.buffers[buffer.0];
        let (size, memory) = (data.size, data.memory.name());
        writeln!(text, "{id},{op},{},{size},{memory},,,", buffer.0)
    }

    pub fn edges_csv(&self) -> String {
        let mut text = String::from("StartNodeId,EndNodeId\n");
        for (from, to) in &self.edges {
            let _ = writeln!(text, "{from},{to}");
        }
        text
    }

    pub fn json(&self) -> Result<String> {
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(id, node)| match node {
                Kind::Alloc(buffer) | Kind::Free(buffer) => {
                    let data = &self.buffers[buffer.0];
                    let op = match node {
                        Kind::Alloc(_) => "ALLOC",
                        _ => "FREE",
                    };
                    json!({"Id": id, "Op": op, "BufId": buffer.0, "Size": data.size,
                           "Type": data.memory.name()})
                }
                Kind::Operation {
                    op,
                    pipe,
                    cycles,
                    buffers,
                } => {
                    let buffers: Vec<usize> = buffers.iter().map(|buffer| buffer.0).collect();
                    json!({"Id": id, "Op": op, "Pipe": pipe, "Cycles": cycles, "Bufs": buffers})
                }
            })
            .collect();
        // A line for each node and for each ten edges: small, and still for people.
        let mut text = String::from("{\"Nodes\":[\n");
        for (at, node) in nodes.iter().enumerate() {
            text += &serde_json::to_string(node)?;
            text += if at + 1 < nodes.len() { ",\n" } else { "\n" };
        }
        text += "],\"Edges\":[\n";
        for (at, (from, to)) in self.edges.iter().enumerate() {
            let _ = write!(text, "[{from},{to}]");
            let last = at + 1 == self.edges.len();
            text += match at % 10 {
                _ if last => "\n",
                9 => ",\n",
                _ => ",",
            };
        }
        text += "]}\n";
        Ok(text)
    }
}
