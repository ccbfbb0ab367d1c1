//! Any bytes as a graph with an order: what comes of it is an error or a valid plan.

use super::plan_rules;
use luma::plan::{
    BufferInput, Control, Graph, GraphInput, Level, MemoryInput, NO_PIPE, NodeInput, NodeKind,
    Options, SpillCost, Use, greedy_order, plan_spills,
};
use std::ops::ControlFlow;

/// Bytes, and zeros after their end.
struct Source<'a>(std::slice::Iter<'a, u8>);

impl Source<'_> {
    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// A number below `bound`, which is not 0 and at most 256.
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Small numbers mostly, and some at the ends of what there is.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => u64::MAX / 2,
            253 => 1 << 63,
            252 => u64::from(u32::MAX),
            small => u64::from(small % 16),
        }
    }
}

/// A graph, its order (or none for the greedy one), and how it is planned.
#[derive(Debug)]
pub struct Case {
    pub input: GraphInput,
    pub order: Option<Vec<u32>>,
    pub options: Options,
    pub seed: u64,
}

/// Reads a case. The first byte says what of it may be damaged.
pub fn read(bytes: &[u8]) -> Case {
    let mut source = Source(bytes.iter());
    let mode = source.byte();
    let level = match source.below(8) {
        0..4 => Level::Heuristic,
        4..7 => Level::Exact,
        _ => Level::Search,
    };
    let options = Options {
        level,
        reorder: level == Level::Search,
    };
    let seed = source.number();
    let mut input = GraphInput {
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    for at in 0..=source.below(3) {
        let capacity = match source.byte() {
            255 => u64::MAX,
            254 => 0,
            some => u64::from(some % 24),
        };
        input.memories.push(MemoryInput {
            name: format!("M{at}"),
            capacity,
            single: source.below(8) == 7,
        });
    }
    while !source.is_empty() && input.nodes.len() < 400 {
        step(&mut source, &mut input, mode & 12 == 12);
    }
    let mut born = vec![false; input.buffers.len()];
    for node in &input.nodes {
        if let NodeKind::Free(buffer) = node.kind {
            born[buffer as usize] = true;
        }
    }
    for (buffer, freed) in (0u32..).zip(born) {
        if !freed {
            push(&mut input, NodeKind::Free(buffer), 0, false);
        }
    }
    let mut order = (mode & 1 == 0).then(|| (0..input.nodes.len() as u32).collect::<Vec<u32>>());
    if mode & 3 == 3 || mode & 48 == 48 {
        damage(bytes, &mut input, order.as_mut());
    }
    Case {
        input,
        order,
        options,
        seed,
    }
}

fn push(input: &mut GraphInput, kind: NodeKind, cycles: u64, is_copy_in: bool) {
    let pipe = if kind == NodeKind::Operation {
        input.nodes.len() as u32 % 3
    } else {
        NO_PIPE
    };
    input.nodes.push(NodeInput {
        kind,
        pipe,
        cycles,
        is_copy_in,
    });
}

/// One more buffer, operation, FREE or edge; `wild` ones may be more than the memories hold.
fn step(source: &mut Source<'_>, input: &mut GraphInput, wild: bool) {
    let freed = |input: &GraphInput, buffer: u32| {
        let free = NodeKind::Free(buffer);
        input.nodes.iter().any(|node| node.kind == free)
    };
    match source.below(8) {
        0..3 => {
            let buffer = input.buffers.len() as u32;
            let memory = source.below(input.memories.len()) as u32;
            // Mostly what fits.
            let size = match source.byte() {
                255 if wild => u64::MAX,
                254 if wild => 1 << 62,
                some => u64::from(some) % input.memories[memory as usize].capacity.clamp(1, 9),
            };
            input.buffers.push(BufferInput { size, memory });
            push(input, NodeKind::Alloc(buffer), 0, false);
        }
        3..6 => {
            let node = input.nodes.len() as u32;
            let kind = source.byte();
            let cycles = source.number() % 1_000_000;
            push(input, NodeKind::Operation, cycles, kind % 4 == 0);
            let mut taken = vec![0u64; input.memories.len()];
            for _ in 0..kind / 64 {
                let live: Vec<u32> = (0..input.buffers.len() as u32)
                    .filter(|&buffer| !freed(input, buffer))
                    .collect();
                if live.is_empty() {
                    break;
                }
                let buffer = live[source.below(live.len().min(256))];
                let access = source.byte();
                let BufferInput { size, memory } = input.buffers[buffer as usize];
                let data = &input.memories[memory as usize];
                let room = if data.single { 1 } else { data.capacity };
                let taken = &mut taken[memory as usize];
                let all = taken.saturating_add(if data.single { 1 } else { size });
                if all > room && !wild {
                    continue;
                }
                *taken = all;
                let used = Use {
                    buffer,
                    reads: access & 1 != 0,
                    writes: access & 2 != 0,
                };
                input.uses.push((node, used));
            }
        }
        6 => {
            if !input.buffers.is_empty() {
                let buffer = source.below(input.buffers.len().min(256)) as u32;
                if !freed(input, buffer) {
                    push(input, NodeKind::Free(buffer), 0, false);
                }
            }
        }
        _ => {
            let nodes = input.nodes.len();
            if nodes > 1 {
                let to = 1 + source.below((nodes - 1).min(255));
                input.edges.push((source.below(to) as u32, to as u32));
            }
        }
    }
}

/// Breaks something, told by the last bytes.
fn damage(bytes: &[u8], input: &mut GraphInput, order: Option<&mut Vec<u32>>) {
    let last = |back: usize| bytes.iter().rev().nth(back).copied().unwrap_or(0);
    let value = u32::from(last(1));
    match last(0) % 8 {
        0 => input.edges.push((value, u32::from(last(2)))),
        1 => input
            .uses
            .extend(input.uses.last().copied().map(|(node, used)| {
                let buffer = value;
                (node, Use { buffer, ..used })
            })),
        2 => drop(input.nodes.pop()),
        3 => input.nodes.extend(input.nodes.first().copied()),
        4 => input.cost.in_per_byte = u64::MAX,
        5 => {
            if let Some(buffer) = input.buffers.last_mut() {
                buffer.memory = value;
            }
        }
        _ => {
            if let Some(node) = order.and_then(|order| order.last_mut()) {
                *node = value;
            }
        }
    }
}

/// Plans what the bytes say. Any result is an error with a message, or a plan that the checker
/// accepts, of as many spills as are told; `Break` says what is wrong with it.
pub fn run(bytes: &[u8]) -> ControlFlow<String, Option<usize>> {
    let case = read(bytes);
    let planned = Graph::new(&case.input).and_then(|graph| {
        let order = match &case.order {
            Some(order) => order.clone(),
            None => greedy_order(&graph)?,
        };
        let control = Control {
            seed: case.seed,
            work: Some(50),
            ..Control::default()
        };
        let plan = plan_spills(&graph, &order, &case.options, &control)?;
        Ok((order, plan))
    });
    match planned {
        Err(error) if error.message().is_empty() => {
            ControlFlow::Break(format!("an error without a message: {error:?}"))
        }
        Err(_) => ControlFlow::Continue(None),
        Ok((order, plan)) => {
            let kept = (!case.options.reorder).then_some(&order[..]);
            match plan_rules::valid(&case.input, kept, &plan) {
                Ok(()) => ControlFlow::Continue(Some(plan.spills.len())),
                Err(problem) => ControlFlow::Break(format!("{problem}\n{case:?}")),
            }
        }
    }
}
