//! A pool over each kind of backend, with a look at what the backend gave.

use crate::support::double;
use core::ffi::c_void;
use luma::backend::callbacks::{CallbackBackend, Callbacks};
use luma::backend::cuda::{CudaBackend, Kind};
use luma::backend::host::{HostBackend, HostDevice};
use luma::backend::simulated::SimulatedBackend;
use luma::backend::{Backend, BackendResult, Memory, Pages};
use luma::config::Limit;
use luma::{Pool, PoolConfig, Preset, Stats};
use std::alloc::{Layout, alloc, dealloc};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// Where a case's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    Host,
    /// The program's own allocator, aligned to no more than 256 bytes.
    Callbacks,
    /// Simulated, with pages.
    Pages,
    /// Simulated, whole segments only.
    Segments,
    /// A device of the driver double.
    Cuda,
    /// Pinned memory of the driver double.
    CudaPinned,
    /// Managed memory of the driver double.
    CudaManaged,
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub supply: Supply,
    pub preset: Preset,
}

/// Counts what passes through it.
#[derive(Debug)]
pub struct Counted {
    backend: Arc<dyn Backend>,
    used: AtomicU64,
    largest_step: AtomicU64,
}

/// A device of the driver double that one fixture uses.
struct Device(i32);

/// Devices that no fixture uses.
static IDLE: Mutex<Vec<i32>> = Mutex::new(Vec::new());

impl Device {
    /// One with so much memory.
    fn take(capacity: u64) -> Self {
        static DEVICES: AtomicU64 = AtomicU64::new(0);
        let double = double::load();
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let device = idle.unwrap_or_else(|| DEVICES.fetch_add(1, Ordering::Relaxed) as i32);
        assert_eq!(double.set_capacity(device, capacity), 0, "device {device}");
        Self(device)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let used = double::load().used(self.0);
        assert!(used == 0 || std::thread::panicking(), "{used} bytes leaked");
        IDLE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.0);
    }
}

/// A pool and its backend, which go before their device does.
pub struct Fixture {
    pub pool: Pool,
    backend: Arc<Counted>,
    _device: Option<Device>,
}

impl Fixture {
    /// Bytes that the pool holds, as its backend knows.
    pub fn used(&self) -> u64 {
        self.backend.used.load(Ordering::Relaxed)
    }

    /// What the device has left, where that is known.
    pub fn device_free(&self) -> u64 {
        let memory = self.backend.memory().expect("a device that works");
        memory.expect("a device that tells").free
    }

    /// The most that the pool asked for at once.
    pub fn largest_step(&self) -> u64 {
        self.backend.largest_step.load(Ordering::Relaxed)
    }

    pub fn alloc(&self, bytes: u64) -> u64 {
        self.alloc_aligned(bytes, 0)
    }

    pub fn alloc_aligned(&self, bytes: u64, align: u64) -> u64 {
        let allocated = self.pool.allocate(bytes, align).expect("there is room");
        allocated.expect("an address for some bytes")
    }

    pub fn free(&self, addr: u64) {
        self.pool.free(addr).expect("a live block");
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats().expect("an open pool")
    }

    pub fn empty_cache(&self) -> u64 {
        self.pool.empty_cache().expect("an open pool")
    }

    /// Checks the pool, and what it says against its backend.
    pub fn check(&self) {
        self.pool.check().expect("no broken invariant");
        let stats = self.stats();
        assert_eq!(stats.reserved_bytes, self.used());
        assert!(stats.allocated_bytes <= stats.reserved_bytes);
        assert!(stats.memory_limit == 0 || stats.reserved_bytes <= stats.memory_limit);
    }
}

