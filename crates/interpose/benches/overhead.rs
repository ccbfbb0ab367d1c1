//! What the interposer costs: `cargo bench -p luma-interpose [-- WORD...]`; with words, only rows whose name holds
//! one of them.
//!
//! - A pair of `cuMemAlloc_v2` and `cuMemFree_v2` through the hooks, beside `luma_alloc` and `luma_free` of the
//!   same library, over a driver that costs next to nothing (`benches/streams/driver.c`). Each is timed in
//!   processes of its own, in turn, since a pool that serves both knows more streams.
//! - How many calls of the driver a pair takes, on the driver double.
//! - The processor time of programs that use no CUDA, with and without the library.
//!
//! All figures are medians of processes that run in turn, so that their differences hold on a busy machine.

#[allow(dead_code)]
#[path = "../../../tests/support/tools.rs"]
mod tools;

use std::env;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Names the child's job, and with it tells a child from the bench.
const JOB: &str = "INTERPOSE_BENCH";
const PROCESSES: usize = 7;
const ROUNDS: usize = 301;
const PAIRS: u32 = 2_000;
const LIVE_BLOCKS: usize = 1000;
const STARTS: usize = 101;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const ROWS: &[(&str, Workload)] = &[
    ("512 B", Workload::Pair(512)),
    ("4 KiB", Workload::Pair(4 * KIB)),
    ("64 KiB", Workload::Pair(64 * KIB)),
    ("1 MiB", Workload::Pair(MIB)),
    ("16 MiB", Workload::Pair(16 * MIB)),
    (
        "1,000 live blocks of 512 B to 64 KiB",
        Workload::Live(64 * KIB),
    ),
    ("1,000 live blocks of 512 B to 1 MiB", Workload::Live(MIB)),
];

#[derive(Clone, Copy)]
enum Workload {
    /// A block of this size is allocated and freed.
    Pair(usize),
    /// Of many live blocks of up to this size one is freed, and another allocated.
    Live(usize),
}

/// The address of a function of luma's.
fn of_luma(name: &CStr) -> *mut c_void {
    find(libc::RTLD_DEFAULT, name)
}

/// The address of a function of the driver's, or of the hook that stands for it.
fn of_driver(name: &CStr) -> *mut c_void {
    // SAFETY: a string; the driver's initialisers run as in any program.
    find(
        unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) },
        name,
    )
}

fn find(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle that is never closed, and a string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "there is no {name:?}");
    found
}

/// The two ways to the pool.
#[derive(Clone, Copy)]
enum Way {
    Luma {
        alloc: unsafe extern "C" fn(usize) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void) -> c_int,
    },
    Driver {
        alloc: unsafe extern "C" fn(*mut u64, usize) -> c_int,
        free: unsafe extern "C" fn(u64) -> c_int,
    },
}

impl Way {
    fn of(name: &str) -> Self {
        // SAFETY: functions of these types.
        unsafe {
            match name {
                "luma" => Self::Luma {
                    alloc: transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut c_void>(
                        of_luma(c"luma_alloc"),
                    ),
                    free: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(
                        of_luma(c"luma_free"),
                    ),
                },
                _ => Self::Driver {
                    alloc: transmute::<*mut c_void, unsafe extern "C" fn(*mut u64, usize) -> c_int>(
                        of_driver(c"cuMemAlloc_v2"),
                    ),
                    free: transmute::<*mut c_void, unsafe extern "C" fn(u64) -> c_int>(of_driver(
                        c"cuMemFree_v2",
                    )),
                },
            }
        }
    }

    #[inline]
    fn alloc(self, bytes: usize) -> u64 {
        let mut block = 0;
        // SAFETY: the out-parameter is valid for writing.
        let code = unsafe {
            match self {
                Self::Luma { alloc, .. } => {
                    block = alloc(bytes) as u64;
                    0
                }
                Self::Driver { alloc, .. } => alloc(&mut block, bytes),
            }
        };
        assert!(code == 0 && block != 0);
        block
    }

