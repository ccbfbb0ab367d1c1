//! What the spill planner and the placer reach, and how long they take.
//!
//! `cargo bench --bench planning [-- WORD...]` prints one table for graphs and one for placements;
//! with words, only rows whose name holds one of them. The graphs of `examples/graphs` are always
//! there; those of `../shared/data/kernels` and the lifetimes of `../shared/data/lifetimes` only where
//! they lie beside the project. Every plan passes the checker before its row is printed. Times of
//! `heuristic` and `exact` and of placements are CPU time of one thread, the least of three; a search
//! runs for the time that its row says.

use luma::plan::check::check_plan;
use luma::plan::place::{Lifetime, peak_load, place};
use luma::plan::{
    Control, Graph, GraphInput, Level, Options, Plan, Stopped, greedy_order, plan_spills,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[allow(dead_code)]
#[path = "../tests/support/graphs.rs"]
mod graphs;
#[allow(dead_code)]
#[path = "../tests/support/kernels.rs"]
mod kernels;
#[allow(dead_code)]
#[path = "../tests/support/shared.rs"]
mod shared;

/// Kernels, how long to search, and the best published figure.
const CASES: [(&str, u64, &str); 5] = [
    ("FlashAttention_Case0", 5, "3,584"),
    ("FlashAttention_Case1", 20, "32,512"),
    ("Matmul_Case0", 5, "28,800"),
    ("Matmul_Case1", 30, "430,208"),
    ("Conv_Case0", 10, "66,828"),
];
const OWN: [&str; 3] = ["matmul", "attention", "conv"];
const ROUNDS: usize = 3;

fn main() {
    // Cargo passes options of its own.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let wanted =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));

    println!(
        "| graph | nodes | best published | heuristic | time | exact | proved | time | search | within |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, seconds, published) in CASES {
        if wanted(name) {
            if let Some(input) = kernels::load(name) {
                row(name, &input, seconds, published);
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/graphs");
    for name in OWN {
        if wanted(name) {
            let file = |what: &str| folder.join(format!("{name}_{what}.csv"));
            row(name, &kernels::read(&file("Nodes"), &file("Edges")), 2, "");
        }
    }
    if wanted("chain") {
        chain();
    }

    println!("\n| lifetimes | buffers | most live bytes | height | over | proved | time |");
    println!("|---|---|---|---|---|---|---|");
    placements(&wanted);
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is there to be written.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "there is a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The result of the last round, and the least time of all.
fn timed<T>(rounds: usize, mut run: impl FnMut() -> T) -> (T, Duration) {
    let mut least = Duration::MAX;
    let mut result = None;
    for _ in 0..rounds {
        let start = cpu_time();
        result = Some(run());
        least = least.min(cpu_time() - start);
    }
    (result.expect("at least one round"), least)
}

fn show(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 0.1 => format!("{:.1} ms", seconds * 1e3),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

/// A number with commas.
fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn checked(input: &GraphInput, order: Option<&[u32]>, plan: &Plan) -> u64 {
    let spills: Vec<(u32, u64)> = plan
        .spills
        .iter()
        .map(|spill| (spill.buffer, spill.offset))
        .collect();
    let report = check_plan(input, order, &plan.order, &plan.offsets, &spills);
    let report = report.unwrap_or_else(|violation| panic!("the plan is not valid: {violation}"));
    assert_eq!(report.extra_bytes, plan.extra_bytes);
    report.extra_bytes
}

/// Plans at a level, for at most so long.
fn planned(graph: &Graph, order: &[u32], level: Level, limit: Duration) -> Plan {
    let options = Options {
        level,
        reorder: level == Level::Search,
    };
    let control = Control {
        deadline: Some(Instant::now() + limit),
        threads: if level == Level::Search { 0 } else { 1 },
        ..Control::default()
    };
    plan_spills(graph, order, &options, &control).expect("the graph can be planned")
}

fn row(name: &str, input: &GraphInput, seconds: u64, published: &str) {
    let graph = Graph::new(input).expect("the graph is valid");
    let order = greedy_order(&graph).expect("a valid graph has an order");
    let long = Duration::from_secs(60);
    let (heuristic, quick) = timed(ROUNDS, || planned(&graph, &order, Level::Heuristic, long));
    let (exact, slow) = timed(ROUNDS, || planned(&graph, &order, Level::Exact, long));
    let start = Instant::now();
    let search = planned(&graph, &order, Level::Search, Duration::from_secs(seconds));
    let searched = start.elapsed();
    println!(
        "| {name} | {} | {published} | {} | {} | {} | {} | {} | {} | {}{} |",
        commas(graph.len() as u64),
        commas(checked(input, Some(&order), &heuristic)),
        show(quick),
        commas(checked(input, Some(&order), &exact)),
        match exact.proved {
            true => "yes".to_string(),
            false => format!("bound {}", commas(exact.lower_bound)),
        },
        show(slow),
        commas(checked(input, None, &search)),
        show(searched),
        if search.stopped == Stopped::Finished {
            " (finished)"
        } else {
            ""
        },
    );
}

/// A million nodes at the heuristic level.
fn chain() {
    let input = graphs::chain(333_000, 400, |buffer| u64::from(buffer % 7 + 1) * 16, 8192);
    let ((graph, order), ready) = timed(1, || {
        let graph = Graph::new(&input).expect("the graph is valid");
        let order = greedy_order(&graph).expect("a valid graph has an order");
        (graph, order)
    });
    let (plan, time) = timed(1, || {
        planned(&graph, &order, Level::Heuristic, Duration::from_secs(60))
    });
    println!(
        "| chain | {} | | {} | {} (+ {} to read and order) | | | | | |",
        commas(graph.len() as u64),
        commas(checked(&input, Some(&order), &plan)),
        show(time),
        show(ready),
    );
}

fn placements(wanted: &impl Fn(&str) -> bool) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/graphs/lifetimes.csv");
    let mut total = Duration::ZERO;
    if wanted("lifetimes") {
        total += placed("lifetimes", &read(&own), None);
    }
    let Some(folder) = shared::data("lifetimes") else {
        return;
    };
    for set in [
        "minimalloc",
        "idealloc",
        "onnx_light",
        "tflm",
        "xla",
        "published",
    ] {
        let mut sum = Duration::ZERO;
        for path in tables(&folder.join(set)) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{set}/{stem}");
            if !wanted(&name) {
                continue;
            }
            // The names of MiniMalloc's cases end with their capacity.
            let capacity = stem
                .rsplit_once('.')
                .and_then(|(_, part)| part.parse().ok());
            sum += placed(&name, &read(&path), capacity);
        }
        if sum > Duration::ZERO {
            println!("| {set} in sum | | | | | | {} |", show(sum));
        }
        total += sum;
    }
    if total > Duration::ZERO {
        println!("| in sum | | | | | | {} |", show(total));
    }
}

/// The tables of lifetimes in a folder.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".csv") && !name.ends_with(".uses.csv") && !name.ends_with(".nodes.csv")
        })
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<Lifetime> {
    let text = fs::read_to_string(path).expect("the lifetimes can be read");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header = lines.next().expect("a header");
    assert!(header.starts_with("id,lower,upper,size"), "{header}");
    lines
        .map(|line| {
            let mut fields = line.split(',').skip(1);
            let mut number = || {
                let field = fields.next().expect("a field");
                field.trim().parse().expect("a number")
            };
            Lifetime {
                lower: number(),
                upper: number(),
                size: number(),
            }
        })
        .collect()
}

fn placed(name: &str, lifetimes: &[Lifetime], capacity: Option<u64>) -> Duration {
    // With a capacity the first placement within it ends the search, whatever the limit.
    let limit = Duration::from_secs(if capacity.is_some() { 20 } else { 2 });
    let (placement, time) = timed(1, || {
        let control = Control {
            deadline: Some(Instant::now() + limit),
            ..Control::default()
        };
        place(lifetimes, capacity, &control)
    });
    let count = commas(lifetimes.len() as u64);
    let peak = peak_load(lifetimes).expect("the sizes add up");
    match placement {
        Ok(placement) => println!(
            "| {name} | {count} | {} | {} | {:.2} % | {} | {} |",
            commas(peak),
            commas(placement.height),
            (placement.height as f64 / peak.max(1) as f64 - 1.0) * 100.0,
            if placement.proved { "yes" } else { "no" },
            show(time),
        ),
        Err(error) => println!(
            "| {name} | {count} | {} | none: {error} | | | {} |",
            commas(peak),
            show(time)
        ),
    }
    time
}
