//! A request that failed for want of memory, on random states of every kind of device: no place would
//! have held it, the figures of the report are right, the single action that it names makes the request
//! fit, and no smaller block would have done.

mod places;

use luma::backend::Pages;
use luma::backend::simulated::SimulatedBackend;
use luma::config::Limit;
use luma::pool::oom::{Action, OomReport, last_report};
use luma::{Pool, PoolConfig, Preset};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const CASES: u32 = if cfg!(miri) { 1 } else { 160 };
/// Where every block of a state is tried by itself, there are no more of them.
const MOST_TRIED: usize = 24;

#[derive(Clone, Copy, Debug)]
enum Gives {
    Grains,
    /// As host memory: in extremity, smaller pages are given back.
    FinePages,
    WholePages,
    /// Whole pages, of a device that says what it has left only when it is asked.
    SharedPages,
    Segments,
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    gives: Gives,
    preset: Preset,
    capacity: u64,
    limit: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Alloc { bytes: u64, align: u64 },
    Free { place: usize },
}

/// A pool in a state that a row of operations leads to.
struct State {
    device: Arc<SimulatedBackend>,
    pool: Pool,
    live: Vec<u64>,
}

impl State {
    fn new(setup: Setup) -> Self {
        let device = match setup.gives {
            Gives::Grains => SimulatedBackend::new(setup.capacity),
            Gives::FinePages => {
                let pages = Pages {
                    map: 256,
                    unmap: 2 * MIB,
                    finest: 4096,
                };
                SimulatedBackend::with_pages(setup.capacity, pages)
            }
            Gives::WholePages => SimulatedBackend::with_pages(setup.capacity, Pages::of(2 * MIB)),
            Gives::SharedPages => {
                SimulatedBackend::with_pages(setup.capacity, Pages::of(2 * MIB)).shared()
            }
            Gives::Segments => SimulatedBackend::without_pages(setup.capacity),
        };
        let config = PoolConfig {
            preset: setup.preset,
            memory_limit: setup.limit.map(Limit::Bytes),
            ..PoolConfig::default()
        };
        let device = Arc::new(device);
        Self {
            pool: Pool::with_backend(device.clone(), &config).expect("the setup is good"),
            device,
            live: Vec::new(),
        }
    }

    fn after(setup: Setup, ops: &[Op]) -> Self {
        let mut state = Self::new(setup);
        for op in ops {
            state.step(*op);
        }
        state
    }

    /// Whether it could be done.
    fn step(&mut self, op: Op) -> bool {
        match op {
            Op::Alloc { bytes, align } => match self.pool.allocate(bytes, align) {
                Ok(block) => {
                    self.live.extend(block);
                    true
                }
                Err(_) => false,
            },
            Op::Free { place } => {
                if !self.live.is_empty() {
                    let block = self.live.swap_remove(place % self.live.len());
                    self.pool.free(block).expect("the block is live");
                }
                true
            }
        }
    }

