//! The functions that PyTorch's pluggable allocator takes. None of them gives an error that PyTorch would
//! look at, so what fails is logged, too.

use super::boundary::{Returned, call};
use super::default_pool::{foreign, with_other_owner};
use super::process;
use super::types::{luma_status_t, luma_stream_t};
use crate::backend::streams::Stream;
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::pool::{Pool, defaults};
use crate::text::text;
use core::ffi::{c_int, c_void};

impl Returned for () {
    type Success = ();
    fn success((): ()) -> Self {}
    fn failure(_: luma_status_t) -> Self {}
}

/// Runs the body of a call whose caller does not learn that it failed.
#[inline]
fn told<R: Returned>(name: &str, body: impl FnOnce() -> Result<R::Success>) -> R {
    call(|| body().inspect_err(|error| tell(name, error)))
}

#[cold]
fn tell(name: &str, error: &Error) {
    log::log(Level::Error, || text!("{name}: {error}"));
}

/// The default pool that has a block.
fn owner(ptr: *mut c_void) -> Result<&'static Pool> {
    defaults::owner(ptr as u64).ok_or_else(|| foreign(ptr))
}

/// Allocates `size` bytes from the default pool of `device`, in the order of `stream`, as
/// `luma_alloc_async` does: the first function of PyTorch's `CUDAPluggableAllocator`. The device need not
/// be the current one, and the calling thread's current context is the same afterwards.
///
/// Gives NULL for no bytes, with `LUMA_SUCCESS`, and NULL on failure. PyTorch does not look whether it got
/// NULL: what then uses the tensor fails, at some later place. So every failure is logged as well
/// (`LUMA_LOG=error`).
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for a negative size; those of `luma_alloc_async` and
/// `luma_default_pool`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_torch_alloc(
    size: isize,
    device: c_int,
    stream: luma_stream_t,
) -> *mut c_void {
    told("luma_torch_alloc", || {
        let bytes = u64::try_from(size)
            .map_err(|_| Error::new(Status::InvalidValue, text!("the size is {size} bytes")))?;
        process::start();
        let pool = defaults::of_device(device)?.pool();
        let addr = pool.allocate_on(bytes, 0, Stream::of(stream as usize))?;
        Ok(addr.map_or(std::ptr::null_mut(), |addr| addr as *mut c_void))
    })
}

/// Frees a block of a default pool in the order of `stream`, as `luma_free_async` does: the second function
/// of PyTorch's `CUDAPluggableAllocator`. Where nothing can be freed in that order, since the driver has shut
/// down or the stream's capture is broken, the memory waits for all work of its context instead of being
/// lost. NULL for `ptr` does nothing.
///
/// `size` and `device` are what PyTorch passes, and mean nothing here: the block knows both. `stream` is the
/// one that the block was allocated on, which PyTorch remembers: it must live. A free that fails changes
/// nothing, is logged, and leaves the thread's last status and message.
///
/// Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block of a default pool.
#[unsafe(no_mangle)]
pub extern "C" fn luma_torch_free(
    ptr: *mut c_void,
    size: isize,
    device: c_int,
    stream: luma_stream_t,
) {
    let _ = (size, device);
    call(|| {
        free(ptr, stream).inspect_err(|error| {
            // Checked mode has told of a bad free, with the call stacks.
            if !environment().debug || error.status() != Status::InvalidPointer {
                tell("luma_torch_free", error);
            }
        })
    })
}

#[inline]
fn free(ptr: *mut c_void, stream: luma_stream_t) -> Result<()> {
    if ptr.is_null() {
        return Ok(());
    }
    let addr = ptr as u64;
    let pool = owner(ptr)?;
    let freed = pool.free_on(addr, Stream::of(stream as usize));
    let freed = match freed {
        // It was the stream, not the block: the driver has shut down, say, or the capture is broken.
        Err(error) if error.status() != Status::InvalidPointer => {
            pool.free_unordered(addr).map_err(|_| error)
        }
        freed => freed,
    };
    freed.map_err(|error| with_other_owner(error, addr, Some(pool)))
}

/// Says that work on `stream` uses a block of a default pool, too, as `luma_record_stream` does: for
/// `set_record_stream_fn` of PyTorch's allocator. Without it `Tensor.record_stream` does nothing, and memory
/// that was used on two streams may serve one before the other is done.
///
/// A failure is logged, and leaves the thread's last status and message: those of `luma_record_stream`.
#[unsafe(no_mangle)]
pub extern "C" fn luma_torch_record_stream(ptr: *mut c_void, stream: luma_stream_t) {
    told("luma_torch_record_stream", || {
        if ptr.is_null() {
            return Ok(());
        }
        owner(ptr)?.record_stream(ptr as u64, Stream::of(stream as usize))
    })
}

/// Gives all free memory of all default pools back to the driver: for `set_reset_fn` of PyTorch's allocator,
/// which `torch.cuda.empty_cache()` calls.
///
/// A failure is logged, and leaves the thread's last status and message; the other pools are emptied
/// nevertheless.
#[unsafe(no_mangle)]
pub extern "C" fn luma_torch_empty_cache() {
    told("luma_torch_empty_cache", || {
        let mut outcome = Ok(());
        for pool in defaults::pools() {
            outcome = outcome.and(pool.empty_cache().map(drop));
        }
        outcome
    })
}

/// Limits the default pool of `device` to a part of the device's memory, between 0 and 1: for
/// `set_memory_fraction_fn` of PyTorch's allocator, which `torch.cuda.set_per_process_memory_fraction` calls.
/// 0 leaves no memory at all.
///
/// A failure is logged, and leaves the thread's last status and message: `LUMA_ERROR_INVALID_VALUE` for
/// another number, or when live blocks keep more than that in use; those of `luma_default_pool` and
/// `luma_memory_info`. Nothing changes then.
#[unsafe(no_mangle)]
pub extern "C" fn luma_torch_set_memory_fraction(fraction: f64, device: c_int) {
    told("luma_torch_set_memory_fraction", || {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::new(
                Status::InvalidValue,
                text!("the fraction is {fraction}, not between 0 and 1"),
            ));
        }
        process::start();
        let pool = defaults::of_device(device)?.pool();
        let bytes = pool.memory()?.total as f64 * fraction;
        // A limit of 0 would be none.
        pool.set_limit((bytes as u64).max(1))
    })
}
