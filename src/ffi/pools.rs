//! Explicit pools.

use super::boundary::{call, null};
use super::default_pool::with_other_owner;
use super::process;
use super::types::{
    luma_backend_t, luma_growth_t, luma_pool_config_t, luma_pool_t, luma_preset_t, luma_stats_t,
    luma_status_t, luma_stream_t, luma_switch_t,
};
use super::versioned::{self, Versioned};
use crate::alloc::Growth;
use crate::backend::callbacks::Callbacks;
use crate::backend::streams::Stream;
use crate::config::Limit;
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::pool::{BackendKind, Pool, PoolConfig, Preset, registry};
use crate::stats::Stats;
use crate::text::text;
use core::ffi::{c_int, c_void};

// SAFETY: plain C structs of integers and nullable pointers that begin with their size.
unsafe impl Versioned for luma_pool_config_t {
    const NAME: &'static str = "luma_pool_config_t";
    const INIT: &'static str = "LUMA_POOL_CONFIG_INIT";
    const FIRST_SIZE: usize = 88;
}

// SAFETY: as above.
unsafe impl Versioned for luma_stats_t {
    const NAME: &'static str = "luma_stats_t";
    const INIT: &'static str = "LUMA_STATS_INIT";
    const FIRST_SIZE: usize = 144;
}

pub(super) fn to_stats(stats: &Stats) -> luma_stats_t {
    luma_stats_t {
        struct_size: size_of::<luma_stats_t>(),
        allocated_bytes: stats.allocated_bytes,
        reserved_bytes: stats.reserved_bytes,
        peak_bytes: stats.peak_bytes,
        live_blocks: stats.live_blocks,
        free_blocks: stats.free_blocks,
        segments: stats.segments,
        cuda_malloc_calls: stats.backend_allocations,
        cuda_free_calls: stats.backend_releases,
        requested_bytes: stats.requested_bytes,
        peak_reserved_bytes: stats.peak_reserved_bytes,
        largest_free_block: stats.largest_free_block,
        memory_limit: stats.memory_limit,
        alloc_calls: stats.alloc_calls,
        free_calls: stats.free_calls,
        alloc_retries: stats.alloc_retries,
        out_of_memory_count: stats.out_of_memory_count,
        pending_bytes: stats.pending_bytes,
        event_records: stats.event_records,
        event_queries: stats.event_queries,
        stream_waits: stats.stream_waits,
        oom_waits: stats.oom_waits,
        oom_wait_ns: stats.oom_wait_ns,
        handler_calls: stats.handler_calls,
    }
}

impl From<&Stats> for luma_stats_t {
    fn from(stats: &Stats) -> Self {
        to_stats(stats)
    }
}

/// The meaning of an enum-like field.
fn choice<T: Copy>(field: &str, value: i32, choices: &[(i32, T)]) -> Result<T> {
    choices
        .iter()
        .find(|(number, _)| *number == value)
        .map(|&(_, choice)| choice)
        .ok_or_else(|| {
            Error::new(
                Status::InvalidValue,
                text!("{field} is {value}, which means nothing"),
            )
        })
}

fn set(value: u64) -> Option<u64> {
    (value != 0).then_some(value)
}

