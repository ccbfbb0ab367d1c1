//! The types of the C interface, laid out as `include/luma.h` shows them.
//!
//! Every struct begins with its size, so that programs and libraries of different versions agree on
//! which fields both know (see [`super::versioned`]).

use core::ffi::{c_char, c_int, c_void};

/// What a call answers. The numbers are part of the interface and are never reused.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_status_t {
    /// The call did what was asked.
    LUMA_SUCCESS = 0,
    /// An argument is out of range, misaligned or NULL.
    LUMA_ERROR_INVALID_VALUE = 1,
    /// The backend and the pool have nothing left, or the limit is reached.
    LUMA_ERROR_OUT_OF_MEMORY = 2,
    /// The pointer is not from this pool, was freed already, or lies inside a block.
    LUMA_ERROR_INVALID_POINTER = 3,
    /// There is no usable backend, or no such device.
    LUMA_ERROR_NO_DEVICE = 4,
    /// The CUDA driver failed; the message carries its name and code.
    LUMA_ERROR_DRIVER = 5,
    /// This backend or driver cannot do it.
    LUMA_ERROR_UNSUPPORTED = 6,
    /// `luma_check` found a broken invariant.
    LUMA_ERROR_CORRUPTED = 7,
    /// No plan exists within the capacities.
    LUMA_ERROR_INFEASIBLE = 8,
    /// A bug in luma.
    LUMA_ERROR_INTERNAL = 9,
}

/// A `CUstream` or `cudaStream_t`. NULL is the legacy default stream.
#[allow(non_camel_case_types)]
pub type luma_stream_t = *mut c_void;

/// A pool. Its contents are private; every function that takes one checks it.
#[allow(non_camel_case_types)]
pub struct luma_pool_t {
    _private: [u8; 0],
}

/// Where a pool's memory comes from. Values of `luma_pool_config_t::backend`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_backend_t {
    /// CUDA where there is a driver and a device, otherwise host memory.
    LUMA_BACKEND_AUTO = 0,
    /// Device memory of the CUDA driver.
    LUMA_BACKEND_CUDA = 1,
    /// Anonymous host memory, taken from the system only as it is touched.
    LUMA_BACKEND_HOST = 2,
    /// Memory from the `alloc_fn` and `free_fn` of the configuration.
    LUMA_BACKEND_CALLBACKS = 3,
    /// Pinned host memory of the CUDA driver.
    LUMA_BACKEND_CUDA_HOST = 4,
    /// Managed memory of the CUDA driver.
    LUMA_BACKEND_CUDA_MANAGED = 5,
    /// Addresses without memory behind them, to try a program's allocations on a device of any
    /// size. A pointer from it must not be dereferenced.
    LUMA_BACKEND_SIMULATED = 6,
}

/// A set of policies. Values of `luma_pool_config_t::preset`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_preset_t {
    /// luma's own choice: growing ranges of pages where the backend has them.
    LUMA_PRESET_DEFAULT = 0,
    /// What XLA's `BFCAllocator` does.
    LUMA_PRESET_XLA = 1,
    /// What luma-cuda 0.3.2 does.
    LUMA_PRESET_LUMA_0_3 = 2,
}

/// How a pool takes memory from its backend. Values of `luma_pool_config_t::growth`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_growth_t {
    /// What the preset says.
    LUMA_GROWTH_DEFAULT = 0,
    /// One segment of the whole limit (or of the whole device, where there is no limit).
    LUMA_GROWTH_FIXED = 1,
    /// Each segment is twice the one before, starting at `min_segment_bytes`.
    LUMA_GROWTH_DOUBLING = 2,
    /// Each segment is the request, rounded up to `min_segment_bytes`.
    LUMA_GROWTH_EXACT = 3,
    /// Each segment is the request rounded up to 2 MiB, and for small requests up to an eighth of
    /// what the pool holds (2 MiB to 32 MiB).
    LUMA_GROWTH_PROPORTIONAL = 4,
    /// One range of addresses that grows by pages. Where the backend has no pages, as
    /// `LUMA_GROWTH_PROPORTIONAL`.
    LUMA_GROWTH_PAGED = 5,
}

/// Yes, no, or what the preset says. Values of `luma_pool_config_t::release_on_failure`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_switch_t {
    /// What the preset says.
    LUMA_SWITCH_DEFAULT = 0,
    /// Yes.
    LUMA_SWITCH_ON = 1,
    /// No.
    LUMA_SWITCH_OFF = 2,
}

