//! The kernels of `../shared/data/kernels` as graphs, and the independent checker of their plans.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use luma::plan::{
    BufferInput, GraphInput, MTE2, MTE3, MemoryInput, NO_PIPE, NodeInput, NodeKind, Plan,
    SpillCost, Use,
};

/// The kernels with figures in the planner's table.
pub const CASES: [&str; 5] = [
    "FlashAttention_Case0",
    "FlashAttention_Case1",
    "Matmul_Case0",
    "Matmul_Case1",
    "Conv_Case0",
];

/// The memories that the kernels are for, with their capacities.
pub const MEMORIES: [(&str, u64); 5] = [
    ("L1", 4096),
    ("UB", 1024),
    ("L0A", 256),
    ("L0B", 256),
    ("L0C", 512),
];

/// A kernel's graph; `None`, and a line that says so, where the kernels are absent.
pub fn load(case: &str) -> Option<GraphInput> {
    let folder = super::shared::data("kernels")?;
    Some(read(
        &folder.join(format!("{case}_Nodes.csv")),
        &folder.join(format!("{case}_Edges.csv")),
    ))
}

/// A graph in two tables.
pub fn read(nodes: &Path, edges: &Path) -> GraphInput {
    let nodes = fs::read_to_string(nodes).expect("the nodes can be read");
    let edges = fs::read_to_string(edges).expect("the edges can be read");
    let mut pipes: Vec<String> = Vec::new();
    let mut pipe = |name: &str| match name {
        "" => NO_PIPE,
        "MTE2" => MTE2,
        "MTE3" => MTE3,
        name => {
            let known = pipes.iter().position(|pipe| pipe == name);
            let at = known.unwrap_or_else(|| {
                pipes.push(name.to_owned());
                pipes.len() - 1
            });
            10 + at as u32
        }
    };
    let mut input = GraphInput {
        memories: MEMORIES
            .map(|(name, capacity)| MemoryInput {
                name: name.to_owned(),
                capacity,
                single: false,
            })
            .to_vec(),
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    let mut buffers = Vec::new();
    for line in nodes.lines().skip(1) {
        // Id, Op, BufId, Size, Type, Pipe, Cycles, Bufs; the last one quoted if it has commas.
        let fields: Vec<&str> = line.splitn(8, ',').collect();
        let number = |at: usize| fields[at].parse::<u64>().ok();
        let node = input.nodes.len() as u32;
        assert_eq!(number(0), Some(u64::from(node)), "ids ascend from 0");
        let buffer = number(2).unwrap_or_default() as u32;
        let kind = match fields[1] {
            "ALLOC" => {
                let memory = MEMORIES.iter().position(|(name, _)| *name == fields[4]);
                let memory = memory.expect("a memory of the NPU") as u32;
                let size = number(3).expect("an ALLOC has a size");
                buffers.push((buffer, BufferInput { size, memory }));
                NodeKind::Alloc(buffer)
            }
            "FREE" => NodeKind::Free(buffer),
            _ => NodeKind::Operation,
        };
        for buffer in fields[7].trim_matches('"').split(',') {
            if let Ok(buffer) = buffer.trim().parse() {
                let usage = Use {
                    buffer,
                    reads: false,
                    writes: false,
                };
                input.uses.push((node, usage));
            }
        }
        input.nodes.push(NodeInput {
            kind,
            pipe: pipe(fields[5]),
            cycles: number(6).unwrap_or_default(),
            is_copy_in: fields[1] == "COPY_IN",
        });
    }
    buffers.sort_by_key(|(id, _)| *id);
    assert!(buffers.iter().zip(0..).all(|((id, _), at)| *id == at));
    input.buffers = buffers.into_iter().map(|(_, buffer)| buffer).collect();
    for line in edges.lines().skip(1) {
        let (from, to) = line.split_once(',').expect("two nodes");
        let node = |text: &str| text.trim().parse().expect("a node");
        input.edges.push((node(from), node(to)));
    }
    input
}

/// Has `../shared/tools/check_plan.py` check a plan of a kernel, against `order` if that had to be
/// kept: extra bytes, the peaks of [`MEMORIES`] and makespan must be the plan's too.
pub fn check_with_python(case: &str, order: Option<&[u32]>, plan: &Plan) {
    let Some(data) = super::shared::data("kernels") else {
        return;
    };
    let tool = data.join("../../tools/check_plan.py");
    let folder = scratch(case);
    let lines = |items: &mut dyn Iterator<Item = String>| {
        let mut text = String::new();
        for item in items {
            text += &item;
            text.push('\n');
        }
        text
    };
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("a temporary file can be written");
    };
    write(
        "plan_schedule.txt",
        lines(&mut plan.order.iter().map(u32::to_string)),
    );
    let offsets = plan.offsets.iter().enumerate();
    write(
        "plan_memory.txt",
        lines(&mut offsets.map(|(buffer, offset)| format!("{buffer}:{offset}"))),
    );
    let spills = plan.spills.iter();
    write(
        "plan_spill.txt",
        lines(&mut spills.map(|spill| format!("{}:{}", spill.buffer, spill.offset))),
    );
    let mut python = Command::new("python3");
    python
        .arg(tool)
        .arg("check")
        .arg(data.join(format!("{case}_Nodes.csv")))
        .arg(data.join(format!("{case}_Edges.csv")))
        .arg(folder.join("plan"));
    if let Some(order) = order {
        write("order.txt", lines(&mut order.iter().map(u32::to_string)));
        python.arg("--order").arg(folder.join("order.txt"));
    }
    let output = python.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let problems = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{case}: {said}{problems}");
    assert_eq!(number(&said, "'extra': "), plan.extra_bytes, "{said}");
    assert_eq!(number(&said, "'makespan': "), plan.makespan, "{said}");
    for ((name, _), peak) in MEMORIES.iter().zip(&plan.peaks) {
        if *peak > 0 {
            assert_eq!(number(&said, &format!("'{name}': ")), *peak, "{said}");
        }
    }
    fs::remove_dir_all(&folder).expect("a temporary folder can be removed");
}

/// A folder that is there and empty, of this call's own.
fn scratch(name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let name = format!("luma-plan-{}-{call}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}

/// The number after a label.
fn number(text: &str, label: &str) -> u64 {
    let at = text.find(label).expect("the label") + label.len();
    let digits = text[at..].split(|c: char| !c.is_ascii_digit()).next();
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}
