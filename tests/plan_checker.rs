//! The checker of plans: valid plans pass with their costs; changed ones are rejected, with the rule
//! that they break.

#![cfg(not(miri))]

mod support;

use luma::plan::check::{Class, NO_OFFSET, Violation, check_plan};
use luma::plan::{Control, Graph, GraphInput, Options, greedy_order, plan_spills};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::graphs::{Random, Shape, chain, random};
use support::plan_rules::{Arrays, assert_valid, broken};

/// Graphs small enough for the plain rules, and tight enough for spills.
const SHAPE: Shape = Shape {
    operations: 20,
    buffers: 12,
    memories: 2,
    capacity: 14,
    largest: 8,
    known: 20,
    single: 20,
};

struct Case {
    input: GraphInput,
    given: Vec<u32>,
    plan: Arrays,
}

/// Graphs with valid plans that spill.
fn cases(seed: u64, count: usize) -> Vec<Case> {
    let mut numbers = Random(seed);
    let mut cases = Vec::new();
    while cases.len() < count {
        let input = random(&mut numbers, SHAPE);
        let graph = Graph::new(&input).expect("made valid");
        let given = greedy_order(&graph).expect("no cycle");
        let plan = plan_spills(&graph, &given, &Options::default(), &Control::default())
            .expect("there is a plan");
        assert_valid(&input, Some(&given), &plan);
        let plan = Arrays::of(&plan);
        assert!(broken(&input, Some(&given), &plan).is_empty());
        if plan.spills.len() >= 2 {
            cases.push(Case { input, given, plan });
        }
    }
    cases
}

fn check(case: &Case, plan: &Arrays) -> Result<(), Violation> {
    let given = Some(&case.given[..]);
    check_plan(&case.input, given, &plan.order, &plan.offsets, &plan.spills).map(drop)
}

/// Changes something in a plan.
type Change = fn(&Case, &mut Arrays, &mut Random);

/// A number below `count`.
fn pick(numbers: &mut Random, count: usize) -> usize {
    numbers.below(count as u64) as usize
}

/// The ways in which a plan is changed.
const CHANGES: [(&str, Change); 12] = [
    ("a node moved", |_, plan, numbers| {
        let node = plan.order.remove(pick(numbers, plan.order.len()));
        plan.order.insert(pick(numbers, plan.order.len() + 1), node);
    }),
    ("two nodes swapped", |_, plan, numbers| {
        let count = plan.order.len();
        let one = pick(numbers, count);
        plan.order.swap(one, pick(numbers, count));
    }),
    ("a node dropped", |_, plan, numbers| {
        plan.order.remove(pick(numbers, plan.order.len()));
    }),
    ("a node twice", |_, plan, numbers| {
        let node = plan.order[pick(numbers, plan.order.len())];
        plan.order.insert(pick(numbers, plan.order.len() + 1), node);
    }),
    ("an unknown node", |case, plan, numbers| {
        let node =
            (case.input.nodes.len() + 2 * plan.spills.len()) as u32 + numbers.below(3) as u32;
        plan.order.insert(pick(numbers, plan.order.len() + 1), node);
    }),
    ("a spill's node moved", |case, plan, numbers| {
        let spill = pick(numbers, 2 * plan.spills.len());
        let node = (case.input.nodes.len() + spill) as u32;
        let from = plan.order.iter().position(|&there| there == node).unwrap();
        plan.order.remove(from);
        let near = from.saturating_sub(4) + pick(numbers, 8);
        plan.order.insert(near.min(plan.order.len()), node);
    }),
    ("a spill dropped with its nodes", |case, plan, numbers| {
        let spill = pick(numbers, plan.spills.len());
        let out = (case.input.nodes.len() + 2 * spill) as u32;
        plan.spills.remove(spill);
        plan.order.retain(|&node| node != out && node != out + 1);
        for node in &mut plan.order {
            if *node > out {
                *node -= 2;
            }
        }
    }),
    ("two spills renumbered", |case, plan, numbers| {
        let one = pick(numbers, plan.spills.len());
        let other = (one + 1) % plan.spills.len();
        plan.spills.swap(one, other);
        let first = |spill: usize| (case.input.nodes.len() + 2 * spill) as u32;
        for node in &mut plan.order {
            if *node >= first(one) && *node < first(one) + 2 {
                *node = *node - first(one) + first(other);
            } else if *node >= first(other) && *node < first(other) + 2 {
                *node = *node - first(other) + first(one);
            }
        }
    }),
    ("a spill of another buffer", |case, plan, numbers| {
        let spill = pick(numbers, plan.spills.len());
        plan.spills[spill].0 = pick(numbers, case.input.buffers.len() + 1) as u32;
    }),
    ("a buffer somewhere else", |case, plan, numbers| {
        let buffer = pick(numbers, plan.offsets.len());
        let memory = case.input.buffers[buffer].memory as usize;
        plan.offsets[buffer] = numbers.below(case.input.memories[memory].capacity + 1);
    }),
    ("a reload somewhere else", |case, plan, numbers| {
        let spill = pick(numbers, plan.spills.len());
        let memory = case.input.buffers[plan.spills[spill].0 as usize].memory as usize;
        plan.spills[spill].1 = numbers.below(case.input.memories[memory].capacity + 1);
    }),
    ("an offset missing", |_, plan, numbers| {
        match numbers.below(3) {
            0 => drop(plan.offsets.pop()),
            1 => {
                let buffer = pick(numbers, plan.offsets.len());
                plan.offsets[buffer] = NO_OFFSET;
            }
            _ => {
                let spill = pick(numbers, plan.spills.len());
                plan.spills[spill].1 = NO_OFFSET;
            }
        }
    }),
];