    #[inline]
    fn free(self, block: u64) {
        // SAFETY: a live block.
        let code = unsafe {
            match self {
                Self::Luma { free, .. } => free(block as *mut c_void),
                Self::Driver { free, .. } => free(block),
            }
        };
        assert_eq!(code, 0);
    }
}

/// xorshift64* (Vigna 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A workload under way.
struct Running {
    way: Way,
    workload: Workload,
    live: Vec<u64>,
    /// Which block goes and how large its successor is: found before the clock runs.
    steps: Vec<(usize, usize)>,
}

impl Running {
    fn new(way: Way, workload: Workload) -> Self {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut size = |most: usize| (1 + random.below(most / 512)) * 512;
        let (live, steps) = match workload {
            Workload::Pair(_) => (Vec::new(), Vec::new()),
            Workload::Live(most) => {
                let live = (0..LIVE_BLOCKS).map(|_| way.alloc(size(most))).collect();
                let sizes: Vec<usize> = (0..PAIRS).map(|_| size(most)).collect();
                let steps = sizes
                    .into_iter()
                    .map(|bytes| (random.below(LIVE_BLOCKS), bytes))
                    .collect();
                (live, steps)
            }
        };
        Self {
            way,
            workload,
            live,
            steps,
        }
    }

    fn round(&mut self) {
        match self.workload {
            Workload::Pair(bytes) => {
                for _ in 0..PAIRS {
                    self.way.free(self.way.alloc(bytes));
                }
            }
            Workload::Live(_) => {
                for &(at, bytes) in &self.steps {
                    self.way.free(self.live[at]);
                    self.live[at] = self.way.alloc(bytes);
                }
            }
        }
    }

    fn end(self) {
        self.live.into_iter().for_each(|block| self.way.free(block));
    }
}

/// Makes the first device's primary context current.
fn begin() {
    // SAFETY: the driver's functions of these types; out-parameters are valid for writing.
    unsafe {
        let init: unsafe extern "C" fn(c_uint) -> c_int = transmute(of_driver(c"cuInit"));
        let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int =
            transmute(of_driver(c"cuDevicePrimaryCtxRetain"));
        let set: unsafe extern "C" fn(*mut c_void) -> c_int =
            transmute(of_driver(c"cuCtxSetCurrent"));
        let mut context = std::ptr::null_mut();
        assert_eq!([init(0), retain(&mut context, 0), set(context)], [0; 3]);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The rows to do, by the words that the bench was started with.
fn rows() -> impl Iterator<Item = (&'static str, Workload)> {
    let words = env::args().skip(1).filter(|word| !word.starts_with('-'));
    let words: Vec<String> = words.collect();
    ROWS.iter()
        .copied()
        .filter(move |(name, _)| words.is_empty() || words.iter().any(|word| name.contains(word)))
}

/// Times every row, and prints ns for a pair, a line each.
fn time_rows(way: Way) {
    for (_, workload) in rows() {
        let mut running = Running::new(way, workload);
        running.round();
        let times = (0..ROUNDS).map(|_| {
            let begun = Instant::now();
            running.round();
            begun.elapsed().as_nanos() as f64 / f64::from(PAIRS)
        });
        println!("{}", median(times.collect()));
        running.end();
    }
}

/// Counts the driver's calls, and prints how many there are for a pair, a line for each row.
fn count_rows(way: Way) {
    // SAFETY: a function of this type.
    let calls = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> u64>(of_driver(
            c"fakecuda_calls",
        ))
    };
    // SAFETY: strings.
    let count = |name: &CStr| unsafe { calls(name.as_ptr()) };
    for (_, workload) in rows() {
        let mut running = Running::new(way, workload);
        running.round();
        let (all, records) = (count(c"*"), count(c"cuCtxRecordEvent"));
        running.round();
        println!(
            "{}\n{}",
            (count(c"*") - all) as f64 / f64::from(PAIRS),
            (count(c"cuCtxRecordEvent") - records) as f64 / f64::from(PAIRS)
        );
        running.end();
    }
}

fn child(job: &str) {
    begin();
    match job.split_once(' ') {
        Some(("time", way)) => time_rows(Way::of(way)),
        Some(("count", way)) => count_rows(Way::of(way)),
        _ => panic!("no job {job}"),
    }
}

/// The driver that costs next to nothing, in a folder of its own.
fn idle_driver() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("idle-driver");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(folder.join("libcuda.so.1"))
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../benches/streams/driver.c"
        ))
        .status()
        .expect("cc can be run");
    assert!(status.success(), "cc makes the driver");
    folder
}

