//! A pool of the library, driven through its C interface: what a replay measures is what a C
//! program gets.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use clap::ValueEnum;
use luma::ffi::{
    luma_backend_t, luma_last_error, luma_last_status, luma_pool_alloc, luma_pool_check,
    luma_pool_config_t, luma_pool_create, luma_pool_destroy, luma_pool_free, luma_pool_stats,
    luma_pool_t, luma_preset_t, luma_stats_t, luma_status_t,
};
use serde::Serialize;

/// Where the pool's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Addresses without memory behind them.
    Simulated,
    /// Host memory.
    Host,
    /// Host memory through the callbacks that a program can give.
    Callbacks,
    /// Device memory of the CUDA driver.
    Cuda,
}

/// How the pool works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Preset {
    #[value(name = "default")]
    #[serde(rename = "default")]
    Default,
    #[value(name = "xla")]
    #[serde(rename = "xla")]
    Xla,
    #[value(name = "luma-0.3")]
    #[serde(rename = "luma-0.3")]
    Luma03,
}

impl Preset {
    pub const ALL: [Preset; 3] = [Preset::Default, Preset::Xla, Preset::Luma03];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Default => "default",
            Preset::Xla => "xla",
            Preset::Luma03 => "luma-0.3",
        }
    }
}

/// What a pool is made from.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub backend: Backend,
    pub preset: Preset,
    /// Bytes of the device; 0: the library's default.
    pub capacity: u64,
    /// The most bytes that the pool may hold; 0: no limit.
    pub limit: u64,
}

/// A pool of its own, destroyed with everything in it when dropped.
pub struct Pool {
    raw: *mut luma_pool_t,
    /// The callbacks' state. The library holds its address, so it outlives `raw`.
    _supply: Option<Box<Supply>>,
}

impl Pool {
    pub fn create(setup: &Setup) -> Result<Self> {
        let mut config = luma_pool_config_t {
            struct_size: size_of::<luma_pool_config_t>(),
            backend: match setup.backend {
                Backend::Simulated => luma_backend_t::LUMA_BACKEND_SIMULATED,
                Backend::Host => luma_backend_t::LUMA_BACKEND_HOST,
                Backend::Callbacks => luma_backend_t::LUMA_BACKEND_CALLBACKS,
                Backend::Cuda => luma_backend_t::LUMA_BACKEND_CUDA,
            } as i32,
            device: 0,
            preset: match setup.preset {
                Preset::Default => luma_preset_t::LUMA_PRESET_DEFAULT,
                Preset::Xla => luma_preset_t::LUMA_PRESET_XLA,
                Preset::Luma03 => luma_preset_t::LUMA_PRESET_LUMA_0_3,
            } as i32,
            growth: 0,
            memory_limit: setup.limit,
            min_segment_bytes: 0,
            min_split_bytes: 0,
            split_when_double: 0,
            release_on_failure: 0,
            capacity: setup.capacity,
            alloc_fn: None,
            free_fn: None,
            user: ptr::null_mut(),
        };
        let mut supply = None;
        if setup.backend == Backend::Callbacks {
            let state = supply.insert(Box::new(Supply::new(setup.capacity)));
            config.capacity = 0;
            config.alloc_fn = Some(Supply::alloc);
            config.free_fn = Some(Supply::free);
            config.user = ptr::from_ref::<Supply>(state).cast_mut().cast();
        }
        let mut raw = ptr::null_mut();
        // SAFETY: both pointers are valid for the call, and `user` outlives the pool (see `_supply`).
        let status = unsafe { luma_pool_create(&raw const config, &raw mut raw) };
        if status != luma_status_t::LUMA_SUCCESS {
            bail!("the pool cannot be made: {}", last_error());
        }
        Ok(Self {
            raw,
            _supply: supply,
        })
    }

    /// NULL where the pool has nothing left, and for zero bytes.
    #[inline]
    pub fn alloc(&self, bytes: usize) -> *mut c_void {
        luma_pool_alloc(self.raw, bytes, 0, ptr::null_mut())
    }

    /// Whether the block was taken back. The library checks the pointer, so that any is allowed.
    #[inline]
    pub fn free(&self, block: *mut c_void) -> bool {
        luma_pool_free(self.raw, block, ptr::null_mut()) == luma_status_t::LUMA_SUCCESS
    }

    pub fn stats(&self) -> Result<luma_stats_t> {
        let mut stats = luma_stats_t {
            struct_size: size_of::<luma_stats_t>(),
            ..luma_stats_t::default()
        };
        // SAFETY: `raw` is a live pool and `stats` valid for the call.
        match unsafe { luma_pool_stats(self.raw, &raw mut stats) } {
            luma_status_t::LUMA_SUCCESS => Ok(stats),
            _ => bail!("the pool's statistics cannot be read: {}", last_error()),
        }
    }

    /// Has the library verify all its book-keeping.
    pub fn check(&self) -> Result<()> {
        match luma_pool_check(self.raw) {
            luma_status_t::LUMA_SUCCESS => Ok(()),
            _ => bail!("the pool is corrupted: {}", last_error()),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A failure leaves the pool as it is: there is nothing to do about it here.
        let _ = luma_pool_destroy(self.raw);
    }
}

/// This thread's last status.
pub fn last_status() -> luma_status_t {
    luma_last_status()
}

/// This thread's last message.
pub fn last_error() -> String {
    // SAFETY: the library answers a C string that is valid until this thread's next call.
    unsafe { CStr::from_ptr(luma_last_error()) }
        .to_string_lossy()
        .into_owned()
}

/// The memory behind [`Backend::Callbacks`]: the host's, up to a capacity.
struct Supply {
    capacity: u64,
    used: AtomicU64,
}

impl Supply {
    const ALIGNMENT: usize = 2 << 20;

    fn new(capacity: u64) -> Self {
        let capacity = if capacity == 0 { u64::MAX } else { capacity };
        Self {
            capacity,
            used: AtomicU64::new(0),
        }
    }

    /// Adds to what is used, unless it would pass the capacity.
    fn reserve(&self, bytes: u64) -> bool {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.capacity);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_ok()
    }

    fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    unsafe extern "C" fn alloc(bytes: usize, user: *mut c_void) -> *mut c_void {
        // SAFETY: `user` is the supply that `Pool::create` passed, which outlives the pool.
        let supply = unsafe { &*user.cast::<Supply>() };
        let Ok(layout) = Layout::from_size_align(bytes, Self::ALIGNMENT) else {
            return ptr::null_mut();
        };
        if bytes == 0 || !supply.reserve(bytes as u64) {
            return ptr::null_mut();
        }
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            supply.release(bytes as u64);
        }
        block.cast()
    }

    unsafe extern "C" fn free(block: *mut c_void, bytes: usize, user: *mut c_void) {
        // SAFETY: as in `alloc`.
        let supply = unsafe { &*user.cast::<Supply>() };
        // SAFETY: the library gives back what one call of `alloc` answered, so the layout is the
        // one that was made then.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, Self::ALIGNMENT);
            dealloc(block.cast(), layout);
        }
        supply.release(bytes as u64);
    }
}
