//! What has no plan is told: the status and the message of each error, with the node, the buffer and
//! the sizes, and nothing of the caller's changed.

#![cfg(not(miri))]

mod support;

use luma::Status;
use luma::ffi::luma_status_t;
use luma::plan::{
    BufferInput, Control, Graph, GraphInput, MemoryInput, NO_PIPE, NodeInput, NodeKind, Options,
    PlanErrorKind, Use, greedy_order, plan_spills,
};
use support::plan_c::CGraph;
use support::plan_rules::assert_valid;

const UNKNOWN: Use = Use {
    buffer: 0,
    reads: false,
    writes: false,
};

fn node(kind: NodeKind) -> NodeInput {
    NodeInput {
        kind,
        pipe: NO_PIPE,
        cycles: 1,
        is_copy_in: false,
    }
}

/// Buffers 0 and 1 of 6 and 4 bytes in L1, which has 10; operation 2 uses both, operation 3 neither.
fn base() -> GraphInput {
    GraphInput {
        nodes: [
            NodeKind::Alloc(0),
            NodeKind::Alloc(1),
            NodeKind::Operation,
            NodeKind::Operation,
            NodeKind::Free(0),
            NodeKind::Free(1),
        ]
        .map(node)
        .to_vec(),
        uses: vec![
            (2, UNKNOWN),
            (
                2,
                Use {
                    buffer: 1,
                    ..UNKNOWN
                },
            ),
        ],
        edges: vec![(0, 2), (2, 3), (3, 4)],
        buffers: [6, 4].map(|size| BufferInput { size, memory: 0 }).to_vec(),
        memories: vec![MemoryInput {
            name: "L1".to_owned(),
            capacity: 10,
            single: false,
        }],
        ..GraphInput::default()
    }
}

/// What is wrong, and how it is told.
struct Expected {
    kind: PlanErrorKind,
    status: Status,
    /// All of this is in the message.
    says: &'static [&'static str],
}

fn invalid(kind: PlanErrorKind, says: &'static [&'static str]) -> Expected {
    let status = Status::InvalidValue;
    Expected { kind, status, says }
}

fn infeasible(kind: PlanErrorKind, says: &'static [&'static str]) -> Expected {
    let status = Status::Infeasible;
    Expected { kind, status, says }
}

/// Rust and C are told the same, and C's arrays stay as they were.
fn refused(input: &GraphInput, order: Option<&[u32]>, expected: &Expected) {
    let planned = Graph::new(input).and_then(|graph| {
        let greedy = greedy_order(&graph)?;
        let order = order.unwrap_or(&greedy);
        plan_spills(&graph, order, &Options::default(), &Control::default())
    });
    let error = planned.expect_err("there is no plan");
    assert_eq!(error.kind, expected.kind, "{error}");
    assert_eq!(error.status(), expected.status, "{error}");
    for part in expected.says {
        assert!(error.message().contains(part), "no '{part}' in: {error}");
    }
    let arrays = CGraph::new(input);
    let before = arrays.clone();
    let (status, message) = arrays.plan(order).expect_err("there is no plan");
    assert_eq!(status as i32, expected.status as i32, "{message}");
    assert_eq!(message, error.message());
    assert_eq!(arrays, before, "the caller's arrays were changed");
}

#[test]
fn the_graph_that_the_errors_are_made_of_is_valid() {
    let input = base();
    let graph = Graph::new(&input).expect("valid");
    let order = [0, 1, 2, 3, 4, 5];
    let plan = plan_spills(&graph, &order, &Options::default(), &Control::default());
    assert_valid(&input, Some(&order), &plan.expect("there is a plan"));
}

macro_rules! graphs {
    ($($name:ident: $change:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            let mut input = base();
            let change: fn(&mut GraphInput) = $change;
            change(&mut input);
            refused(&input, None, &$expected);
        })*
    };
}

use PlanErrorKind as Kind;

