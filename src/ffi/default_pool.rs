//! The default pools: `luma_alloc`, `luma_free` and what goes with them.

use super::boundary::{call, null};
use super::last_error;
use super::pools::{parse_config, to_stats};
use super::process;
use super::types::{luma_pool_config_t, luma_pool_t, luma_stats_t, luma_status_t};
use super::versioned;
use crate::error::{Error, Result, Status};
use crate::pool::{Pool, checked, defaults, registry};
use crate::text::text;
use core::ffi::{c_int, c_void};

/// The current device's default pool.
#[inline]
pub(super) fn default_pool() -> Result<&'static Pool> {
    if !defaults::exist() {
        process::start();
    }
    Ok(defaults::current()?.pool())
}

/// Allocates `bytes` bytes from the default pool of the current device, aligned to 256.
///
/// The current device is that of the calling thread's current CUDA context; a context other than the
/// device's primary one has a pool of its own. Without a current context it is device 0. The current
/// context is never changed.
///
/// Gives NULL for no bytes, with `LUMA_SUCCESS`, and NULL on failure. The block belongs to the caller
/// until `luma_free`. Sizes are rounded up to 256; any size is safe to ask for.
///
/// Errors: `LUMA_ERROR_OUT_OF_MEMORY`, `LUMA_ERROR_NO_DEVICE`, or what the backend fails with.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_alloc(bytes: usize) -> *mut c_void {
    call(|| default_alloc(bytes, 0))
}

/// Allocates as `luma_alloc` does, at a multiple of `alignment`: 0 or a power of two; less than 256
/// is raised to 256.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for another alignment; those of `luma_alloc`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_alloc_aligned(bytes: usize, alignment: usize) -> *mut c_void {
    call(|| default_alloc(bytes, alignment))
}

#[inline]
fn default_alloc(bytes: usize, alignment: usize) -> Result<*mut c_void> {
    let addr = default_pool()?.allocate(bytes as u64, alignment as u64)?;
    Ok(addr.map_or(std::ptr::null_mut(), |addr| addr as *mut c_void))
}

/// Frees a block of a default pool, whatever device is current. NULL does nothing and succeeds.
///
/// Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block of a default
/// pool. Nothing is changed then, and the message says what lies there.
#[unsafe(no_mangle)]
pub extern "C" fn luma_free(ptr: *mut c_void) -> luma_status_t {
    call(|| {
        if ptr.is_null() {
            return Ok(());
        }
        let Some(pool) = defaults::owner(ptr as u64) else {
            return Err(foreign(ptr));
        };
        pool.free(ptr as u64)
            .map_err(|error| with_other_owner(error, ptr as u64, Some(pool)))
    })
}

/// The failure of a call about a block, where there is no default pool yet.
#[cold]
pub(super) fn foreign(ptr: *mut c_void) -> Error {
    let error = Error::new(
        Status::InvalidPointer,
        text!("{ptr:p} is not from this pool, which nothing was allocated from"),
    );
    with_other_owner(error, ptr as u64, None)
}

/// Adds to the message of a bad free which other pool has the memory. In checked mode it is logged, too.
#[cold]
pub(super) fn with_other_owner(error: Error, addr: u64, pool: Option<&'static Pool>) -> Error {
    if error.status() != Status::InvalidPointer {
        return error;
    }
    let error = name_other_owner(error, addr, pool);
    checked::tell_bad_free(&error);
    error
}

fn name_other_owner(error: Error, addr: u64, pool: Option<&'static Pool>) -> Error {
    let hint = match registry::other_owner(addr, pool) {
        Some((_, true)) => "; it is in a default pool: free it with luma_free",
        Some((_, false)) => "; it is in another pool: free it with luma_pool_free and that pool",
        None => return error,
    };
    Error::new(error.status(), text!("{}{hint}", error.message()))
}

/// Gives all free memory of the current device's default pool back to the backend: wholly free
/// segments, and whole free pages. Gives the bytes that went; 0 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn luma_empty_cache() -> usize {
    call(|| Ok(default_pool()?.empty_cache()? as usize))
}