/// Runs this program under the library, with a driver. Gives the numbers that it prints.
fn run(job: &str, library: &Path, driver: &Path) -> Vec<f64> {
    let program = env::current_exe().expect("a program knows its path");
    let mut command = tools::command(program);
    command
        .args(env::args().skip(1))
        .env(JOB, job)
        .env("LD_PRELOAD", library)
        .env("LD_LIBRARY_PATH", driver);
    if job.ends_with("luma") {
        // Then its pools are those of a program that is linked with luma: they need not tell streams apart.
        command.env("LUMA_INTERPOSE", "off");
    }
    let text = tools::succeed(&mut command, tools::BUILD_TIME);
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

fn pairs(library: &Path) {
    let idle = idle_driver();
    let double = tools::built_packages(&["fakecuda"]).join("libfakecuda.so");
    let double = tools::folder_of_links("double", &[("libcuda.so.1", double)]);
    let runs: Vec<[Vec<f64>; 2]> = (0..PROCESSES)
        .map(|_| ["time luma", "time driver"].map(|job| run(job, library, &idle)))
        .collect();
    let counts = run("count driver", library, &double);
    println!(
        "| a pair of calls | luma_alloc and luma_free, ns | cuMemAlloc and cuMemFree, ns | more, ns | driver calls | events |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (at, (name, _)) in rows().enumerate() {
        let of = |way: usize| median(runs.iter().map(|run| run[way][at]).collect());
        let more = median(runs.iter().map(|run| run[1][at] - run[0][at]).collect());
        println!(
            "| {name} | {:.1} | {:.1} | {more:.1} | {:.3} | {:.4} |",
            of(0),
            of(1),
            counts[2 * at],
            counts[2 * at + 1]
        );
    }
}

/// ms of processor time that processes have taken which this one has waited for.
fn taken() -> f64 {
    // SAFETY: all zero is a value of it; the out-parameter is valid for writing.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    ms(usage.ru_utime) + ms(usage.ru_stime)
}

/// ms of processor time from the start of a program to its end.
fn start(program: &[&str], library: Option<&Path>) -> f64 {
    let mut command = Command::new(program[0]);
    command
        .args(&program[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    let before = taken();
    let status = command.status().expect("the program can be started");
    assert!(status.success(), "{program:?}");
    taken() - before
}

fn starts(library: &Path) {
    println!("\n| processor time of | alone, ms | under the library, ms | more, ms |");
    println!("| --- | --- | --- | --- |");
    for program in [
        &["ls", "/"] as &[&str],
        &["bash", "-c", ":"],
        &["python3", "-c", "pass"],
    ] {
        if !tools::installed(program[0]) {
            println!("| `{}` | not installed | | |", program.join(" "));
            continue;
        }
        let times: Vec<[f64; 2]> = (0..STARTS)
            .map(|_| [None, Some(library)].map(|library| start(program, library)))
            .collect();
        let of = |way: usize| median(times.iter().map(|time| time[way]).collect());
        let more = median(times.iter().map(|[alone, under]| under - alone).collect());
        println!(
            "| `{}` | {:.2} | {:.2} | {more:.2} |",
            program.join(" "),
            of(0),
            of(1)
        );
    }
}

fn main() {
    if let Ok(job) = env::var(JOB) {
        child(&job);
        return;
    }
    let library = tools::built_packages(&["luma-interpose"]).join("libluma_interpose.so");
    pairs(&library);
    starts(&library);
}
