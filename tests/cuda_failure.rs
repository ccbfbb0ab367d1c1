//! Every call that the CUDA backend makes of the driver fails once, for each kind of memory and of
//! failure: the call that needed it says so in the driver's words, nothing leaks, and the next works.

#![cfg(not(miri))]

mod support;

use luma::backend::cuda::{CudaBackend, Kind};
use luma::config::Limit;
use luma::{Error, Pool, PoolConfig, Preset, Status};
use std::sync::Arc;
use support::double::{self, Double};

const MIB: u64 = 1 << 20;
const OUT_OF_MEMORY: i32 = 2;
const ILLEGAL_ADDRESS: i32 = 700;
const UNKNOWN: i32 = 999;

/// What is live in the double: allocations, reservations, physical memory, mappings.
fn live(double: &Double) -> [u64; 4] {
    [0, 1, 2, 3].map(|kind| double.live_raw(kind))
}

/// One operation of the program.
#[derive(Clone, Copy, Debug)]
enum Op {
    Alloc(u64),
    Free(usize),
    EmptyCache,
    SetLimit(u64),
    Memory,
}

const PROGRAM: &[Op] = &[
    Op::Alloc(1000),
    Op::Alloc(3 * MIB),
    Op::Memory,
    Op::Alloc(5 * MIB + 1),
    Op::Free(1),
    Op::EmptyCache,
    Op::Alloc(7 * MIB),
    Op::SetLimit(40 * MIB + 256),
    Op::Free(0),
    Op::Alloc(24 * MIB),
    Op::Free(1),
    Op::SetLimit(34 * MIB),
    Op::EmptyCache,
    Op::Free(0),
    Op::Free(0),
    Op::EmptyCache,
];

struct Run {
    pool: Pool,
    live: Vec<u64>,
}

impl Run {
    fn reserved(&self) -> u64 {
        self.pool.stats().expect("an open pool").reserved_bytes
    }

    fn begin(kind: Kind) -> Result<Self, Error> {
        let backend = Arc::new(CudaBackend::of_device(0, kind)?);
        let config = PoolConfig {
            preset: Preset::Default,
            memory_limit: Some(Limit::Bytes(60 * MIB)),
            ..PoolConfig::default()
        };
        Ok(Self {
            pool: Pool::with_backend(backend, &config)?,
            live: Vec::new(),
        })
    }

    fn step(&mut self, op: Op) -> Result<(), Error> {
        match op {
            Op::Alloc(bytes) => {
                let addr = self.pool.allocate(bytes, 0)?;
                self.live.push(addr.expect("an address for some bytes"));
            }
            Op::Free(place) => {
                self.pool.free(self.live[place])?;
                self.live.remove(place);
            }
            Op::EmptyCache => {
                self.pool.empty_cache()?;
            }
            Op::SetLimit(bytes) => self.pool.set_limit(bytes)?,
            Op::Memory => {
                self.pool.memory()?;
            }
        }
        Ok(())
    }
}

/// Whether a failure is told as it should be.
fn is_told(error: &Error, code: i32) -> bool {
    match error.status() {
        Status::OutOfMemory => code == OUT_OF_MEMORY,
        // A limit that cannot be lowered since memory is not given back.
        Status::InvalidValue => true,
        Status::Driver => error.message().contains(&format!("({code})")),
        // What cannot be had at all where the driver is first asked.
        Status::NoDevice => error.message().contains(&format!("({code})")),
        _ => false,
    }
}

/// Runs the program with the `call`-th driver call failing. `false`: there are not so many calls.
fn run(double: &Double, kind: Kind, call: u64, code: i32) -> bool {
    let at = || format!("{kind:?}, call {call}, code {code}");
    let before = double.failed();
    double.fail("*", call, code, 1);
    let mut run = match Run::begin(kind) {
        Ok(run) => run,
        Err(error) => {
            assert!(is_told(&error, code), "{}: {error}", at());
            Run::begin(kind).unwrap_or_else(|error| panic!("{}: again: {error}", at()))
        }
    };
    for &op in PROGRAM {
        let has_failed = double.failed() > before;
        let outcome = run.step(op);
        let fails_now = !has_failed && double.failed() > before;
        if let Err(error) = &outcome {
            assert!(fails_now, "{}, {op:?}: without a cause: {error}", at());
            assert!(is_told(error, code), "{}, {op:?}: {error}", at());
        }
        // What could not be given back is still there to be given back.
        if outcome.is_err() || fails_now && matches!(op, Op::EmptyCache) {
            run.step(op)
                .unwrap_or_else(|error| panic!("{}, {op:?}: again: {error}", at()));
        }
        run.pool
            .check()
            .unwrap_or_else(|error| panic!("{}, {op:?}: {error}", at()));
        assert!(
            kind != Kind::Device || double.used(0) >= run.reserved(),
            "{}, {op:?}",
            at()
        );
    }
    assert_eq!(run.live, [], "{}", at());
    assert_eq!(run.reserved(), 0, "{}", at());
    assert_eq!(double.used(0), 0, "{}: bytes leaked", at());
    assert_eq!(live(double), [0; 4], "{}: something leaked", at());
    run.pool
        .close()
        .unwrap_or_else(|error| panic!("{}: {error}", at()));
    let happened = double.failed() > before;
    double.fail_clear();
    happened
}

fn every_call_fails_once(kind: Kind) {
    let double = double::load();
    for code in [OUT_OF_MEMORY, ILLEGAL_ADDRESS, UNKNOWN] {
        let mut calls = 0;
        while run(double, kind, calls, code) {
            calls += 1;
        }
        eprintln!("{kind:?}, code {code}: each of {calls} calls failed once");
        // More than making the pool takes.
        assert!(calls > 15, "{kind:?}: {calls} calls");
    }
}

#[test]
#[ignore = "each_kind_of_memory runs it, on a driver of its own"]
fn on_cuda_device_memory() {
    every_call_fails_once(Kind::Device);
}

#[test]
#[ignore = "as on_cuda_device_memory"]
fn on_cuda_pinned_memory() {
    every_call_fails_once(Kind::Pinned);
}

#[test]
#[ignore = "as on_cuda_device_memory"]
fn on_cuda_managed_memory() {
    every_call_fails_once(Kind::Managed);
}

#[test]
fn each_kind_of_memory() {
    // A driver each: what is counted is the whole process's.
    for kind in ["device", "pinned", "managed"] {
        let filter = format!("on_cuda_{kind}_memory");
        for no_virtual_memory in ["0", "1"] {
            let variables = [
                ("FAKECUDA_MEM", "64M"),
                ("FAKECUDA_STRICT", "1"),
                ("FAKECUDA_NO_VMM", no_virtual_memory),
            ];
            assert_eq!(double::run_ignored(&filter, &variables), 1);
        }
    }
}