/// Each change of each plan breaks the rule that the plain rules say, of several the first; and it is
/// accepted only where they find nothing.
#[test]
fn changed_plans_are_rejected_with_the_right_class() {
    let mut numbers = Random(2);
    let mut rejected: BTreeMap<(&str, Class), usize> = BTreeMap::new();
    let mut accepted = 0;
    for case in cases(1, 60) {
        for (name, change) in CHANGES {
            for _ in 0..8 {
                let mut plan = case.plan.clone();
                change(&case, &mut plan, &mut numbers);
                if plan == case.plan {
                    continue;
                }
                let expected = broken(&case.input, Some(&case.given), &plan)
                    .first()
                    .copied();
                let found = check(&case, &plan);
                match (&found, expected) {
                    (Ok(()), None) => accepted += 1,
                    (Err(violation), Some(class)) if violation.class == class => {
                        *rejected.entry((name, class)).or_default() += 1;
                    }
                    _ => panic!(
                        "{name}: {found:?}, not {expected:?}: {plan:?} of {:?}",
                        case.plan
                    ),
                }
            }
        }
    }
    let total: usize = rejected.values().sum();
    println!("{total} rejected, {accepted} still valid: {rejected:#?}");
    assert!(total >= 3_000, "only {total} were rejected");
    for (name, _) in CHANGES {
        let count: usize = rejected
            .iter()
            .filter(|((of, _), _)| *of == name)
            .map(|(_, n)| n)
            .sum();
        assert!(count >= 40, "{name}: only {count} were rejected");
    }
    for class in Class::ALL {
        let count: usize = rejected
            .iter()
            .filter(|((_, of), _)| *of == class)
            .map(|(_, n)| n)
            .sum();
        assert!(
            count > 0 || class == Class::Graph,
            "nothing broke {}",
            class.name()
        );
    }
}

/// What each change must break, whatever else it breaks.
#[test]
fn each_kind_of_change_breaks_its_own_rule() {
    let mut numbers = Random(3);
    for case in cases(4, 40) {
        for (name, change) in CHANGES {
            let mut plan = case.plan.clone();
            change(&case, &mut plan, &mut numbers);
            let only = match name {
                "a node dropped" => Class::MissingNode,
                "a node twice" => Class::DuplicateNode,
                "an unknown node" => Class::UnknownNode,
                "two spills renumbered" => Class::SpillNumber,
                "an offset missing" => Class::MissingOffset,
                _ => continue,
            };
            assert_eq!(
                check(&case, &plan).map_err(|violation| violation.class),
                Err(only),
                "{name}"
            );
        }
    }
}