graphs! {
    a_buffer_larger_than_its_memory: |input| input.buffers[1].size = 11
        => infeasible(Kind::BufferTooLarge, &["larger", "node 1", "buffer 1", "L1", "11", "10"]);
    operands_that_cannot_be_resident_together: |input| input.buffers[1].size = 5
        => infeasible(Kind::OperandsTooLarge, &["resident together", "node 2", "buffer 1", "L1", "11", "10"]);
    operands_of_a_memory_for_one: |input| input.memories[0].single = true
        => infeasible(Kind::OperandsTooLarge, &["resident together", "node 2", "L1", "needed 2", "available 1"]);
    an_unknown_memory: |input| input.buffers[1].memory = 7
        => invalid(Kind::UnknownMemory, &["memory", "buffer 1", "7"]);
    an_unknown_buffer_of_a_use: |input| input.uses[1].1.buffer = 9
        => invalid(Kind::UnknownBuffer, &["no such buffer", "node 2", "buffer 9"]);
    an_unknown_buffer_of_a_node: |input| input.nodes[1].kind = NodeKind::Alloc(9)
        => invalid(Kind::UnknownBuffer, &["no such buffer", "node 1", "buffer 9"]);
    an_unknown_node_of_an_edge: |input| input.edges.push((2, 77))
        => invalid(Kind::UnknownNode, &["no such node", "node 77", "node 2"]);
    an_unknown_node_of_a_use: |input| input.uses[0].0 = 77
        => invalid(Kind::UnknownNode, &["no such node", "node 77", "buffer 0"]);
    a_missing_alloc: |input| input.nodes[1].kind = NodeKind::Operation
        => invalid(Kind::AllocMissing, &["no ALLOC", "buffer 1"]);
    a_missing_free: |input| input.nodes[5].kind = NodeKind::Operation
        => invalid(Kind::FreeMissing, &["no FREE", "buffer 1"]);
    an_alloc_twice: |input| input.nodes.push(node(NodeKind::Alloc(1)))
        => invalid(Kind::AllocTwice, &["two ALLOCs", "node 6", "node 1", "buffer 1"]);
    a_free_twice: |input| input.nodes.push(node(NodeKind::Free(1)))
        => invalid(Kind::FreeTwice, &["two FREEs", "node 6", "node 5", "buffer 1"]);
    a_use_by_an_alloc: |input| input.uses[1].0 = 1
        => invalid(Kind::UseByCacheNode, &["ALLOC or a FREE", "node 1", "buffer 1"]);
    a_use_after_the_free: |input| input.edges.push((5, 2))
        => invalid(Kind::UseOutsideLifetime, &["before its ALLOC or after its FREE", "node 2", "buffer 1"]);
    a_use_before_the_alloc: |input| input.edges.push((2, 1))
        => invalid(Kind::UseOutsideLifetime, &["before its ALLOC or after its FREE", "node 2", "buffer 1"]);
    a_cycle: |input| input.edges.extend([(3, 0)])
        => invalid(Kind::Cycle, &["cycle", "node"]);
    an_edge_to_itself: |input| input.edges.push((3, 3))
        => invalid(Kind::Cycle, &["cycle", "node 3"]);
    bytes_that_overflow: |input| {
        input.memories[0].capacity = u64::MAX;
        for buffer in &mut input.buffers {
            buffer.size = u64::MAX / 2 + 1;
        }
        input.uses.pop();
    } => invalid(Kind::Overflow, &["more than can be counted", "bytes", "buffer", "9223372036854775807"]);
    cycles_that_overflow: |input| {
        for node in &mut input.nodes {
            node.cycles = u64::MAX / 2;
        }
    } => invalid(Kind::Overflow, &["more than can be counted", "cycles"]);
}

macro_rules! orders {
    ($($name:ident: $order:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            refused(&base(), Some(&$order), &$expected);
        })*
    };
}

orders! {
    an_order_that_is_not_topological: [0, 1, 3, 2, 4, 5]
        => invalid(Kind::OrderNotTopological, &["not topological", "node 3", "node 2"]);
    an_incomplete_order: [0, 1, 2, 3, 4]
        => invalid(Kind::OrderIncomplete, &["incomplete", "node 5", "6", "5"]);
    an_order_with_repeats: [0, 1, 2, 3, 4, 5, 2]
        => invalid(Kind::OrderRepeats, &["twice", "node 2"]);
    an_order_of_unknown_nodes: [0, 1, 2, 3, 4, 6]
        => invalid(Kind::UnknownNode, &["no such node", "node 6", "order"]);
    an_order_that_uses_before_the_alloc: [0, 2, 1, 3, 4, 5]
        => invalid(Kind::UseOutsideLifetime, &["before its ALLOC", "node 2", "buffer 1"]);
    an_order_that_uses_after_the_free: [0, 1, 5, 2, 3, 4]
        => invalid(Kind::UseOutsideLifetime, &["after its FREE", "node 2", "buffer 1"]);
}

/// A NULL order is the greedy one; an empty array is an order without nodes.
#[test]
fn an_empty_order_is_none() {
    let input = base();
    let arrays = CGraph::new(&input);
    let plan = arrays.plan(None).expect("there is a plan");
    assert_eq!(plan.view().order_count, 6);
    let empty = arrays.plan(Some(&[])).expect_err("six nodes are missing");
    assert_eq!(
        empty.0,
        luma_status_t::LUMA_ERROR_INVALID_VALUE,
        "{}",
        empty.1
    );
}

/// Buffers of no bytes, operations without buffers, and graphs of nothing are legal.
#[test]
fn nothing_is_legal() {
    let mut input = base();
    for buffer in &mut input.buffers {
        buffer.size = 0;
    }
    input.memories[0].capacity = 0;
    let empty = GraphInput::default();
    let operations = GraphInput {
        nodes: vec![node(NodeKind::Operation); 3],
        ..GraphInput::default()
    };
    for input in [input, empty, operations] {
        let graph = Graph::new(&input).expect("valid");
        let order = greedy_order(&graph).expect("no cycle");
        let plan = plan_spills(&graph, &order, &Options::default(), &Control::default());
        let plan = plan.expect("there is a plan");
        assert_valid(&input, Some(&order), &plan);
        assert_eq!((plan.extra_bytes, plan.spills.len()), (0, 0));
        assert!(CGraph::new(&input).plan(None).is_ok());
    }
}