impl Case {
    /// A pool of at most `limit` bytes (0: no limit) on a device of `capacity`. The callbacks have
    /// no capacity that luma could know.
    pub fn pool(&self, capacity: u64, limit: u64) -> Fixture {
        let mut device = None;
        let mut cuda = |kind| -> Arc<dyn Backend> {
            let taken = device.insert(Device::take(capacity));
            Arc::new(CudaBackend::of_device(taken.0, kind).expect("the double has the device"))
        };
        let backend: Arc<dyn Backend> = match self.supply {
            Supply::Cuda => cuda(Kind::Device),
            Supply::CudaPinned => cuda(Kind::Pinned),
            Supply::CudaManaged => cuda(Kind::Managed),
            Supply::Host => Arc::new(HostBackend::new(HostDevice::new(capacity))),
            Supply::Callbacks => {
                // SAFETY: the functions are the program's allocator and touch nothing else.
                let callbacks = unsafe {
                    Callbacks::new(allocate_from_program, free_to_program, std::ptr::null_mut())
                };
                Arc::new(CallbackBackend::new(callbacks))
            }
            Supply::Pages => Arc::new(SimulatedBackend::new(capacity)),
            Supply::Segments => Arc::new(SimulatedBackend::without_pages(capacity)),
        };
        let backend = Arc::new(Counted {
            backend,
            used: AtomicU64::new(0),
            largest_step: AtomicU64::new(0),
        });
        let config = PoolConfig {
            preset: self.preset,
            memory_limit: Some(Limit::Bytes(limit)),
            ..PoolConfig::default()
        };
        let pool = Pool::with_backend(backend.clone(), &config).expect("a pool");
        Fixture {
            pool,
            backend,
            _device: device,
        }
    }

    /// Whether blocks have memory behind them that the test can write.
    pub fn is_writable(&self) -> bool {
        !matches!(self.supply, Supply::Pages | Supply::Segments)
    }

    /// Where the test finds the bytes behind an address.
    pub fn bytes_of(&self, addr: u64) -> *mut u8 {
        match self.supply {
            Supply::Cuda => double::load().host_pointer(addr).cast(),
            _ => addr as *mut u8,
        }
    }

    /// Whether the host may touch blocks at their own addresses.
    pub fn is_host_accessible(&self) -> bool {
        matches!(
            self.supply,
            Supply::Host | Supply::CudaPinned | Supply::CudaManaged
        )
    }

    /// Whether the pool knows how much the device has.
    pub fn knows_capacity(&self) -> bool {
        !matches!(
            self.supply,
            Supply::Callbacks | Supply::CudaPinned | Supply::CudaManaged
        )
    }

    /// What a device's memory is a multiple of, for all of it to be usable.
    pub fn device_unit(&self) -> u64 {
        match self.supply {
            Supply::Cuda => 2 * MIB,
            _ => 256,
        }
    }

    /// Whether a block is as large as the rounded request, always.
    pub fn splits_exactly(&self) -> bool {
        self.preset != Preset::Xla
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 256).ok()
}

extern "C" fn allocate_from_program(bytes: usize, _: *mut c_void) -> *mut c_void {
    match layout(bytes) {
        // SAFETY: no pool asks for no bytes.
        Some(layout) => unsafe { alloc(layout) }.cast(),
        None => std::ptr::null_mut(),
    }
}

extern "C" fn free_to_program(ptr: *mut c_void, bytes: usize, _: *mut c_void) {
    let layout = layout(bytes).expect("it was allocated with this layout");
    // SAFETY: the pool gives back what it got, once.
    unsafe { dealloc(ptr.cast(), layout) };
}

impl Counted {
    fn got(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.largest_step.fetch_max(bytes, Ordering::Relaxed);
    }

    fn lost(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "more came back than was given");
    }
}

impl Backend for Counted {
    fn name(&self) -> &'static str {
        self.backend.name()
    }
    fn is_host_accessible(&self) -> bool {
        self.backend.is_host_accessible()
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.backend.memory()
    }
    fn known_free(&self) -> Option<u64> {
        self.backend.known_free()
    }
    fn segment_align(&self) -> u64 {
        self.backend.segment_align()
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let addr = self.backend.allocate(bytes)?;
        self.got(bytes);
        Ok(addr)
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.backend.release(addr, bytes)?;
        self.lost(bytes);
        Ok(())
    }
    fn pages(&self) -> Option<Pages> {
        self.backend.pages()
    }
    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        self.backend.reserve(least)
    }
    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        self.backend.unreserve(addr, span, mapped)?;
        self.lost(mapped);
        Ok(())
    }
    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.backend.map(addr, bytes)?;
        self.got(bytes);
        Ok(())
    }
    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.backend.unmap(addr, bytes)?;
        self.lost(bytes);
        Ok(())
    }
    fn fill(&self, addr: u64, bytes: u64, value: u8) {
        self.backend.fill(addr, bytes, value);
    }
}
