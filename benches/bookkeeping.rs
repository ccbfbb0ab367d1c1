//! What one allocation or free costs on the host, lock included, with no memory behind it.
//!
//! `cargo bench --bench bookkeeping [-- WORD...]` prints one table for traces and one for random
//! blocks; with words, only rows whose name holds one of them. luma's pool runs over the simulated
//! backend. Beside it, in the same run and in turn: the `offset-allocator` crate behind the same
//! kind of mutex, which keeps no map of addresses and is thus a floor, and mimalloc where its
//! library is installed (Debian: libmimalloc2.0). Times are medians over rounds; the 99th
//! percentile is of single calls with the clock's own cost taken off. Ratios are medians of the
//! rounds' own ratios, so that a busy machine disturbs them less than the times.

use luma::backend::simulated::SimulatedBackend;
use luma::{Pool, PoolConfig, Preset};
use std::ffi::c_void;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Enough for every trace.
const CAPACITY: u64 = 1 << 40;
/// Where tables happen to lie in memory changes a time by a third, for every subject. So each is built
/// anew so many times, and timed for so many rounds each time.
const LAYOUTS: usize = 5;
const ROUNDS: usize = 5;

/// One step of a workload. Blocks are named by dense slots.
#[derive(Clone, Copy)]
enum Step {
    Alloc { slot: u32, bytes: u64 },
    Free { slot: u32 },
}

struct Workload {
    name: String,
    slots: usize,
    /// Makes the state in which the steps are timed, and which they leave again.
    before: Vec<Step>,
    steps: Vec<Step>,
}

/// An allocator under test. Blocks stay in its own table, so that no map is timed but its own.
trait Subject {
    fn alloc(&mut self, slot: u32, bytes: u64);
    fn free(&mut self, slot: u32);

    fn step(&mut self, step: Step) {
        match step {
            Step::Alloc { slot, bytes } => self.alloc(slot, bytes),
            Step::Free { slot } => self.free(slot),
        }
    }
}

struct Luma {
    pool: Pool,
    blocks: Vec<u64>,
}

impl Luma {
    fn new(preset: Preset, slots: usize) -> Self {
        let backend = Arc::new(SimulatedBackend::new(CAPACITY));
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        Self {
            pool: Pool::with_backend(backend, &config).expect("a simulated pool"),
            blocks: vec![0; slots],
        }
    }
}

impl Subject for Luma {
    #[inline]
    fn alloc(&mut self, slot: u32, bytes: u64) {
        let addr = self.pool.allocate(bytes, 0).expect("room");
        self.blocks[slot as usize] = addr.expect("a block");
    }
    #[inline]
    fn free(&mut self, slot: u32) {
        self.pool.free(self.blocks[slot as usize]).expect("live");
    }
}

struct Offset {
    allocator: Mutex<offset_allocator::Allocator<u32>>,
    blocks: Vec<Option<offset_allocator::Allocation<u32>>>,
}

impl Offset {
    fn new(slots: usize) -> Self {
        // Its sizes have 32 bits; in grains of 256 bytes that is a device of 1 TiB.
        let most = (slots as u32 * 2 + 1024).next_power_of_two();
        Self {
            allocator: Mutex::new(offset_allocator::Allocator::with_max_allocs(u32::MAX, most)),
            blocks: vec![None; slots],
        }
    }
}

impl Subject for Offset {
    #[inline]
    fn alloc(&mut self, slot: u32, bytes: u64) {
        let grains = bytes.div_ceil(256) as u32;
        let block = self
            .allocator
            .lock()
            .expect("not poisoned")
            .allocate(grains);
        self.blocks[slot as usize] = Some(block.expect("room"));
    }
    #[inline]
    fn free(&mut self, slot: u32) {
        let block = self.blocks[slot as usize].expect("live");
        self.allocator.lock().expect("not poisoned").free(block);
    }
}

struct Mimalloc {
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    blocks: Vec<*mut c_void>,
}

impl Mimalloc {
    fn new(slots: usize) -> Option<Self> {
        let names = ["libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so"];
        // SAFETY: mimalloc's initialiser may run at any time, and the two names have these types in
        // every version. The library is leaked, so the pointers stay valid.
        unsafe {
            let library = names
                .iter()
                .find_map(|name| libloading::Library::new(name).ok())?;
            let library = Box::leak(Box::new(library));
            Some(Self {
                malloc: *library.get(b"mi_malloc\0").ok()?,
                free: *library.get(b"mi_free\0").ok()?,
                blocks: vec![std::ptr::null_mut(); slots],
            })
        }
    }
}