    fn free(&mut self, at: usize) {
        self.pool.free(self.live[at]).expect("the block is live");
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = (any::<u8>(), any::<u32>(), any::<u8>()).prop_map(|(kind, number, third)| {
        let number = u64::from(number);
        match kind % 8 {
            0..=2 => Op::Free {
                place: number as usize,
            },
            3 => Op::Alloc {
                bytes: 1 + number % 8192,
                align: 0,
            },
            4 | 5 => Op::Alloc {
                bytes: 1 + number % (5 * MIB),
                align: 0,
            },
            6 => Op::Alloc {
                bytes: (1 + number % 20) * MIB,
                align: 256 << (third % 16),
            },
            _ => Op::Alloc {
                bytes: 1 + number % (40 * MIB),
                align: 0,
            },
        }
    });
    vec(op, 1..120)
}

/// What the report says of the pool is what the pool says.
fn figures_agree(report: &OomReport, pool: &Pool, bytes: u64) -> Result<(), String> {
    let stats = pool.stats().map_err(|error| error.to_string())?;
    let same = report.requested == bytes
        && report.allocated == stats.allocated_bytes
        && report.live_blocks == stats.live_blocks
        && report.reserved == stats.reserved_bytes
        && report.largest_free == stats.largest_free_block
        && report.idle + report.stuck == stats.reserved_bytes - stats.allocated_bytes
        && report.limit.unwrap_or(0) == stats.memory_limit;
    same.then_some(())
        .ok_or_else(|| format!("{report:?} is not what {stats:?} says"))
}

/// Does what the report names on a pool in the same state, and asks again.
fn action_is_enough(
    setup: Setup,
    ops: &[Op],
    report: &OomReport,
    addr: usize,
) -> Result<(), String> {
    let request = ops[ops.len() - 1];
    let mut state = State::after(setup, ops);
    match report.action {
        Action::AskForLess { most } => {
            return (most == setup.capacity && report.rounded > most)
                .then_some(())
                .ok_or_else(|| "there is as much as was asked for".to_owned());
        }
        Action::RaiseLimit { to } => state
            .pool
            .set_limit(to)
            .map_err(|error| error.to_string())?,
        Action::FreeBlock { .. } => state.free(addr),
        Action::FreeSeveral { .. } => (0..state.live.len()).for_each(|at| state.free(at)),
        Action::Unknown => return Ok(()),
        other => return Err(format!("{other:?} has nothing to do with this pool")),
    }
    if state.step(request) {
        Ok(())
    } else {
        let error = last_report().map(|report| report.to_string());
        Err(format!("it does not fit after that: {error:?}"))
    }
}

/// Whether a smaller block, each tried on a pool in the same state, is enough, or one where the report
/// named none. `None`: it is about no block.
fn a_smaller_one_is_enough(setup: Setup, ops: &[Op], report: &OomReport) -> Option<bool> {
    let size = match report.action {
        Action::FreeBlock { size, .. } => size,
        Action::FreeSeveral { .. } => u64::MAX,
        _ => return None,
    };
    let first = State::after(setup, ops);
    for at in 0..first.live.len() {
        let of = first.pool.usable_size(first.live[at]).unwrap_or(0);
        if of < size {
            let mut state = State::after(setup, ops);
            state.free(at);
            if state.step(ops[ops.len() - 1]) {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// What reports named.
#[derive(Debug, Default)]
struct Named {
    ask_for_less: u32,
    raise_limit: u32,
    free_block: u32,
    free_several: u32,
    nothing: u32,
    /// Of those about blocks, how many were compared with every smaller one.
    tried: u32,
}

fn hold(setup: Setup, ops: &[Op], named: &mut Named) -> Result<(), String> {
    let mut state = State::new(setup);
    for (at, &op) in ops.iter().enumerate() {
        if state.step(op) {
            continue;
        }
        let Op::Alloc { bytes, align } = op else {
            return Err("a free failed".to_owned());
        };
        let report = last_report().ok_or("there is no report")?;
        let done = &ops[..=at];
        let place = match report.action {
            Action::FreeBlock { addr, size } => {
                let place = state.live.iter().position(|&block| block == addr);
                if state.pool.usable_size(addr) != Some(size) {
                    return Err("the block is not live".to_owned());
                }
                place.ok_or("the block is not live")?
            }
            _ => 0,
        };
        *match report.action {
            Action::AskForLess { .. } => &mut named.ask_for_less,
            Action::RaiseLimit { .. } => &mut named.raise_limit,
            Action::FreeBlock { .. } => &mut named.free_block,
            Action::FreeSeveral { .. } => &mut named.free_several,
            _ => &mut named.nothing,
        } += 1;
        let tell = |problem: String| format!("{problem}\nat {at}, of {op:?}: {report:?}");
        if setup.preset == Preset::Default {
            places::none_would_do(&state, setup.limit, bytes, align).map_err(tell)?;
        }
        figures_agree(&report, &state.pool, bytes).map_err(tell)?;
        action_is_enough(setup, done, &report, place).map_err(tell)?;
        if state.live.len() <= MOST_TRIED {
            match a_smaller_one_is_enough(setup, done, &report) {
                Some(true) => return Err(tell("a smaller block would do".to_owned())),
                Some(false) => named.tried += 1,
                None => {}
            }
        }
    }
    Ok(())
}

fn check(gives: Gives, preset: Preset) {
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..Config::default()
    });
    let capacities = select(vec![16 * MIB, 40 * MIB, 64 * MIB + 4096]);
    let limits = select(vec![None, None, Some(30 * MIB), Some(12 * MIB + 768)]);
    let named = std::cell::RefCell::new(Named::default());
    let outcome = runner.run(&(capacities, limits, ops()), |(capacity, limit, ops)| {
        let setup = Setup {
            gives,
            preset,
            capacity,
            limit,
        };
        hold(setup, &ops, &mut named.borrow_mut())
            .map_err(|problem| TestCaseError::fail(format!("{problem}\n{setup:?}")))
    });
    match outcome {
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        other => other.expect("states can be made"),
    }
    let named = named.into_inner();
    println!("{gives:?} {preset:?}: {named:?}");
    if cfg!(miri) {
        return;
    }
    let least = named
        .ask_for_less
        .min(named.raise_limit)
        .min(named.free_block);
    assert!(
        least > 0 && named.tried > 100,
        "too little was seen: {named:?}"
    );
}

#[test]
fn the_action_is_enough_with_grains() {
    check(Gives::Grains, Preset::Default);
}

#[test]
fn the_action_is_enough_with_fine_pages() {
    check(Gives::FinePages, Preset::Default);
}

#[test]
fn the_action_is_enough_with_whole_pages() {
    check(Gives::WholePages, Preset::Default);
}

#[test]
fn the_action_is_enough_with_shared_pages() {
    check(Gives::SharedPages, Preset::Default);
}

#[test]
fn the_action_is_enough_with_segments() {
    check(Gives::Segments, Preset::Default);
}

#[test]
fn the_action_is_enough_in_luma_0_3() {
    check(Gives::Segments, Preset::Luma03);
}

#[test]
fn the_action_is_enough_in_xla() {
    check(Gives::Segments, Preset::Xla);
}