/// Node, buffer and position point at what is wrong.
#[test]
fn violations_say_where() {
    for case in cases(5, 20) {
        let nodes = case.input.nodes.len() as u32;
        let (buffer, _) = case.plan.spills[0];
        let out = case
            .plan
            .order
            .iter()
            .position(|&node| node == nodes)
            .unwrap();

        let mut plan = case.plan.clone();
        plan.order.remove(out);
        let violation = check(&case, &plan).unwrap_err();
        assert_eq!(
            (violation.node, violation.buffer),
            (Some(nodes), Some(buffer))
        );

        let mut plan = case.plan.clone();
        plan.order.push(plan.order[out]);
        let violation = check(&case, &plan).unwrap_err();
        assert_eq!(violation.node, Some(nodes));
        assert_eq!(violation.position, Some(plan.order.len() as u32 - 1));
        assert!(
            violation.message().contains(&format!("position {out}")),
            "{violation}"
        );

        let mut plan = case.plan.clone();
        plan.spills[0].1 = u64::MAX - 1;
        let violation = check(&case, &plan).unwrap_err();
        let expected = (Class::OffsetRange, Some(nodes + 1), Some(buffer));
        assert_eq!(
            (violation.class, violation.node, violation.buffer),
            expected
        );
        assert!(
            violation.to_string().starts_with("offset_range: "),
            "{violation}"
        );
    }
}

type Break = fn(&mut GraphInput);

/// A graph that is none is told as such, whatever the plan is.
#[test]
fn broken_graphs_are_refused() {
    let base = chain(3, 2, |_| 1, 4);
    let breaks: [(&str, Break); 8] = [
        ("an edge from nowhere", |input| input.edges.push((999, 0))),
        ("an edge to nowhere", |input| input.edges.push((0, 999))),
        ("a use by nobody", |input| input.uses[0].0 = 999),
        ("a use of nothing", |input| input.uses[0].1.buffer = 999),
        ("a use by an ALLOC", |input| input.uses[0].0 = 0),
        ("a memory that is not there", |input| {
            input.buffers[0].memory = 1
        }),
        ("a buffer without nodes", |input| {
            input.buffers.push(input.buffers[0])
        }),
        ("a second ALLOC", |input| input.nodes.push(input.nodes[0])),
    ];
    let order: Vec<u32> = (0..base.nodes.len() as u32).collect();
    let offsets = [0, 1, 2, 3, 2];
    check_plan(&base, None, &order, &offsets, &[]).expect("valid as it is");
    for (name, change) in breaks {
        let mut input = base.clone();
        change(&mut input);
        let violation = check_plan(&input, None, &order, &offsets, &[]).unwrap_err();
        assert_eq!(violation.class, Class::Graph, "{name}: {violation}");
    }
    let mut input = base;
    input.nodes[3].cycles = u64::MAX;
    let violation = check_plan(&input, None, &order, &offsets, &[]).unwrap_err();
    assert_eq!(violation.class, Class::Graph, "{violation}");
}

/// Without an order to keep, another one is as good.
#[test]
fn an_order_is_kept_only_where_one_is_given() {
    for case in cases(6, 20) {
        let mut other = case.given.clone();
        other.reverse();
        let Arrays {
            order,
            offsets,
            spills,
        } = &case.plan;
        check_plan(&case.input, None, order, offsets, spills).expect("valid");
        let violation = check_plan(&case.input, Some(&other), order, offsets, spills).unwrap_err();
        assert_eq!(violation.class, Class::OrderChanged);
        for wrong in [&case.given[1..], &[&case.given[..], &[0]].concat()] {
            let violation =
                check_plan(&case.input, Some(wrong), order, offsets, spills).unwrap_err();
            assert_eq!(violation.class, Class::OrderChanged);
        }
    }
}

/// Half a million nodes take seconds even without optimisation, and no deep stack.
#[test]
fn long_plans_are_checked_in_near_linear_time() {
    let input = chain(150_000, 64, |buffer| u64::from(buffer % 7), 40);
    let check = move || {
        let graph = Graph::new(&input).expect("valid");
        let order: Vec<u32> = (0..graph.len() as u32).collect();
        let plan = plan_spills(&graph, &order, &Options::default(), &Control::default())
            .expect("there is a plan");
        assert!(plan.spills.len() > 50_000, "{}", plan.spills.len());
        let start = Instant::now();
        assert_valid(&input, Some(&order), &plan);
        start.elapsed()
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check);
    let time = thread.expect("a thread").join().expect("no overflow");
    println!("checked in {time:?}");
    assert!(time < Duration::from_secs(120), "{time:?}");
}