/// The backend's allocation function: at least `bytes` bytes aligned to 256 or more (2 MiB is
/// better), or NULL when it has none. It must not throw or jump out.
#[allow(non_camel_case_types)]
pub type luma_alloc_fn_t =
    Option<unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void>;

/// The backend's release function. It is given the pointer and size of one call of the allocation
/// function, and must not throw or jump out.
#[allow(non_camel_case_types)]
pub type luma_free_fn_t =
    Option<unsafe extern "C" fn(ptr: *mut c_void, bytes: usize, user: *mut c_void)>;

/// Receives log messages. `level`: 1 error, 2 warning, 3 information, 4 detail. It must not throw or
/// jump out.
#[allow(non_camel_case_types)]
pub type luma_log_fn_t =
    Option<unsafe extern "C" fn(level: c_int, message: *const c_char, user: *mut c_void)>;

/// Is told that `bytes` bytes could not be had. Answers non-zero when it freed something and the
/// request should be tried again. It must not throw or jump out.
#[allow(non_camel_case_types)]
pub type luma_oom_fn_t = Option<unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> c_int>;

/// How a pool is made. Begin with `LUMA_POOL_CONFIG_INIT`; zero in a field means the default.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_pool_config_t {
    /// `sizeof(luma_pool_config_t)`.
    pub struct_size: usize,
    /// A `luma_backend_t`.
    pub backend: i32,
    /// The device's number, from 0.
    pub device: i32,
    /// A `luma_preset_t`.
    pub preset: i32,
    /// A `luma_growth_t`.
    pub growth: i32,
    /// The most bytes the pool may hold from its backend; 0: no limit.
    pub memory_limit: u64,
    /// The smallest segment in bytes; with `LUMA_GROWTH_DOUBLING` the first one. A multiple of 256.
    pub min_segment_bytes: u64,
    /// The smallest rest worth splitting off a block, in bytes. A multiple of 256.
    pub min_split_bytes: u64,
    /// A block at least twice the request is split whatever the rest is (XLA's rule): a
    /// `luma_switch_t`.
    pub split_when_double: i32,
    /// Wholly free segments are given back when the backend refuses: a `luma_switch_t`.
    pub release_on_failure: i32,
    /// For the host and simulated backends: a device of this many bytes for this pool alone; 0: the
    /// device that all pools share (`LUMA_HOST_CAPACITY`).
    pub capacity: u64,
    /// For `LUMA_BACKEND_CALLBACKS`. Called without any of luma's locks held, from any thread.
    pub alloc_fn: luma_alloc_fn_t,
    /// For `LUMA_BACKEND_CALLBACKS`. Called without any of luma's locks held, from any thread.
    pub free_fn: luma_free_fn_t,
    /// Handed to `alloc_fn` and `free_fn`.
    pub user: *mut c_void,
}

/// What a pool holds and did. Sizes in bytes.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct luma_stats_t {
    /// `sizeof(luma_stats_t)`.
    pub struct_size: usize,
    /// In blocks handed out, rounded sizes.
    pub allocated_bytes: u64,
    /// Obtained from the backend and not given back.
    pub reserved_bytes: u64,
    /// Highest `allocated_bytes` since the start or `luma_reset_peak`.
    pub peak_bytes: u64,
    /// Blocks handed out.
    pub live_blocks: u64,
    /// Free blocks that the pool keeps.
    pub free_blocks: u64,
    /// Regions held from the backend.
    pub segments: u64,
    /// Successful backend allocations, whatever the backend.
    pub cuda_malloc_calls: u64,
    /// Successful backend releases, whatever the backend.
    pub cuda_free_calls: u64,
    /// Sum of what callers asked for, live blocks.
    pub requested_bytes: u64,
    /// Highest `reserved_bytes` since the start or `luma_reset_peak`.
    pub peak_reserved_bytes: u64,
    /// The largest free block that the pool keeps.
    pub largest_free_block: u64,
    /// The pool's limit; 0: none.
    pub memory_limit: u64,
    /// Requests for memory, served or refused, zero-sized ones left out.
    pub alloc_calls: u64,
    /// Blocks given back by callers.
    pub free_calls: u64,
    /// Times cached memory was given back and the backend asked again.
    pub alloc_retries: u64,
    /// Requests refused for want of memory.
    pub out_of_memory_count: u64,
    /// Freed, and not to be used yet: in the order of a stream whose work is not known to be done (that
    /// stream may use it again, others not yet), or in the quarantine of checked mode (`LUMA_DEBUG`).
    pub pending_bytes: u64,
    /// Calls of out-of-memory handlers.
    pub handler_calls: u64,
    /// Events recorded on streams.
    pub event_records: u64,
    /// Times an event was asked whether its work is done.
    pub event_queries: u64,
    /// Times a stream was made to wait for the work of another one.
    pub stream_waits: u64,
    /// Times a request that would have failed waited for work to end.
    pub oom_waits: u64,
    /// How long those waits took in all, in nanoseconds.
    pub oom_wait_ns: u64,
}