/// Reads a configuration.
///
/// # Safety
/// `config` is NULL or points to a configuration of `config->struct_size` bytes, whose callbacks stay
/// valid as long as a pool made of it.
pub(super) unsafe fn parse_config(config: *const luma_pool_config_t) -> Result<PoolConfig> {
    // SAFETY: the caller's contract.
    let c = unsafe { versioned::read(config) }?;
    let backend = choice(
        "backend",
        c.backend,
        &[
            (luma_backend_t::LUMA_BACKEND_AUTO as i32, BackendKind::Auto),
            (luma_backend_t::LUMA_BACKEND_CUDA as i32, BackendKind::Cuda),
            (luma_backend_t::LUMA_BACKEND_HOST as i32, BackendKind::Host),
            (
                luma_backend_t::LUMA_BACKEND_CALLBACKS as i32,
                BackendKind::Callbacks,
            ),
            (
                luma_backend_t::LUMA_BACKEND_CUDA_HOST as i32,
                BackendKind::CudaHost,
            ),
            (
                luma_backend_t::LUMA_BACKEND_CUDA_MANAGED as i32,
                BackendKind::CudaManaged,
            ),
            (
                luma_backend_t::LUMA_BACKEND_SIMULATED as i32,
                BackendKind::Simulated,
            ),
        ],
    )?;
    let preset = choice(
        "preset",
        c.preset,
        &[
            (luma_preset_t::LUMA_PRESET_DEFAULT as i32, Preset::Default),
            (luma_preset_t::LUMA_PRESET_XLA as i32, Preset::Xla),
            (luma_preset_t::LUMA_PRESET_LUMA_0_3 as i32, Preset::Luma03),
        ],
    )?;
    let growth = choice(
        "growth",
        c.growth,
        &[
            (luma_growth_t::LUMA_GROWTH_DEFAULT as i32, None),
            (luma_growth_t::LUMA_GROWTH_FIXED as i32, Some(Growth::Fixed)),
            (
                luma_growth_t::LUMA_GROWTH_DOUBLING as i32,
                Some(Growth::Doubling),
            ),
            (luma_growth_t::LUMA_GROWTH_EXACT as i32, Some(Growth::Exact)),
            (
                luma_growth_t::LUMA_GROWTH_PROPORTIONAL as i32,
                Some(Growth::Proportional),
            ),
            (luma_growth_t::LUMA_GROWTH_PAGED as i32, Some(Growth::Paged)),
        ],
    )?;
    let switch = |field, value| {
        choice(
            field,
            value,
            &[
                (luma_switch_t::LUMA_SWITCH_DEFAULT as i32, None),
                (luma_switch_t::LUMA_SWITCH_ON as i32, Some(true)),
                (luma_switch_t::LUMA_SWITCH_OFF as i32, Some(false)),
            ],
        )
    };
    let callbacks = match (c.alloc_fn, c.free_fn) {
        // SAFETY: the caller's contract.
        (Some(alloc), Some(free)) => Some(unsafe { Callbacks::new(alloc, free, c.user) }),
        (None, None) => None,
        _ => {
            return Err(Error::new(
                Status::InvalidValue,
                "alloc_fn and free_fn are set together or not at all",
            ));
        }
    };
    if callbacks.is_some() && backend != BackendKind::Callbacks {
        return Err(Error::new(
            Status::InvalidValue,
            "alloc_fn and free_fn are for LUMA_BACKEND_CALLBACKS; set backend to that",
        ));
    }
    Ok(PoolConfig {
        backend,
        device: c.device,
        preset,
        growth,
        memory_limit: set(c.memory_limit).map(Limit::Bytes),
        min_segment: set(c.min_segment_bytes),
        min_split: set(c.min_split_bytes),
        split_when_double: switch("split_when_double", c.split_when_double)?,
        release_on_failure: switch("release_on_failure", c.release_on_failure)?,
        capacity: set(c.capacity),
        callbacks,
        whole_segments: false,
        tells_streams_apart: false,
        checks: None,
    })
}

/// The pool of a handle that C passed.
#[inline]
fn pool(handle: *mut luma_pool_t) -> Result<&'static Pool> {
    registry::pool(handle as usize)
}

/// Makes a pool as `config` says and writes its handle to `out`. It lives until
/// `luma_pool_destroy`.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL or a bad field, `LUMA_ERROR_NO_DEVICE`,
/// `LUMA_ERROR_UNSUPPORTED`.
///
/// # Safety
/// `config` is NULL or points to a `luma_pool_config_t` of `config->struct_size` bytes; callbacks in it
/// stay valid until the pool is destroyed. `out` is NULL or valid for writing.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_pool_create(
    config: *const luma_pool_config_t,
    out: *mut *mut luma_pool_t,
) -> luma_status_t {
    call(|| {
        if out.is_null() {
            return Err(null("out"));
        }
        process::start();
        // SAFETY: the caller's contract.
        let config = unsafe { parse_config(config) }?;
        let handle = registry::create(&config)?;
        // SAFETY: not NULL, and the caller's contract.
        unsafe { out.write(handle as *mut luma_pool_t) };
        Ok(())
    })
}

