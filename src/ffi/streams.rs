//! Allocating and freeing in the order of streams.

use super::boundary::call;
use super::default_pool::{default_pool, foreign, with_other_owner};
use super::types::{luma_status_t, luma_stream_t};
use crate::backend::streams::Stream;
use crate::error::Result;
use crate::pool::{defaults, registry};
use core::ffi::c_void;

fn of(stream: luma_stream_t) -> Stream {
    Stream::of(stream as usize)
}

/// Allocates `bytes` bytes from the default pool of the current device, aligned to 256, for use in the
/// order of `stream`, a `CUstream` or `cudaStream_t` that lives. Does not wait for it.
///
/// What was queued on `stream` before this call may still be using the memory, for a block that it has
/// freed; what is queued on it afterwards has the block for itself. Other streams must be made to
/// wait for `stream` before they use it. A stream is made to wait for another one's work only where
/// neither free memory nor more of the device's can serve the request.
///
/// On a stream that is being captured, the block belongs to the graph: it serves nobody else until the
/// graph and all that was made of it are gone. Nothing is asked of the driver there that would end the
/// capture, and nothing is given back.
///
/// NULL is the legacy default stream, and the call is `luma_alloc`. Over host memory the stream means
/// nothing. Errors: as `luma_alloc`; what the driver says of the stream.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_alloc_async(bytes: usize, stream: luma_stream_t) -> *mut c_void {
    call(|| {
        let addr = default_pool()?.allocate_on(bytes as u64, 0, of(stream))?;
        Ok(addr.map_or(std::ptr::null_mut(), |addr| addr as *mut c_void))
    })
}

/// Frees a block of a default pool in the order of `stream`, which lives: what was queued on it before may
/// still use the block. Work on other streams has ended, or `stream` was made to wait for it, or they were
/// named by `luma_record_stream`. NULL for `ptr` does nothing and succeeds.
///
/// The same stream gets the memory again at once, other streams when its work is known to be done. The
/// stream may be destroyed after the call.
///
/// Errors: as `luma_free`; what the driver says of the stream. Nothing is freed then.
#[unsafe(no_mangle)]
pub extern "C" fn luma_free_async(ptr: *mut c_void, stream: luma_stream_t) -> luma_status_t {
    call(|| {
        if ptr.is_null() {
            return Ok(());
        }
        let addr = ptr as u64;
        let Some(pool) = defaults::owner(addr) else {
            return Err(foreign(ptr));
        };
        pool.free_on(addr, of(stream))
            .map_err(|error| with_other_owner(error, addr, Some(pool)))
    })
}

/// Says that work on `stream`, which lives, uses a live block of any pool too. When the block is freed, in
/// whatever order, it waits also for what is queued on `stream` by then.
///
/// The stream may be destroyed before the block is freed; the memory then comes back when everything in
/// the context is done, at the latest when it is needed. `luma_release_stream` spares that. NULL for `ptr`
/// does nothing and succeeds.
///
/// Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block; what the driver says
/// of the stream.
#[unsafe(no_mangle)]
pub extern "C" fn luma_record_stream(ptr: *mut c_void, stream: luma_stream_t) -> luma_status_t {
    call(|| {
        if ptr.is_null() {
            return Ok(());
        }
        let addr = ptr as u64;
        let default = defaults::owner(addr).filter(|pool| pool.usable_size(addr).is_some());
        match default.or_else(|| registry::pool_of(addr)) {
            Some(pool) => pool.record_stream(addr, of(stream)),
            None => Err(foreign(ptr)),
        }
    })
}

/// Says that a stream is about to be destroyed. Not needed; memory that waits for the stream then comes
/// back as soon as its work is done, even if no call names the stream any more.
///
/// Errors: what the driver says of the stream.
#[unsafe(no_mangle)]
pub extern "C" fn luma_release_stream(stream: luma_stream_t) -> luma_status_t {
    call(|| {
        let mut outcome: Result<()> = Ok(());
        for pool in registry::pools().filter(|pool| pool.is_open()) {
            outcome = outcome.and(pool.release_stream(of(stream)));
        }
        outcome
    })
}