/// What would have made a request fit. Values of `luma_oom_report_t::action`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_oom_action_t {
    /// Nothing that is known would have.
    LUMA_OOM_NONE = 0,
    /// The device has less than was asked for: `action_bytes`, or 0 if that is not known.
    LUMA_OOM_ASK_FOR_LESS = 1,
    /// A limit of `action_bytes` is enough (`luma_pool_set_limit`).
    LUMA_OOM_RAISE_LIMIT = 2,
    /// Freeing the block at `action_address`, of `action_bytes`, is enough. It is the smallest of those
    /// of which that is known.
    LUMA_OOM_FREE_BLOCK = 3,
    /// The end of the work of the stream `action_stream`, which `action_bytes` wait for, is enough.
    LUMA_OOM_WAIT_FOR_STREAM = 4,
    /// Giving back what another pool of the device holds and does not use is enough:
    /// `luma_pool_empty_cache(action_pool)` gives `action_bytes`.
    LUMA_OOM_EMPTY_OTHER_POOL = 5,
    /// Blocks must be freed, and no single one is known to be enough; `action_bytes` are lacking.
    LUMA_OOM_FREE_SEVERAL = 6,
}

/// What of a pool's memory waits for the work of a stream.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct luma_oom_stream_t {
    /// The stream: one more than what `cuStreamGetId` says; 0 is the legacy default stream. Where the driver
    /// does not number streams, its handle. `UINT64_MAX - 1`: all streams, whose work is waited for by what was
    /// freed in the place of `cuMemFree` (docs/interposition.md).
    pub stream_id: u64,
    /// The bytes that wait.
    pub bytes: u64,
    /// The blocks that wait.
    pub blocks: u64,
}

/// A request that failed for want of memory, and what its pool held at that moment. Sizes in bytes.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_oom_report_t {
    /// `sizeof(luma_oom_report_t)`.
    pub struct_size: usize,
    /// What was asked for.
    pub requested_bytes: u64,
    /// That, rounded up to 256; `UINT64_MAX` where no number holds it.
    pub rounded_bytes: u64,
    /// The alignment that was asked for, at least 256.
    pub alignment: u64,
    /// In blocks handed out, rounded sizes.
    pub allocated_bytes: u64,
    /// Blocks handed out.
    pub live_blocks: u64,
    /// Obtained from the backend and not given back.
    pub reserved_bytes: u64,
    /// The largest free block.
    pub largest_free_block: u64,
    /// Free, in wholly free segments.
    pub idle_bytes: u64,
    /// Free, in segments with live blocks.
    pub stuck_bytes: u64,
    /// Freed, and waiting for streams.
    pub pending_bytes: u64,
    /// Streams that something waits for.
    pub pending_streams: u64,
    /// Those with the most bytes, the most first; entries beyond `pending_streams` are zero.
    pub pending: [luma_oom_stream_t; 8],
    /// The pool's limit; 0: none.
    pub memory_limit: u64,
    /// What the device said that it still has, where `device_is_known`.
    pub device_free_bytes: u64,
    /// All that the device has; 0: it does not say.
    pub device_total_bytes: u64,
    /// Times that cached memory was given back and the backend asked again.
    pub give_backs: u64,
    /// Times that other threads or the device were waited for.
    pub waits: u64,
    /// How long, in nanoseconds.
    pub wait_ns: u64,
    /// Out-of-memory handlers called.
    pub handler_calls: u64,
    /// Whether the device said what it has free: 1 or 0.
    pub device_is_known: i32,
    /// A `luma_backend_t`.
    pub backend: i32,
    /// The device's number.
    pub device: i32,
    /// A `luma_oom_action_t`: the single action that would have made the request fit.
    pub action: i32,
    /// As the action says.
    pub action_bytes: u64,
    /// As the action says; NULL with other actions.
    pub action_address: *mut c_void,
    /// As the action says; NULL with other actions.
    pub action_pool: *mut luma_pool_t,
    /// As the action says.
    pub action_stream: u64,
}
