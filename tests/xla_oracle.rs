//! The XLA preset against recorded answers of tsl::BFCAllocator: the same requests for regions, and
//! the same region, offset and size for every allocation.

#![cfg(not(miri))]

mod support;

use luma::alloc::Growth;
use luma::backend::simulated::SimulatedBackend;
use luma::backend::{Backend, BackendError, BackendResult, Memory};
use luma::config::Limit;
use luma::{Pool, PoolConfig, Preset, Status};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::shared;

const LIMIT: u64 = 1 << 30;

/// Writes down each call as the oracle's files have it.
#[derive(Debug)]
struct Recording {
    device: SimulatedBackend,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<String>,
    first: u64,
    regions: BTreeMap<u64, usize>,
    granted: usize,
}

impl Backend for Recording {
    fn name(&self) -> &'static str {
        "recording"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let granted = self.device.allocate(bytes);
        let mut log = self.log.lock().unwrap();
        match &granted {
            Ok(addr) => {
                let region = log.granted;
                log.granted += 1;
                if region == 0 {
                    log.first = *addr;
                }
                let base = addr - log.first;
                log.regions.insert(*addr, region);
                log.lines
                    .push(format!("alloc {bytes} ok region={region} base={base}"));
            }
            Err(BackendError::OutOfMemory) => log.lines.push(format!("alloc {bytes} fail")),
            Err(other) => panic!("{other}"),
        }
        granted
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let mut log = self.log.lock().unwrap();
        let region = log.regions.remove(&addr).unwrap();
        log.lines.push(format!("free region={region} {bytes}"));
        self.device.release(addr, bytes)
    }
}

fn without_comments(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn replay(trace: &str, config: &str, device: u64, growth: Growth, collect: bool) {
    let Some(folder) = shared::data("bfc_oracle") else {
        return;
    };
    let recording = Arc::new(Recording {
        device: SimulatedBackend::without_pages(device),
        log: Mutex::default(),
    });
    let pool = Pool::with_backend(
        recording.clone(),
        &PoolConfig {
            preset: Preset::Xla,
            growth: Some(growth),
            memory_limit: Some(Limit::Bytes(LIMIT)),
            release_on_failure: collect.then_some(true),
            ..PoolConfig::default()
        },
    )
    .unwrap();
    let expected = without_comments(&folder.join(format!("{trace}.{config}.expected")));
    let mut expected = expected.iter();
    let mut live = HashMap::new();
    for line in without_comments(&folder.join(format!("{trace}.trace"))) {
        let words: Vec<_> = line.split(' ').collect();
        let id = words[1].to_owned();
        if words[0] == "f" {
            // A free of what was never allocated is part of the traces.
            if let Some(addr) = live.remove(&id) {
                pool.free(addr).unwrap();
            }
            continue;
        }
        let answer = match pool.allocate(words[2].parse().unwrap(), 0) {
            Ok(addr) => {
                let addr = addr.unwrap();
                live.insert(id.clone(), addr);
                let size = pool.usable_size(addr).unwrap();
                let log = recording.log.lock().unwrap();
                let (base, region) = log.regions.range(..=addr).next_back().unwrap();
                format!("{id} {region} {} {size}", addr - base)
            }
            Err(error) => {
                assert_eq!(error.status(), Status::OutOfMemory);
                format!("{id} OOM")
            }
        };
        assert_eq!(Some(&answer), expected.next(), "{trace}.{config}: {line}");
    }
    assert_eq!(expected.next(), None);
    pool.check().unwrap();
    let regions = without_comments(&folder.join(format!("{trace}.{config}.regions")));
    let log = recording.log.lock().unwrap();
    for (at, (ours, theirs)) in log.lines.iter().zip(&regions).enumerate() {
        assert_eq!(ours, theirs, "{trace}.{config}: call {at}");
    }
    assert_eq!(log.lines.len(), regions.len());
}

macro_rules! oracle {
    ($($name:ident: $trace:literal $config:literal, $device:expr, $growth:ident, $collect:literal;)*) => {
        $(#[test]
        fn $name() {
            replay($trace, $config, $device, Growth::$growth, $collect);
        })*

        #[test]
        fn every_recorded_answer_is_replayed() {
            let Some(folder) = shared::data("bfc_oracle") else { return };
            let replayed = [$(concat!($trace, ".", $config, ".expected")),*];
            for entry in fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(!name.ends_with(".expected") || replayed.contains(&name.as_str()), "{name}");
            }
        }
    };
}

oracle! {
    small_fixed: "small" "fixed", u64::MAX, Fixed, false;
    mixed_fixed: "mixed" "fixed", u64::MAX, Fixed, false;
    nearfull_fixed: "nearfull" "fixed", u64::MAX, Fixed, false;
    growth_growth: "growth" "growth", u64::MAX, Doubling, false;
    mixed_growth: "mixed" "growth", u64::MAX, Doubling, false;
    nearfull_growth: "nearfull" "growth", u64::MAX, Doubling, false;
    growth_on_a_small_device: "growth4k" "growth_device700m", 700 << 20, Doubling, false;
    fixed_on_a_small_device: "growth4k" "fixed_device900m", 900 << 20, Fixed, false;
    garbage_collection: "gc" "growth_gc", u64::MAX, Doubling, true;
    no_garbage_collection: "gc" "growth_nogc", u64::MAX, Doubling, false;
}