/// Writes the statistics of the current device's default pool. `out->struct_size` must be set
/// (`LUMA_STATS_INIT`).
///
/// Errors: `LUMA_ERROR_INVALID_VALUE`, `LUMA_ERROR_NO_DEVICE`.
///
/// # Safety
/// `out` is NULL or points to a `luma_stats_t` of `out->struct_size` bytes.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_stats(out: *mut luma_stats_t) -> luma_status_t {
    // SAFETY: the caller's contract.
    call(|| unsafe { versioned::write(out, || Ok(to_stats(&default_pool()?.stats()?))) })
}

/// Begins `peak_bytes` and `peak_reserved_bytes` of the current device's default pool anew, at what
/// is held now.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_reset_peak() -> luma_status_t {
    call(|| default_pool()?.reset_peak())
}

/// Walks all book-keeping of the current device's default pool. Linear in the number of blocks. In checked
/// mode (`LUMA_DEBUG`) it also looks at the blocks in quarantine.
///
/// Errors: `LUMA_ERROR_CORRUPTED`; the message names the first rule that is broken, or the first write to
/// a freed block that was found since it last named one.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_check() -> luma_status_t {
    call(|| default_pool()?.check())
}

/// The bytes of the live block of a default pool that begins at `ptr`, at least those asked for;
/// 0: there is none.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_usable_size(ptr: *const c_void) -> usize {
    call(|| {
        let size = defaults::owner(ptr as u64).and_then(|pool| pool.usable_size(ptr as u64));
        Ok(size.unwrap_or(0) as usize)
    })
}

/// Writes the bytes that the current device's default pool may still take from the device, and all
/// that the device has.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, `LUMA_ERROR_NO_DEVICE`, `LUMA_ERROR_UNSUPPORTED` where
/// the backend does not say.
///
/// # Safety
/// Both pointers are NULL or valid for writing.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_memory_info(
    free_bytes: *mut usize,
    total_bytes: *mut usize,
) -> luma_status_t {
    call(|| {
        if free_bytes.is_null() {
            return Err(null("free_bytes"));
        }
        if total_bytes.is_null() {
            return Err(null("total_bytes"));
        }
        let memory = default_pool()?.memory()?;
        // SAFETY: neither is NULL, and the caller's contract.
        unsafe {
            free_bytes.write(memory.free as usize);
            total_bytes.write(memory.total as usize);
        }
        Ok(())
    })
}

/// Makes the default pool as `config` says, before its first use. Fields that are 0 are what the
/// environment says. Without this call the first use makes it.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` after the first use or for a bad field,
/// `LUMA_ERROR_NO_DEVICE`.
///
/// # Safety
/// `config` is NULL or points to a `luma_pool_config_t` of `config->struct_size` bytes. Callbacks in
/// it stay valid until the process ends.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_init(config: *const luma_pool_config_t) -> luma_status_t {
    call(|| {
        process::start();
        // SAFETY: the caller's contract.
        let config = unsafe { parse_config(config) }?;
        defaults::init(&config)
    })
}

/// Forgets everything that pools of a device's memory hold in its primary context, which was reset: its
/// memory is gone, and its pointers are refused from now on. No driver call is made for that. To be called
/// after `cudaDeviceReset` or `cuDevicePrimaryCtxReset`, and before anything else of luma. The pools go on,
/// default and other ones: their next growth makes the context again. Host memory of a default pool, which
/// survives a reset, is given back to the system.
///
/// Errors: `LUMA_ERROR_NO_DEVICE`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_device_reset(device: c_int) -> luma_status_t {
    call(|| defaults::device_reset(device))
}

/// The default pool of a device (`LUMA_CURRENT_DEVICE`: the calling thread's current one), made if it
/// does not exist; NULL on failure. It lives until the process ends.
///
/// Errors: `LUMA_ERROR_NO_DEVICE`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_default_pool(device: c_int) -> *mut luma_pool_t {
    call(|| {
        process::start();
        Ok(defaults::of_device(device)?.handle() as *mut luma_pool_t)
    })
}

/// The status of this thread's last luma call other than this one and `luma_last_error`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_last_status() -> luma_status_t {
    last_error::status()
}