/// Gives everything back to the backend, live blocks too (their number is logged, and in checked mode
/// each of them), and ends the pool. Waits for backend calls of other threads. Later calls with this handle fail.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, a default pool, a pool that was destroyed, or a call
/// from inside a backend's callback.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_pool_destroy(pool: *mut luma_pool_t) -> luma_status_t {
    call(|| {
        let live = registry::destroy(pool as usize)?;
        if live > 0 {
            log::log(Level::Warning, || {
                text!("a pool was destroyed with {live} live blocks")
            });
        }
        Ok(())
    })
}

/// Allocates `bytes` bytes from a pool, at a multiple of `alignment` (0 or a power of two, less than
/// 256 is raised to 256), for use in the order of `stream`.
///
/// As `luma_alloc_async` otherwise; with NULL, the legacy default stream, as `luma_alloc`. A pool over
/// callbacks takes NULL only (`LUMA_ERROR_UNSUPPORTED`).
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_pool_alloc(
    pool: *mut luma_pool_t,
    bytes: usize,
    alignment: usize,
    stream: luma_stream_t,
) -> *mut c_void {
    call(|| {
        let pool = self::pool(pool)?;
        let stream = Stream::of(stream as usize);
        let addr = pool.allocate_on(bytes as u64, alignment as u64, stream)?;
        Ok(addr.map_or(std::ptr::null_mut(), |addr| addr as *mut c_void))
    })
}

/// Frees a block of a pool in the order of `stream`, as `luma_free_async`; with NULL as `luma_free`. A
/// NULL pointer does nothing and succeeds.
///
/// Errors: `LUMA_ERROR_INVALID_POINTER` as `luma_free`; `LUMA_ERROR_INVALID_VALUE` for a bad pool.
#[unsafe(no_mangle)]
pub extern "C" fn luma_pool_free(
    pool: *mut luma_pool_t,
    ptr: *mut c_void,
    stream: luma_stream_t,
) -> luma_status_t {
    call(|| {
        let pool = self::pool(pool)?;
        if ptr.is_null() {
            return Ok(());
        }
        pool.free_on(ptr as u64, Stream::of(stream as usize))
            .map_err(|error| with_other_owner(error, ptr as u64, Some(pool)))
    })
}

/// Gives all free memory of a pool back to its backend. Gives the bytes that went; 0 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn luma_pool_empty_cache(pool: *mut luma_pool_t) -> usize {
    call(|| Ok(self::pool(pool)?.empty_cache()? as usize))
}

/// Writes the statistics of a pool, as `luma_stats`.
///
/// # Safety
/// `out` is NULL or points to a `luma_stats_t` of `out->struct_size` bytes.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_pool_stats(
    pool: *mut luma_pool_t,
    out: *mut luma_stats_t,
) -> luma_status_t {
    // SAFETY: the caller's contract.
    call(|| unsafe { versioned::write(out, || Ok(to_stats(&self::pool(pool)?.stats()?))) })
}

/// Walks all book-keeping of a pool, as `luma_check`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_pool_check(pool: *mut luma_pool_t) -> luma_status_t {
    call(|| self::pool(pool)?.check())
}

/// Sets the most bytes that a pool may hold from its backend (0: no limit), and gives back what is
/// free beyond it.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` when live blocks keep more than that in use; nothing changes
/// then.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_pool_set_limit(pool: *mut luma_pool_t, bytes: u64) -> luma_status_t {
    call(|| self::pool(pool)?.set_limit(bytes))
}

/// Whether the host may read and write the memory of a pool: 1 or 0; 0 on failure. What callbacks
/// give counts as memory that it may not.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_pool_is_host_accessible(pool: *mut luma_pool_t) -> c_int {
    call(|| Ok(c_int::from(self::pool(pool)?.is_host_accessible()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_versions_sizes_hold() {
        assert_eq!(
            luma_pool_config_t::FIRST_SIZE,
            size_of::<luma_pool_config_t>()
        );
        assert_eq!(
            luma_stats_t::FIRST_SIZE,
            std::mem::offset_of!(luma_stats_t, handler_calls)
        );
    }
}
