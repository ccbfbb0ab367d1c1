//! Checked mode on random programs over host memory: blocks keep their contents, exactly the writes to
//! freed blocks are found, figures agree, and the quarantine keeps nothing from being served.

// It is about real memory.
#![cfg(not(miri))]

use luma::backend::host::{HostBackend, HostDevice};
use luma::backend::simulated::SimulatedBackend;
use luma::config::Checks;
use luma::{Pool, PoolConfig, Preset, Status};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;
use std::collections::VecDeque;
use std::sync::Arc;

const CAPACITY: u64 = 8 << 20;
const QUARANTINE: u64 = 1 << 20;
const BLOCKS: u64 = 12;

fn config(preset: Preset) -> PoolConfig {
    PoolConfig {
        preset,
        checks: Some(Checks {
            stacks: false,
            quarantine_bytes: QUARANTINE,
            quarantine_blocks: BLOCKS,
        }),
        ..PoolConfig::default()
    }
}

fn host(preset: Preset) -> Pool {
    let backend = Arc::new(HostBackend::new(HostDevice::new(CAPACITY)));
    Pool::with_backend(backend, &config(preset)).expect("the configuration is good")
}

fn write(addr: u64, value: u8) {
    // SAFETY: the address lies in a block of a pool over host memory, live or in quarantine, which is
    // mapped; nothing else refers to it.
    unsafe { (addr as *mut u8).write_volatile(value) };
}

fn read(addr: u64) -> u8 {
    // SAFETY: as above.
    unsafe { (addr as *const u8).read_volatile() }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    addr: u64,
    size: u64,
    value: u8,
}

