//! Failures that other allocators were reported to have, each as a scenario on this one. The number in
//! a test's name is the row of `docs/reports.md`, which lists all of them.

// Miri cannot start other programs, and is too slow for the rest.
#![cfg(not(miri))]

#[path = "../support/mod.rs"]
mod support;

mod growth;
mod lifetime;
mod misuse;
mod out_of_memory;
mod page;
mod returning;
mod sizes;
mod statistics;

use luma::backend::simulated::SimulatedBackend;
use luma::{Error, Pool, PoolConfig, Preset};
use std::sync::Arc;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const PRESETS: [Preset; 3] = [Preset::Default, Preset::Xla, Preset::Luma03];

/// A pool over a simulated device of its own.
struct Device {
    backend: Arc<SimulatedBackend>,
    pool: Pool,
}

impl Device {
    /// With pages, as host memory and newer drivers have them.
    fn new(capacity: u64) -> Device {
        Device::of(SimulatedBackend::new(capacity), &PoolConfig::default())
    }

    /// That gives whole segments only.
    fn without_pages(capacity: u64) -> Device {
        Device::of(
            SimulatedBackend::without_pages(capacity),
            &PoolConfig::default(),
        )
    }

    fn of(backend: SimulatedBackend, config: &PoolConfig) -> Device {
        let backend = Arc::new(backend);
        let pool = Pool::with_backend(backend.clone(), config).expect("the configuration is good");
        Device { backend, pool }
    }

    fn take(&self, bytes: u64) -> u64 {
        take(&self.pool, bytes)
    }

    fn free(&self, addr: u64) {
        self.pool.free(addr).expect("the block is live");
    }

    fn reserved(&self) -> u64 {
        self.pool.stats().unwrap().reserved_bytes
    }
}

impl Drop for Device {
    /// What must hold after every scenario.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        sound(&self.pool);
        assert_eq!(self.backend.violations(), [""; 0]);
        assert_eq!(self.backend.used(), self.reserved());
    }
}

fn take(pool: &Pool, bytes: u64) -> u64 {
    pool.allocate(bytes, 0)
        .unwrap_or_else(|error| panic!("{bytes} bytes: {error}"))
        .expect("more than no bytes were asked for")
}

fn refused(pool: &Pool, bytes: u64) -> Error {
    pool.allocate(bytes, 0)
        .expect_err("there is not so much memory")
}

/// Counts and bytes agree, and no two live blocks overlap.
fn sound(pool: &Pool) {
    pool.check().expect("every invariant holds");
    let (stats, live) = (pool.stats().unwrap(), pool.live_blocks().unwrap());
    assert_eq!(live.len() as u64, stats.live_blocks);
    assert_eq!(
        live.iter().map(|block| block.1).sum::<u64>(),
        stats.allocated_bytes
    );
    assert_eq!(
        live.iter().map(|block| block.2).sum::<u64>(),
        stats.requested_bytes
    );
    assert!(
        live.windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
    );
    assert!(stats.allocated_bytes + stats.pending_bytes <= stats.reserved_bytes);
    assert!(stats.largest_free_block <= stats.reserved_bytes - stats.allocated_bytes);
}

/// A generator of numbers below a bound, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
