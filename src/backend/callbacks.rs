//! Memory from two functions of the user.

use super::streams::StreamSource;
use super::{Backend, BackendError, BackendResult, Memory};
use core::ffi::c_void;

/// The user's functions and the pointer that goes with them.
#[derive(Clone, Copy, Debug)]
pub struct Callbacks {
    alloc: unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void,
    free: unsafe extern "C" fn(ptr: *mut c_void, bytes: usize, user: *mut c_void),
    user: *mut c_void,
}

// SAFETY: the contract of `Callbacks::new` is that both functions may be called with `user` from
// any thread.
unsafe impl Send for Callbacks {}
// SAFETY: as above.
unsafe impl Sync for Callbacks {}

impl Callbacks {
    /// Memory from `alloc`, given back by `free`.
    ///
    /// # Safety
    /// Until the pool is gone, both functions may be called with `user` from any thread, several
    /// at once. `alloc` gives NULL or the address of `bytes` bytes that nobody else uses until they
    /// are handed to `free`.
    pub unsafe fn new(
        alloc: unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void,
        free: unsafe extern "C" fn(ptr: *mut c_void, bytes: usize, user: *mut c_void),
        user: *mut c_void,
    ) -> Self {
        Self { alloc, free, user }
    }
}

/// Memory from [`Callbacks`]. Whether the host may touch it, only the user knows; luma does not.
#[derive(Debug)]
pub struct CallbackBackend {
    callbacks: Callbacks,
}

impl CallbackBackend {
    /// Memory from `callbacks`.
    pub fn new(callbacks: Callbacks) -> Self {
        Self { callbacks }
    }
}

impl Backend for CallbackBackend {
    fn name(&self) -> &'static str {
        "callbacks"
    }

    fn is_host_accessible(&self) -> bool {
        false
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }

    fn stream_source(&self) -> StreamSource {
        StreamSource::Refused
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let size = usize::try_from(bytes).map_err(|_| BackendError::OutOfMemory)?;
        // SAFETY: the contract of `Callbacks::new`.
        let ptr = unsafe { (self.callbacks.alloc)(size, self.callbacks.user) };
        if ptr.is_null() {
            return Err(BackendError::OutOfMemory);
        }
        Ok(ptr as u64)
    }

    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        // SAFETY: the contract of `Callbacks::new`; the address and size are those of one call of
        // `alloc`, given back once.
        unsafe { (self.callbacks.free)(addr as *mut c_void, bytes as usize, self.callbacks.user) };
        Ok(())
    }
}
