//! What streams cost: `cargo bench --bench streams`.
//!
//! The CUDA driver is a stand-in that does next to nothing (`driver.c`), so the times are luma's own work.
//! All rows are timed in turn, again and again, so that their ratios and differences hold on a busy machine.

use luma::ffi::{luma_alloc, luma_alloc_async, luma_free, luma_free_async};
use std::ffi::c_void;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

const CALLS: u32 = 100_000;
const ROUNDS: usize = 31;
const BYTES: usize = 4096;

type Stream = *mut c_void;
const ONE: Stream = 0x1000 as Stream;
const TWO: Stream = 0x2000 as Stream;

fn load_driver() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/streams/driver.c");
    let library: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "libcuda.so.1"]
        .iter()
        .collect();
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(&library)
        .arg(source)
        .status()
        .expect("cc can be run");
    assert!(status.success(), "cc makes the driver");
    // SAFETY: it has no initialisers.
    let library = unsafe { libloading::Library::new(&library) }.expect("the driver can be loaded");
    std::mem::forget(library);
}

/// ns for one call of `step`.
fn time(mut step: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..CALLS {
        step();
    }
    begun.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn plain_pair() {
    let block = luma_alloc(BYTES);
    luma_free(block);
}

fn pair_on(stream: Stream) {
    let block = luma_alloc_async(BYTES, stream);
    luma_free_async(block, stream);
}

/// What one stream frees, the other gets: each request finds its own lane empty.
fn cross() {
    for (from, to) in [(ONE, TWO), (TWO, ONE)] {
        let block = luma_alloc_async(BYTES, from);
        luma_free_async(block, from);
        let block = luma_alloc_async(BYTES, to);
        luma_free_async(block, to);
    }
}

/// Medians of several rows, timed in turn.
fn medians<const N: usize>(mut rows: [&mut dyn FnMut() -> f64; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (row, times) in rows.iter_mut().zip(&mut times) {
            times.push(row());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

fn child(what: &str) {
    load_driver();
    match what {
        "default" => {
            let [pair] = medians([&mut || time(plain_pair)]);
            println!("{pair}");
        }
        "one" => {
            let [pair] = medians([&mut || time(|| pair_on(ONE))]);
            println!("{pair}");
        }
        "two" => {
            pair_on(ONE);
            pair_on(TWO);
            let [plain, pair, reuse] = medians([
                &mut || time(plain_pair),
                &mut || time(|| pair_on(ONE)),
                // Four requests and four frees, of which the second request of each half is another
                // stream's.
                &mut || time(cross) / 4.0,
            ]);
            println!("{plain} {pair} {reuse}");
        }
        other => panic!("no bench {other}"),
    }
}

/// A process for each kind of pool, since a pool that has seen two streams remembers it.
fn run(what: &str) -> Vec<f64> {
    let program = std::env::current_exe().expect("a program knows its path");
    let output = Command::new(program)
        .env("LUMA_STREAM_BENCH", what)
        .output()
        .expect("it runs itself");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

fn main() {
    if let Ok(what) = std::env::var("LUMA_STREAM_BENCH") {
        child(&what);
        return;
    }
    // The middle of several processes: where the linker and the system put things matters too.
    let mut runs: Vec<[f64; 5]> = (0..7)
        .map(|_| {
            let (default, one, two) = (run("default"), run("one"), run("two"));
            [default[0], one[0], two[0], two[1], two[2]]
        })
        .collect();
    let middle = runs.len() / 2;
    let rows = [
        "luma_alloc and luma_free, one stream known",
        "luma_alloc_async and luma_free_async, one stream known",
        "luma_alloc and luma_free, several streams known",
        "luma_alloc_async and luma_free_async, several streams known",
        "the same, every second block from another stream",
    ];
    println!("| a pair of calls | ns |\n| --- | --- |");
    for (at, row) in rows.iter().enumerate() {
        runs.sort_by(|one, other| one[at].total_cmp(&other[at]));
        println!("| {row} | {:.1} |", runs[middle][at]);
    }
}
