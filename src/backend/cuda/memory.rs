//! The three kinds of CUDA memory as backends.

use super::context::{
    Context, LEGACY_STREAM, check_default_stream, relaxed, wait_for_default_stream,
};
use super::driver::{Driver, Handle};
use super::failure::Failure;
use super::pages::VirtualMemory;
use super::streams;
use crate::backend::streams::{Event, StreamSource};
use crate::backend::{Backend, BackendError, BackendResult, Memory, Pages};
use crate::size::GRAIN;
use core::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for every context of the process.
const PORTABLE: u32 = 1;
/// `CU_MEM_ATTACH_GLOBAL`: usable by every stream.
const ATTACH_GLOBAL: u32 = 1;

/// Drivers give device memory at multiples of this, which textures need, and promise half of it.
const USUAL_ALIGN: u64 = 512;

/// What kind of memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A device's memory.
    Device,
    /// Pinned host memory.
    Pinned,
    /// Managed memory, which moves between host and device.
    Managed,
}

/// Memory of the CUDA driver, in one context.
#[derive(Debug)]
pub struct CudaBackend {
    context: Context,
    kind: Kind,
    virtual_memory: Option<VirtualMemory>,
    /// Every address so far was a multiple of this.
    segment_align: AtomicU64,
}

impl CudaBackend {
    pub(super) fn new(context: Context, kind: Kind) -> Result<Self, Failure> {
        let virtual_memory = match kind {
            // Virtual memory outlives a context that is destroyed, and nobody would be told: only
            // memory of the context itself goes with it.
            Kind::Device if context.is_primary() => {
                let total = context
                    .within(memory_info)?
                    .map_or(0, |memory| memory.total);
                VirtualMemory::of(&context, total)
            }
            _ => None,
        };
        Ok(Self {
            context,
            kind,
            virtual_memory,
            segment_align: AtomicU64::new(match kind {
                Kind::Device => USUAL_ALIGN,
                Kind::Pinned | Kind::Managed => GRAIN,
            }),
        })
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    fn told(&self, failure: Failure) -> BackendError {
        failure.into_backend_error(self.context.driver())
    }

    /// What was asked of a context that is gone is done.
    fn unless_gone(&self, outcome: Result<(), Failure>) -> BackendResult<()> {
        match outcome {
            Err(failure) if !failure.took_the_memory() => {
                Err(failure.without_request(self.context.driver()))
            }
            _ => Ok(()),
        }
    }

    /// Makes calls of virtual memory, which needs no context, so that they break no capture.
    fn relaxed<T>(&self, calls: impl FnOnce() -> BackendResult<T>) -> BackendResult<T> {
        relaxed(self.context.driver(), || Ok(calls()))
            .unwrap_or_else(|failure| Err(self.told(failure)))
    }

    fn virtual_memory(&self) -> BackendResult<&VirtualMemory> {
        self.virtual_memory
            .as_ref()
            .ok_or_else(|| crate::backend::no_pages(self.name()))
    }

    /// The same, once its context is there: after a reset it is made again for what is to be used in it,
    /// and a forked child gets no further.
    fn usable_virtual_memory(&self) -> BackendResult<&VirtualMemory> {
        self.context
            .usable()
            .map_err(|failure| self.told(failure))?;
        let virtual_memory = self.virtual_memory()?;
        virtual_memory.bury_orphans();
        Ok(virtual_memory)
    }

    /// Makes calls that give virtual memory back, so that they break no capture.
    fn relaxed_to_give_back(
        &self,
        calls: impl Fn(&VirtualMemory) -> BackendResult<()>,
    ) -> BackendResult<()> {
        let virtual_memory = self.virtual_memory()?;
        match relaxed(self.context.driver(), || Ok(calls(virtual_memory))) {
            Ok(outcome) => outcome,
            // Memory that is gone is not in the books either.
            Err(failure) if failure.is_the_end() => calls(virtual_memory),
            Err(failure) => Err(failure.without_request(self.context.driver())),
        }
    }

    /// Whether the driver says that it has less than so many bytes. It may still find them: managed
    /// memory makes room.
    fn is_scarce(&self, bytes: u64) -> bool {
        let memory = self.memory().ok().flatten();
        memory.is_some_and(|memory| memory.free < bytes)
    }
}

/// What the current context's device has; `None`: this driver does not tell.
fn memory_info(driver: &Driver) -> Result<Option<Memory>, Failure> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the out-parameters are valid for writing.
    match unsafe { driver.memory_info(&mut free, &mut total) } {
        Ok(()) => Ok(Some(Memory {
            free: free as u64,
            total: total as u64,
        })),
        Err(failure) if failure.is_missing() => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Device => "cuda",
            Kind::Pinned => "cuda_host",
            Kind::Managed => "cuda_managed",
        }
    }

    fn is_host_accessible(&self) -> bool {
        self.kind != Kind::Device
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        match self.kind {
            Kind::Device => self
                .context
                .within(memory_info)
                .map_err(|failure| failure.without_request(self.context.driver())),
            // Pinned memory is as much as the system lets go, and managed memory may be more than
            // the device has.
            Kind::Pinned | Kind::Managed => Ok(None),
        }
    }

    fn device(&self) -> i32 {
        self.context.device()
    }

    fn device_key(&self) -> Option<u64> {
        (self.kind == Kind::Device).then_some(self.context.device() as u64)
    }

    fn is_lost_by_reset(&self, device: i32) -> bool {
        self.context.is_primary() && self.context.device() == device
    }

    fn survives_fork(&self) -> bool {
        false
    }

    fn forget(&self) {
        if let Some(virtual_memory) = &self.virtual_memory {
            virtual_memory.forget();
        }
        self.context.forget();
    }

    fn segment_align(&self) -> u64 {
        self.segment_align.load(Ordering::Relaxed)
    }

    fn largest_align(&self) -> u64 {
        1 << 46
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let bytes = usize::try_from(bytes).map_err(|_| BackendError::OutOfMemory)?;
        let allocated = self.context.within(|driver| {
            let mut addr = 0;
            let mut pointer = null_mut();
            // SAFETY: the out-parameters are valid for writing.
            unsafe {
                match self.kind {
                    Kind::Device => driver.alloc(&mut addr, bytes)?,
                    Kind::Managed => driver.managed_alloc(&mut addr, bytes, ATTACH_GLOBAL)?,
                    Kind::Pinned => {
                        driver.host_alloc(&mut pointer, bytes, PORTABLE)?;
                        addr = pointer as u64;
                    }
                }
            }
            Ok(addr)
        });
        let addr = allocated.map_err(|failure| self.told(failure))?;
        if addr % self.segment_align() != 0 {
            // Larger segments are asked for from now on where it counts.
            self.segment_align.store(GRAIN, Ordering::Relaxed);
        }
        Ok(addr)
    }

    fn release(&self, addr: u64, _: u64) -> BackendResult<()> {
        // SAFETY: the pool gives back what `allocate` gave, once, when no block of it is live or its
        // owner has destroyed the pool.
        let released = self.context.within(|driver| unsafe {
            match self.kind {
                Kind::Device | Kind::Managed => driver.free(addr),
                Kind::Pinned => driver.host_free(addr as *mut c_void),
            }
        });
        self.unless_gone(released)
    }

    fn pages(&self) -> Option<Pages> {
        let virtual_memory = self.virtual_memory.as_ref()?;
        Some(Pages::of(virtual_memory.page()))
    }

    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        self.relaxed(|| self.usable_virtual_memory()?.reserve(least))
    }

    fn unreserve(&self, addr: u64, span: u64, _: u64) -> BackendResult<()> {
        self.relaxed_to_give_back(|virtual_memory| virtual_memory.unreserve(addr, span))
    }

    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.relaxed(|| {
            let virtual_memory = self.usable_virtual_memory()?;
            if virtual_memory.is_much(bytes) && self.is_scarce(bytes) {
                virtual_memory.probe(bytes)?;
            }
            virtual_memory.map(addr, bytes)
        })
    }

    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.relaxed_to_give_back(|virtual_memory| virtual_memory.unmap(addr, bytes))
    }

    fn stream_source(&self) -> StreamSource {
        StreamSource::Cuda
    }

    fn domain(&self) -> BackendResult<usize> {
        match self.context.usable() {
            Ok(context) => streams::enter(self.context.driver(), context),
            Err(failure) => Err(self.told(failure)),
        }
    }

    fn is_default_idle(&self) -> BackendResult<bool> {
        let asked = self.context.within(|driver| {
            check_default_stream(driver)?;
            // SAFETY: the handle means the default stream in every context.
            unsafe { driver.stream_query(LEGACY_STREAM) }
        });
        match asked {
            Err(failure) if failure.is_not_ready() => Ok(false),
            outcome => self.unless_gone(outcome).map(|()| true),
        }
    }

    fn record_default(&self, event: Event) -> BackendResult<()> {
        let recorded = self.context.within(|driver| {
            check_default_stream(driver)?;
            // SAFETY: the event lives, and the handle means the default stream in every context.
            unsafe { driver.event_record(event.handle, LEGACY_STREAM) }
        });
        recorded.map_err(|failure| failure.without_request(self.context.driver()))
    }

    fn wait_for_default(&self) -> BackendResult<()> {
        self.unless_gone(self.context.within(wait_for_default_stream))
    }

    fn trim(&self) {
        if self.kind == Kind::Pinned {
            return;
        }
        let (driver, device) = (self.context.driver(), self.context.device());
        let mut pools: [Handle; 2] = [0; 2];
        // Nobody relies on it.
        // SAFETY: the out-parameters are valid for writing, and the pools are those that the device has.
        let _ = relaxed(driver, || unsafe {
            let _ = driver.default_pool(&mut pools[0], device);
            let _ = driver.current_pool(&mut pools[1], device);
            if pools[1] == pools[0] {
                pools[1] = 0;
            }
            for pool in pools.into_iter().filter(|&pool| pool != 0) {
                let _ = driver.pool_trim(pool, 0);
            }
            Ok(())
        });
    }
}
