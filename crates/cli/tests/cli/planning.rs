//! `luma plan`, `luma place` and `luma check`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{file, luma, root};

const CONV: [&str; 2] = [
    "examples/graphs/conv_Nodes.csv",
    "examples/graphs/conv_Edges.csv",
];
const HEADER: &str = "Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs\n";

/// A path of this test's own.
fn prefix(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.into_os_string().into_string().unwrap()
}

/// Two buffers that do not fit together in 100 bytes; the first is used again.
fn small(name: &str) -> [String; 2] {
    let nodes = "0,ALLOC,0,60,M,,,\n1,COPY_IN,,,,MTE2,9,0\n2,ALLOC,1,60,M,,,\n3,MUL,,,,V,5,1\n\
                 4,FREE,1,,,,,\n5,ADD,,,,V,5,\"0\"\n6,FREE,0,,,,,\n";
    let edges = "StartNodeId,EndNodeId\n0,1\n1,5\n2,3\n3,4\n5,6\n1,2\n4,5\n";
    [
        file(&format!("{name}_n.csv"), &format!("{HEADER}{nodes}")),
        file(&format!("{name}_e.csv"), edges),
    ]
}

#[test]
fn a_plan_is_written_and_checks() {
    for level in ["heuristic", "exact", "search"] {
        let out = prefix(&format!("conv_{level}"));
        let [nodes, edges] = CONV;
        let mut arguments = vec!["plan", nodes, edges, "--level", level, "--out", &out];
        arguments.extend(["--time-limit", "300ms", "--json"]);
        let run = luma(&arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let plan = run.json();
        assert_eq!(plan["files"].as_array().unwrap().len(), 3);
        let extra = plan["extra_bytes"].as_u64().unwrap();
        let bound = plan["planning"]["lower_bound_bytes"].as_u64().unwrap();
        assert!(bound <= extra, "{plan}");
        assert_eq!(plan["planning"]["order_kept"], level != "search");
        for memory in plan["memories"].as_array().unwrap() {
            let bytes = |name: &str| memory[name].as_u64().unwrap();
            assert!(bytes("peak_bytes") <= bytes("capacity_bytes"), "{memory}");
        }

        let run = luma(&["check", nodes, edges, &out, "--json"]);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        let checked = run.json();
        assert_eq!(checked["valid"], true);
        for same in ["extra_bytes", "spills", "makespan_cycles", "memories"] {
            assert_eq!(checked[same], plan[same], "{level} {same}");
        }
        let run = luma(&["check", nodes, edges, &out]);
        assert!(run.stdout.starts_with("valid\n"), "{}", run.stdout);
        check_with_python(nodes, edges, &out);
    }
}

/// The independent checker, where it is.
fn check_with_python(nodes: &str, edges: &str, prefix: &str) {
    let tool = root().join("../shared/tools/check_plan.py");
    if !tool.is_file() {
        eprintln!("skipped: {} is not there", tool.display());
        return;
    }
    let output = Command::new("python3")
        .arg(tool)
        .args(["check", nodes, edges, prefix])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_order_of_a_file_is_kept() {
    let [nodes, edges] = small("kept");
    let order = file("kept_order.txt", "0\n1\n2\n3\n4\n5\n6\n");
    let out = prefix("kept");
    let memory = ["--memory", "M=100"];
    let plan = ["plan", &nodes, &edges, "--order", &order, "--out", &out];
    let run = luma(&[&plan[..], &memory].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let read = |what: &str| fs::read_to_string(format!("{out}_{what}.txt")).unwrap();
    assert_eq!(read("schedule"), "0\n1\n7\n2\n3\n4\n8\n5\n6\n");
    assert_eq!(read("memory"), "0:0\n1:0\n");
    assert_eq!(read("spill"), "0:0\n");
    let check = ["check", &nodes, &edges, &out, "--order", &order];
    assert_eq!(luma(&[&check[..], &memory].concat()).code, 0);

    // Moved, it is no longer valid, and the class says why.
    let cases = [
        ("schedule", "0\n1\n2\n7\n3\n4\n8\n5\n6\n", "over_capacity"),
        (
            "schedule",
            "0\n1\n7\n2\n3\n4\n5\n8\n6\n",
            "use_while_spilled",
        ),
        ("schedule", "0\n1\n7\n2\n3\n4\n8\n5\n", "missing_node"),
        ("memory", "0:41\n1:0\n", "offset_range"),
        ("memory", "0:0\n", "missing_offset"),
        ("spill", "0:50\n", "offset_range"),
    ];
    for (what, text, class) in cases {
        let kept = read(what);
        fs::write(format!("{out}_{what}.txt"), text).unwrap();
        let run = luma(&[&check[..], &memory, &["--json"]].concat());
        assert_eq!(
            (run.code, &run.json()["class"]),
            (1, &class.into()),
            "{text}"
        );
        let run = luma(&[&check[..], &memory].concat());
        assert!(run.stdout.starts_with("not valid: "), "{}", run.stdout);
        fs::write(format!("{out}_{what}.txt"), kept).unwrap();
    }
}

#[test]
fn what_cannot_be_planned_is_told() {
    let [nodes, edges] = small("wrong");
    let graphs = std::cell::Cell::new(0);
    let graph = |body: &str| {
        graphs.set(graphs.get() + 1);
        let name = format!("wrong_{}.csv", graphs.get());
        file(&name, &format!("{HEADER}{body}"))
    };
    let none = file("wrong_no_edges.csv", "StartNodeId,EndNodeId\n");
    let order = file("wrong_order.txt", "0\n1\n5\n");
    let word = file("wrong_word.txt", "0\none\n");
    let document = file("wrong.json", "{\"Nodes\": [{\"Id\": 0}]}");
    let cases: &[(i32, &[&str], &str)] = &[
        (
            2,
            &[&nodes, &edges],
            "wrong_n.csv:2: memory M is not known (L1, UB, L0A, L0B, L0C): give its size with --memory M=SIZE",
        ),
        (
            1,
            &[&nodes, &edges, "--memory", "M=50"],
            "larger than its memory: node 0, buffer 0, memory M, needed 60, available 50",
        ),
        (
            2,
            &[&nodes, &edges, "--memory", "M"],
            "not a name and a size, such as L1=4096",
        ),
        (
            2,
            &[&nodes, &edges, "--memory", "M=100", "--order", &order],
            "wrong_order.txt: the order is incomplete",
        ),
        (
            2,
            &[&nodes, &edges, "--memory", "M=100", "--order", &word],
            "wrong_word.txt:2: not the number of a node: \"one\"",
        ),
        (
            2,
            &[&nodes, &edges, "--time-limit", "soon"],
            "not a time, such as 10s, 500ms or 2m",
        ),
        (
            2,
            &[&nodes, &nodes, "--memory", "M=100"],
            "no column StartNodeId",
        ),
        (
            2,
            &["no/such.csv", &edges],
            "luma: no/such.csv: No such file",
        ),
        (2, &[&document], "missing field `Op`"),
        (
            2,
            &[&graph("0,ALLOC,0,1,L1,,,\n0,FREE,0,,,,,\n"), &none],
            ".csv:3: node 0 is there twice",
        ),
        (
            2,
            &[&graph("7,ALLOC,0,1,L1,,,\n"), &none],
            ".csv:2: node 7: ids are 0 to 0, each once, for 1 nodes",
        ),
        (
            2,
            &[&graph("0,ALLOC,0,,L1,,,\n"), &none],
            ".csv:2: ALLOC without Size",
        ),
        (
            2,
            &[&graph("0,ADD,,,,,,\"0,x\"\n"), &none],
            ".csv:2: Bufs is not a list of buffers",
        ),
        (
            2,
            &[&graph("0,ALLOC,0,1,L1,,,\n1,ADD,,,,,,5\n"), &none],
            ".csv:3: buffer 5: ids of buffers are 0, 1, 2",
        ),
        (
            2,
            &[&graph("0,ALLOC,0,12345678,L1,,,\n"), &none],
            "the buffer has no FREE",
        ),
    ];
    for (code, arguments, told) in cases {
        let run = luma(&[&["plan"], *arguments].concat());
        assert_eq!(run.code, *code, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn known_accesses_change_what_a_spill_moves() {
    // A write makes the copy outside stale, so that the spill after it moves the buffer both ways.
    let nodes = |access: &str| {
        format!(
            "Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs,Access\n0,ALLOC,0,60,M,,,,\n\
             1,COPY_IN,,,,MTE2,9,0,w\n2,MUL,,,,V,5,0,{access}\n3,ALLOC,1,60,M,,,,\n\
             4,MUL,,,,V,5,1,w\n5,FREE,1,,,,,,\n6,ADD,,,,V,5,0,r\n7,FREE,0,,,,,,\n"
        )
    };
    let edges = file(
        "access_e.csv",
        "StartNodeId,EndNodeId\n0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n",
    );
    for (access, bytes) in [("r", 60), ("rw", 120), ("w", 120), ("", 60)] {
        let nodes = file(&format!("access_{access}.csv"), &nodes(access));
        let run = luma(&["plan", &nodes, &edges, "--json", "--memory", "M=100"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.json()["extra_bytes"], bytes, "{access:?}");
    }
}

#[test]
fn one_buffer_at_a_time_if_asked() {
    let [nodes, edges] =
        ["matmul_Nodes", "matmul_Edges"].map(|name| format!("examples/graphs/{name}.csv"));
    let run = luma(&["plan", &nodes, &edges, "--l0-single", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for memory in run.json()["memories"].as_array().unwrap() {
        let is_l0 = memory["name"].as_str().unwrap().starts_with("L0");
        assert_eq!(memory["single"], is_l0, "{memory}");
    }
}

#[test]
fn pictures_are_drawn() {
    let [nodes, edges] = CONV;
    let path = prefix("conv.svg");
    let run = luma(&["plan", nodes, edges, "--svg", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    for word in [
        "SPILL_OUT",
        "SPILL_IN",
        "L1: at most",
        "L0B: at most",
        "<title>buffer 7: ",
    ] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn lifetimes_are_placed_and_check() {
    let lifetimes = "examples/graphs/lifetimes.csv";
    let out = prefix("placed.csv");
    let svg = prefix("placed.svg");
    let run = luma(&["place", lifetimes, "--json", "--out", &out, "--svg", &svg]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let placed = run.json();
    assert_eq!(placed["height_bytes"], placed["lower_bound_bytes"]);
    assert_eq!(placed["proved"], true);
    assert!(fs::read_to_string(&svg).unwrap().contains("<title>row 0: "));
    let height = placed["height_bytes"].as_u64().unwrap();

    let run = luma(&["check", &out, "--capacity", &height.to_string()]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let below = (height - 1).to_string();
    let run = luma(&["check", &out, "--capacity", &below]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.contains(&format!("ends beyond {below}")),
        "{}",
        run.stdout
    );
    let run = luma(&["place", lifetimes, "--capacity", &below]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("no placement within the capacity"),
        "{}",
        run.stderr
    );

    let twice = file(
        "twice.csv",
        "id,lower,upper,size,offset\na,0,4,10,0\nb,3,5,10,9\n",
    );
    let run = luma(&["check", &twice]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (
            1,
            "not valid: a (10 bytes at 0, live 0 to 4) overlaps b (10 bytes at 9, live 3 to 5)\n"
        )
    );
    let backward = file("backward.csv", "id,lower,upper,size\na,4,3,10\n");
    let run = luma(&["place", &backward]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("backward.csv:2: lower is above upper"),
        "{}",
        run.stderr
    );
}