/// What the quarantine must be.
#[derive(Default)]
struct Model {
    held: VecDeque<Block>,
    /// Blocks that were written to while they were in it.
    written: Vec<u64>,
    /// How many of those have left it.
    found: u64,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.held.iter().map(|block| block.size).sum()
    }

    fn free(&mut self, block: Block) {
        if block.size > QUARANTINE {
            return;
        }
        self.held.push_back(block);
        while self.bytes() > QUARANTINE || self.held.len() as u64 > BLOCKS {
            self.leave();
        }
    }

    fn leave(&mut self) {
        if let Some(block) = self.held.pop_front() {
            self.look_at(block.addr);
        }
    }

    fn look_at(&mut self, addr: u64) {
        let before = self.written.len();
        self.written.retain(|&written| written != addr);
        self.found += (before - self.written.len()) as u64;
    }

    fn empty(&mut self) {
        while !self.held.is_empty() {
            self.leave();
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn exactly_the_writes_to_freed_blocks_are_found(
        preset in select(vec![Preset::Default, Preset::Xla, Preset::Luma03]),
        ops in vec((0u8..10, any::<u32>(), any::<u8>()), 1..150),
    ) {
        let pool = host(preset);
        let mut live: Vec<Block> = Vec::new();
        let mut model = Model::default();
        for (kind, number, value) in ops {
            let number = number as usize;
            match kind {
                0..=3 => {
                    let bytes = match kind {
                        0 => 1 + number as u64 % (2 << 20),
                        _ => 1 + number as u64 % 100_000,
                    };
                    let held = model.bytes();
                    match pool.allocate(bytes, 0) {
                        Ok(block) => {
                            let addr = block.expect("more than no bytes");
                            let size = pool.usable_size(addr).expect("it is live");
                            // It left the quarantine only where the memory was short.
                            if pool.stats().unwrap().pending_bytes < held {
                                model.empty();
                            }
                            let apart = |other: &Block| addr + size <= other.addr || other.addr + other.size <= addr;
                            prop_assert!(live.iter().chain(&model.held).all(apart));
                            write(addr, value);
                            write(addr + size - 1, value);
                            live.push(Block { addr, size, value });
                        }
                        Err(error) => {
                            prop_assert_eq!(error.status(), Status::OutOfMemory);
                            model.empty();
                        }
                    }
                }
                4..=6 if !live.is_empty() => {
                    let block = live.swap_remove(number % live.len());
                    prop_assert_eq!(read(block.addr), block.value);
                    prop_assert_eq!(read(block.addr + block.size - 1), block.value);
                    pool.free(block.addr).unwrap();
                    model.free(block);
                }
                7 if !model.held.is_empty() => {
                    let block = model.held[number % model.held.len()];
                    let error = pool.free(block.addr).unwrap_err();
                    prop_assert_eq!(error.status(), Status::InvalidPointer);
                    prop_assert!(error.message().contains("free already (in quarantine)"), "{}", error);
                    let at = block.addr + number as u64 % block.size;
                    let changes = value != 0xDF;
                    write(at, value);
                    if changes && !model.written.contains(&block.addr) {
                        model.written.push(block.addr);
                    }
                    // A later write may put the same byte back.
                    if !changes && model.written.contains(&block.addr) {
                        write(block.addr, 1);
                    }
                }
                8 => {
                    pool.empty_cache().unwrap();
                    model.empty();
                }
                _ => {
                    let held: Vec<u64> = model.held.iter().map(|block| block.addr).collect();
                    held.into_iter().for_each(|addr| model.look_at(addr));
                    let checked = pool.check();
                    let told = match (&checked, model.found) {
                        (Ok(()), 0) => true,
                        (Err(error), found) => {
                            let more = format!("(and {} more", found - 1);
                            error.status() == Status::Corrupted
                                && error.message().contains("a write to a freed block")
                                && (found == 1 || error.message().contains(&more))
                        }
                        _ => false,
                    };
                    prop_assert!(told, "{:?} where {} were found", checked, model.found);
                    model.found = 0;
                }
            }
            let stats = pool.stats().unwrap();
            prop_assert_eq!(stats.pending_bytes, model.bytes());
            prop_assert_eq!(stats.live_blocks, live.len() as u64);
            prop_assert_eq!(stats.allocated_bytes, live.iter().map(|block| block.size).sum::<u64>());
            prop_assert!(stats.allocated_bytes + stats.pending_bytes <= stats.reserved_bytes);
        }
        for block in live {
            pool.free(block.addr).unwrap();
        }
        // All that there is can be had, whatever is in quarantine.
        if preset != Preset::Xla {
            pool.allocate(CAPACITY, 0).unwrap();
        }
    }
}

/// Memory that the host may not touch is not read and not written, and is in quarantine all the same.
#[test]
fn other_memory_is_left_alone() {
    let backend = Arc::new(SimulatedBackend::new(CAPACITY));
    let pool = Pool::with_backend(backend, &config(Preset::Default)).unwrap();
    let first = pool.allocate(5000, 0).unwrap().unwrap();
    pool.free(first).unwrap();
    assert_ne!(pool.allocate(5000, 0).unwrap(), Some(first));
    let error = pool.free(first).unwrap_err();
    assert!(error.message().contains("(in quarantine)"), "{error}");
    assert_eq!(pool.stats().unwrap().pending_bytes, 5120);
    pool.check().unwrap();
    pool.empty_cache().unwrap();
    assert_eq!(pool.stats().unwrap().pending_bytes, 0);
    pool.check().unwrap();
}

/// A request that only fits without the quarantine is served, at a limit and on a full device.
#[test]
fn the_quarantine_is_emptied_for_a_request() {
    for limit in [CAPACITY / 2, 0] {
        let pool = host(Preset::Default);
        pool.set_limit(limit).unwrap();
        let all = if limit == 0 { CAPACITY } else { limit };
        let blocks: Vec<_> = (0..8)
            .map(|_| pool.allocate(all / 8, 0).unwrap().unwrap())
            .collect();
        for block in blocks {
            pool.free(block).unwrap();
        }
        assert!(pool.stats().unwrap().pending_bytes > 0);
        pool.allocate(all, 0).unwrap();
        assert_eq!(pool.stats().unwrap().pending_bytes, 0);
        assert_eq!(pool.stats().unwrap().out_of_memory_count, 0);
    }
}

/// Threads that allocate, free and check one pool at once.
#[test]
fn threads_share_a_checked_pool() {
    let pool = host(Preset::Default);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..300u64 {
                    let Ok(Some(block)) = pool.allocate(1 + round * 37 % 20_000, 0) else {
                        continue;
                    };
                    write(block, thread);
                    if round % 50 == 0 {
                        pool.check().unwrap();
                        pool.empty_cache().unwrap();
                    }
                    assert_eq!(read(block), thread);
                    pool.free(block).unwrap();
                }
            });
        }
    });
    pool.check().unwrap();
    assert_eq!(pool.stats().unwrap().live_blocks, 0);
}
