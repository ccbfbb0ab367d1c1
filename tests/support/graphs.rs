//! Graphs made for tests.

use luma::plan::{
    BufferInput, GraphInput, MemoryInput, NO_PIPE, NodeInput, NodeKind, SpillCost, Use,
};

/// Random numbers that are the same everywhere (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What random graphs are like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub operations: u64,
    pub buffers: u64,
    pub memories: u64,
    pub capacity: u64,
    pub largest: u64,
    /// Of 100 uses, those that say what they do.
    pub known: u64,
    /// Of 100 memories, those for one buffer at a time.
    pub single: u64,
}

impl Shape {
    pub const SMALL: Self = Self {
        operations: 12,
        buffers: 8,
        memories: 2,
        capacity: 12,
        largest: 7,
        known: 30,
        single: 10,
    };
}

/// A graph with a plan in every order: no operation uses more than fits. Id order is topological.
pub fn random(random: &mut Random, shape: Shape) -> GraphInput {
    let memories: Vec<MemoryInput> = (0..shape.memories)
        .map(|at| MemoryInput {
            name: format!("M{at}"),
            capacity: shape.largest + random.below(shape.capacity + 1 - shape.largest),
            single: random.chance(shape.single),
        })
        .collect();
    let buffers: Vec<BufferInput> = (0..shape.buffers)
        .map(|_| BufferInput {
            size: random.below(shape.largest + 1),
            memory: random.below(shape.memories) as u32,
        })
        .collect();
    // The operands of each operation, as far as they fit together.
    let mut operands: Vec<Vec<u32>> = Vec::new();
    for _ in 0..shape.operations {
        let mut chosen: Vec<u32> = Vec::new();
        let mut free: Vec<u64> = memories
            .iter()
            .map(|memory| if memory.single { 1 } else { memory.capacity })
            .collect();
        for _ in 0..random.below(4) {
            let buffer = random.below(shape.buffers.max(1)) as u32;
            let Some(data) = buffers.get(buffer as usize) else {
                continue;
            };
            let memory = data.memory as usize;
            let takes = if memories[memory].single {
                1
            } else {
                data.size
            };
            if !chosen.contains(&buffer) && takes <= free[memory] {
                free[memory] -= takes;
                chosen.push(buffer);
            }
        }
        operands.push(chosen);
    }
    // ALLOCs at random before the first use, FREEs after the last.
    let mut keyed: Vec<(u64, NodeKind, Vec<u32>)> = Vec::new();
    let step = 1000;
    for (at, operands) in operands.iter().enumerate() {
        keyed.push((
            (at as u64 + 1) * step,
            NodeKind::Operation,
            operands.clone(),
        ));
    }
    for buffer in 0..buffers.len() as u32 {
        let uses = || {
            (1..)
                .zip(&operands)
                .filter(|(_, list)| list.contains(&buffer))
        };
        let end = (operands.len() as u64 + 1) * step;
        let first = uses()
            .next()
            .map_or(random.below(end) + 1, |(at, _)| at * step);
        let last = uses().last().map_or(first, |(at, _)| at * step);
        let eager = random.chance(70);
        let start = if eager {
            first.saturating_sub(1 + random.below(3 * step))
        } else {
            random.below(first)
        };
        let stop = if eager {
            last + 1 + random.below(2 * step)
        } else {
            last + 1 + random.below(end - last.min(end - 1))
        };
        keyed.push((start, NodeKind::Alloc(buffer), Vec::new()));
        keyed.push((stop.max(start + 1), NodeKind::Free(buffer), Vec::new()));
    }
    keyed.sort_by_key(|(key, kind, _)| (*key, !matches!(kind, NodeKind::Alloc(_))));
    let mut input = GraphInput {
        memories,
        buffers,
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    for (node, (_, kind, operands)) in keyed.into_iter().enumerate() {
        for buffer in operands {
            let known = random.chance(shape.known);
            let access = 1 + random.below(3);
            let usage = Use {
                buffer,
                reads: known && access & 1 != 0,
                writes: known && access & 2 != 0,
            };
            input.uses.push((node as u32, usage));
        }
        let operation = kind == NodeKind::Operation;
        input.nodes.push(NodeInput {
            kind,
            pipe: if operation {
                random.below(4) as u32
            } else {
                NO_PIPE
            },
            cycles: if operation { random.below(100) } else { 0 },
            is_copy_in: operation && random.chance(25),
        });
        // Some dependencies besides those of the buffers.
        if node > 0 && operation && random.chance(20) {
            input
                .edges
                .push((random.below(node as u64) as u32, node as u32));
        }
    }
    input
}

/// A chain of `operations`, each with the result of the one before and one of `kept` buffers that
/// live throughout.
pub fn chain(operations: u32, kept: u32, size: impl Fn(u32) -> u64, capacity: u64) -> GraphInput {
    let mut input = GraphInput {
        memories: vec![MemoryInput {
            name: "M".to_owned(),
            capacity,
            single: false,
        }],
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    let node = |input: &mut GraphInput, kind: NodeKind, uses: &[u32]| {
        let node = input.nodes.len() as u32;
        for &buffer in uses {
            let usage = Use {
                buffer,
                reads: false,
                writes: false,
            };
            input.uses.push((node, usage));
        }
        input.nodes.push(NodeInput {
            kind,
            pipe: if kind == NodeKind::Operation {
                0
            } else {
                NO_PIPE
            },
            cycles: 1,
            is_copy_in: false,
        });
        if node > 0 {
            input.edges.push((node - 1, node));
        }
    };
    let buffers = kept + operations;
    for buffer in 0..buffers {
        input.buffers.push(BufferInput {
            size: size(buffer),
            memory: 0,
        });
    }
    for buffer in 0..kept {
        node(&mut input, NodeKind::Alloc(buffer), &[]);
    }
    for at in 0..operations {
        let result = kept + at;
        node(&mut input, NodeKind::Alloc(result), &[]);
        let other = (kept > 0).then(|| at.wrapping_mul(2_654_435_761) % kept);
        match (at, other) {
            (0, None) => node(&mut input, NodeKind::Operation, &[result]),
            (0, Some(other)) => node(&mut input, NodeKind::Operation, &[result, other]),
            (_, None) => node(&mut input, NodeKind::Operation, &[result - 1, result]),
            (_, Some(other)) => {
                node(
                    &mut input,
                    NodeKind::Operation,
                    &[result - 1, result, other],
                );
            }
        }
        if at > 0 {
            node(&mut input, NodeKind::Free(result - 1), &[]);
        }
    }
    if operations > 0 {
        node(&mut input, NodeKind::Free(buffers - 1), &[]);
    }
    for buffer in 0..kept {
        node(&mut input, NodeKind::Free(buffer), &[]);
    }
    input
}