impl Subject for Mimalloc {
    #[inline]
    fn alloc(&mut self, slot: u32, bytes: u64) {
        // SAFETY: malloc may be called with any size.
        self.blocks[slot as usize] = black_box(unsafe { (self.malloc)(bytes as usize) });
    }
    #[inline]
    fn free(&mut self, slot: u32) {
        // SAFETY: the block came from `malloc` and is freed once.
        unsafe { (self.free)(self.blocks[slot as usize]) };
    }
}

/// Nanoseconds a step over all steps.
fn mean(subject: &mut impl Subject, steps: &[Step]) -> f64 {
    let repeat = (100_000 / steps.len()).max(1);
    let start = Instant::now();
    for _ in 0..repeat {
        for &step in steps {
            subject.step(black_box(step));
        }
    }
    start.elapsed().as_nanos() as f64 / (repeat * steps.len()) as f64
}

/// The 99th percentile of single steps, in nanoseconds, less what the clock itself takes.
fn p99(subject: &mut impl Subject, steps: &[Step], clock: u64) -> f64 {
    let mut times: Vec<u64> = steps
        .iter()
        .map(|&step| {
            let start = Instant::now();
            subject.step(black_box(step));
            (start.elapsed().as_nanos() as u64).saturating_sub(clock)
        })
        .collect();
    times.sort_unstable();
    times[times.len() * 99 / 100] as f64
}

fn clock_cost() -> u64 {
    let mut times: Vec<u64> = (0..10_000)
        .map(|_| Instant::now().elapsed().as_nanos() as u64)
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians over the rounds, in nanoseconds; ratios are to the floor, round by round.
struct Measured {
    mean: f64,
    p99: f64,
    mean_ratio: f64,
    p99_ratio: f64,
}

/// The subject that others are compared with.
const FLOOR: usize = 2;

/// Times all subjects in turn, round after round, so that the machine's moods meet all alike.
fn measure<'a>(build: impl Fn() -> Vec<Runner<'a>>) -> Vec<Measured> {
    let mut means: Vec<Vec<f64>> = Vec::new();
    let mut tails: Vec<Vec<f64>> = Vec::new();
    for layout in 0..LAYOUTS {
        // Leaked, so that what follows lies elsewhere.
        Vec::leak(vec![0u8; 4096 + 832 * layout]);
        let mut subjects = build();
        means.resize_with(subjects.len(), Vec::new);
        tails.resize_with(subjects.len(), Vec::new);
        for _ in 0..ROUNDS {
            for (at, run) in subjects.iter_mut().enumerate() {
                // Untimed: the caches forget the subject before.
                run(false);
                means[at].push(run(false));
                tails[at].push(run(true));
            }
        }
    }
    let ratios = |values: &[Vec<f64>], at: usize| {
        let floor = &values[FLOOR];
        median(
            values[at]
                .iter()
                .zip(floor)
                .map(|(own, floor)| own / floor.max(1.0))
                .collect(),
        )
    };
    (0..means.len())
        .map(|at| Measured {
            mean: median(means[at].clone()),
            p99: median(tails[at].clone()),
            mean_ratio: ratios(&means, at),
            p99_ratio: ratios(&tails, at),
        })
        .collect()
}

/// Times one subject once: single calls (`true`) or all together.
type Runner<'a> = Box<dyn FnMut(bool) -> f64 + 'a>;

