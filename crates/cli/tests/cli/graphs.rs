//! The graphs that come with luma, and those that it generates.

use std::fs;
use std::path::Path;

use super::{luma, root};

const KINDS: [&str; 3] = ["matmul", "attention", "conv"];

fn shipped(kind: &str) -> [String; 2] {
    ["Nodes", "Edges"].map(|what| format!("examples/graphs/{kind}_{what}.csv"))
}

#[test]
fn shipped_graphs_come_out_the_same() {
    for kind in KINDS {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shipped_{kind}"));
        let prefix = prefix.to_str().unwrap();
        let run = luma(&["generate", kind, "--out", prefix]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        for (what, path) in ["Nodes", "Edges"].iter().zip(shipped(kind)) {
            let made = fs::read_to_string(format!("{prefix}_{what}.csv")).unwrap();
            let kept = fs::read_to_string(root().join(&path)).unwrap();
            assert!(
                made == kept,
                "{path} is not what luma generate {kind} makes"
            );
        }
    }
}

#[test]
fn a_document_is_the_same_graph_as_the_tables() {
    for kind in KINDS {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("same_{kind}.json"));
        let path = path.to_str().unwrap();
        assert_eq!(luma(&["generate", kind, "--out", path]).code, 0);
        let [nodes, edges] = shipped(kind);
        let plan = |files: &[&str]| {
            let mut document = luma(&[&["plan", "--json"], files].concat()).json();
            document["graph"].take();
            document["planning"]["seconds"].take();
            document
        };
        assert_eq!(plan(&[path]), plan(&[&nodes, &edges]), "{kind}");
        let printed = luma(&["generate", kind]).stdout;
        assert_eq!(printed, fs::read_to_string(path).unwrap());
    }
}

#[test]
fn sizes_follow_the_options() {
    let count = |arguments: &[&str], op: &str| {
        let run = luma(&[&["generate"], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout.matches(&format!("\"Op\":\"{op}\"")).count()
    };
    assert_eq!(count(&["matmul", "--tiles", "2x3x4"], "MATMUL"), 24);
    assert_eq!(count(&["matmul", "--tiles", "2x3x4"], "COPY_IN"), 8 + 12);
    let attention = ["attention", "--heads", "2", "--queries", "3", "--keys", "4"];
    assert_eq!(count(&attention, "MATMUL"), 2 * 2 * 3 * 4);
    let conv = ["conv", "--levels", "1", "--depth", "3", "--channels", "2"];
    assert_eq!(count(&conv, "CONV"), 3 * 3 * 2 * 2);
    assert_eq!(count(&conv, "COPY_OUT"), 2);
}