fn runner<'a, S: Subject + 'a>(mut subject: S, workload: &'a Workload, clock: u64) -> Runner<'a> {
    for &step in &workload.before {
        subject.step(step);
    }
    // Once untimed: tables and segments reach their size.
    for &step in &workload.steps {
        subject.step(step);
    }
    Box::new(move |tail| {
        if tail {
            p99(&mut subject, &workload.steps, clock)
        } else {
            mean(&mut subject, &workload.steps)
        }
    })
}

fn compare(workload: &Workload, clock: u64, with_mimalloc: bool) {
    let slots = workload.slots;
    let measured = measure(|| {
        let mut subjects = vec![
            runner(Luma::new(Preset::Default, slots), workload, clock),
            runner(Luma::new(Preset::Xla, slots), workload, clock),
            runner(Offset::new(slots), workload, clock),
        ];
        if let Some(mimalloc) = Mimalloc::new(slots).filter(|_| with_mimalloc) {
            subjects.push(runner(mimalloc, workload, clock));
        }
        subjects
    });
    let mimalloc = measured
        .get(3)
        .map_or_else(|| format!("{:>9}", "-"), |m| format!("{:>9.1}", m.mean));
    println!(
        "{:<34} {:>8} {:>8.1} {:>8.1} {:>8.1} {mimalloc} {:>7.2} {:>8.0} {:>8.0} {:>7.2}",
        workload.name,
        workload.steps.len(),
        measured[0].mean,
        measured[1].mean,
        measured[2].mean,
        measured[0].mean_ratio,
        measured[0].p99,
        measured[2].p99,
        measured[0].p99_ratio,
    );
}

/// A trace whose last act is to free what is left, so that it can be repeated.
fn from_trace(path: &Path) -> Option<Workload> {
    let file = std::io::BufReader::new(std::fs::File::open(path).ok()?);
    let mut slots = std::collections::HashMap::new();
    let mut free_slots = Vec::new();
    let mut count = 0;
    let mut steps = Vec::new();
    for event in luma::trace::Reader::new(file) {
        let event = event.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        match event.op {
            luma::trace::Op::Pre | luma::trace::Op::Alloc if event.size > 0 => {
                let slot = free_slots.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
                slots.insert(event.id, slot);
                steps.push(Step::Alloc {
                    slot,
                    bytes: event.size,
                });
            }
            luma::trace::Op::Free => {
                if let Some(slot) = slots.remove(&event.id) {
                    free_slots.push(slot);
                    steps.push(Step::Free { slot });
                }
            }
            _ => {}
        }
    }
    let mut left: Vec<_> = slots.into_iter().collect();
    left.sort_unstable();
    steps.extend(left.into_iter().map(|(_, slot)| Step::Free { slot }));
    Some(Workload {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        slots: count as usize,
        before: Vec::new(),
        steps,
    })
}

/// xorshift64* (Vigna 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// `live` blocks of 256 bytes to 64 KiB; each pair of steps frees one at random and allocates
/// another.
fn random_blocks(live: usize) -> Workload {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut size = || 1 + random.below(64 << 10);
    let before = (0..live as u32)
        .map(|slot| Step::Alloc {
            slot,
            bytes: size(),
        })
        .collect();
    let mut random = Random(42);
    let steps = (0..live.max(50_000))
        .flat_map(|_| {
            let slot = random.below(live as u64) as u32;
            let bytes = 1 + random.below(64 << 10);
            [Step::Free { slot }, Step::Alloc { slot, bytes }]
        })
        .collect();
    Workload {
        name: format!("random {live}"),
        slots: live,
        before,
        steps,
    }
}

/// Many free chunks of neighbouring sizes kept apart by live ones: a long walk for a bin that is a
/// list.
fn crowded_bin(chunks: u32) -> Workload {
    let mut before = Vec::new();
    let mut random = Random(7);
    for slot in 0..2 * chunks {
        let bytes = 65_536 + 256 * random.below(32);
        before.push(Step::Alloc { slot, bytes });
    }
    before.extend((0..chunks).map(|at| Step::Free { slot: 2 * at }));
    let steps = (0..50_000)
        .flat_map(|_| {
            let bytes = 65_536 + 256 * random.below(32);
            let slot = 2 * random.below(u64::from(chunks)) as u32;
            [Step::Alloc { slot, bytes }, Step::Free { slot }]
        })
        .collect();
    Workload {
        name: format!("crowded bin {chunks}"),
        slots: 2 * chunks as usize,
        before,
        steps,
    }
}

fn traces() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = ["examples/traces", "../shared/data/traces"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(root.join(folder)).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    paths.sort();
    paths
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let clock = clock_cost();
    println!(
        "ns a call, median of {LAYOUTS} times {ROUNDS} rounds in turn; the clock's own {clock} ns are taken off the p99"
    );
    println!(
        "{:<34} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7} {:>8} {:>8} {:>7}",
        "workload",
        "calls",
        "luma",
        "xla",
        "offset",
        "mimalloc",
        "ratio",
        "p99",
        "p99 off.",
        "ratio"
    );
    for path in traces() {
        if let Some(workload) = from_trace(&path).filter(|workload| wanted(&workload.name)) {
            compare(&workload, clock, false);
        }
    }
    for live in [1_000, 10_000, 100_000, 1_000_000] {
        if wanted(&format!("random {live}")) {
            compare(&random_blocks(live), clock, true);
        }
    }
    if wanted("crowded bin") {
        compare(&crowded_bin(20_000), clock, false);
    }
}
