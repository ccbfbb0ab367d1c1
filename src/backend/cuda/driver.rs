//! The functions of the CUDA driver, found once.
//!
//! The library is loaded by its runtime name, which the loader's cache knows and which the stub
//! libraries of CUDA toolkits, found first under the name for linking, do not have. A status code is a
//! number, since newer drivers have codes that are not known here, and a function may be missing:
//! an old driver costs only what needs it.

use super::failure::Failure;
use super::structs::{AccessDescription, AllocationProperties};
use crate::error::{Error, Status};
use crate::text::text;
use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// A `CUcontext`.
pub(super) type ContextHandle = *mut c_void;
/// A `CUdeviceptr`.
pub(super) type Address = u64;
/// A `CUmemGenericAllocationHandle`.
pub(super) type Physical = c_ulonglong;
/// A `CUstream`, `CUevent`, `CUgraph`, `CUuserObject` or `CUmemoryPool`: a pointer that is never followed here.
pub(super) type Handle = usize;
/// A `CUhostFn`.
pub(super) type HostFunction = unsafe extern "C" fn(data: *mut c_void);

/// `CUDA_SUCCESS`.
const SUCCESS: u32 = 0;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident ($($arg:ident: $type:ty),*);)*) => {
        /// The table. A function that this driver lacks is `None`.
        #[derive(Debug)]
        struct Functions {
            $($name: Option<unsafe extern "C" fn($($type),*) -> u32>,)*
        }

        impl Functions {
            /// # Safety
            /// `library` is a CUDA driver that `dlopen` gave, and is never closed.
            unsafe fn load(library: *mut c_void) -> Self {
                Self {
                    $(
                        // SAFETY: the name ends in NUL, and the driver has under it, if anything, a
                        // function of this very signature: it is the documented one. A null address
                        // is `None`.
                        $name: unsafe {
                            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn($($type),*) -> u32>>(
                                libc::dlsym(library, concat!(stringify!($symbol), "\0").as_ptr().cast()),
                            )
                        },
                    )*
                }
            }
        }

        impl Driver {
            $(
                $(#[$doc])*
                ///
                /// # Safety
                /// Pointers are valid as the driver's documentation of the function asks.
                pub(super) unsafe fn $name(&self, $($arg: $type),*) -> Result<(), Failure> {
                    let function = self
                        .functions
                        .$name
                        .ok_or(Failure::missing(stringify!($symbol)))?;
                    // SAFETY: the caller's contract.
                    match unsafe { function($($arg),*) } {
                        SUCCESS => Ok(()),
                        code => Err(Failure::new(stringify!($symbol), code)),
                    }
                }
            )*
        }
    };
}

functions! {
    /// Initialises the driver; harmless when repeated.
    init = cuInit(flags: c_uint);
    /// The number of devices.
    device_count = cuDeviceGetCount(count: *mut c_int);
    /// A device by its number.
    device_get = cuDeviceGet(device: *mut c_int, ordinal: c_int);
    /// A property of a device.
    device_attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int);
    /// Makes a device's primary context, or counts one more owner.
    primary_retain = cuDevicePrimaryCtxRetain(context: *mut ContextHandle, device: c_int);
    /// One owner less.
    primary_release = cuDevicePrimaryCtxRelease_v2(device: c_int);
    /// One owner less, in drivers before CUDA 11.
    primary_release_v1 = cuDevicePrimaryCtxRelease(device: c_int);
    /// Whether a device's primary context exists.
    primary_state = cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int);
    /// The calling thread's current context.
    current = cuCtxGetCurrent(context: *mut ContextHandle);
    /// Replaces the calling thread's current context.
    set_current = cuCtxSetCurrent(context: ContextHandle);
    /// Makes a context current above the one that is.
    push = cuCtxPushCurrent_v2(context: ContextHandle);
    /// Takes the current context off.
    pop = cuCtxPopCurrent_v2(context: *mut ContextHandle);
    /// The current context's device.
    current_device = cuCtxGetDevice(device: *mut c_int);
    /// The number of a context, which no other context of the process ever has.
    context_id = cuCtxGetId(context: ContextHandle, id: *mut c_ulonglong);
    /// Waits for all that is queued in the current context.
    synchronize = cuCtxSynchronize();
    /// Lets an event stand for all that is queued in a context.
    record_context = cuCtxRecordEvent(context: ContextHandle, event: Handle);
    /// Waits for all that is queued on a stream.
    stream_synchronize = cuStreamSynchronize(stream: Handle);
    /// Whether all that is queued on a stream is done.
    stream_query = cuStreamQuery(stream: Handle);
    /// The number of a stream, which no other stream of the process ever has.
    stream_id = cuStreamGetId(stream: Handle, id: *mut c_ulonglong);
    /// The context of a stream.
    stream_context = cuStreamGetCtx(stream: Handle, context: *mut ContextHandle);
    /// What is queued on a stream from now on waits for an event.
    stream_wait = cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    /// Whether a stream is being captured.
    is_capturing = cuStreamIsCapturing(stream: Handle, status: *mut c_uint);
    /// The same, with the capture's number.
    capture_info_v1 = cuStreamGetCaptureInfo(stream: Handle, status: *mut c_uint, id: *mut u64);
    /// The same, with the graph and what the next node depends on.
    capture_info_v2 = cuStreamGetCaptureInfo_v2(stream: Handle, status: *mut c_uint, id: *mut u64, graph: *mut Handle, nodes: *mut *const Handle, count: *mut usize);
    /// Swaps what the calling thread may do while streams are captured.
    exchange_capture_mode = cuThreadExchangeStreamCaptureMode(mode: *mut c_uint);
    /// An event of the current context.
    event_create = cuEventCreate(event: *mut Handle, flags: c_uint);
    /// Destroys an event.
    event_destroy = cuEventDestroy_v2(event: Handle);
    /// Lets an event stand for all that is queued on a stream.
    event_record = cuEventRecord(event: Handle, stream: Handle);
    /// Whether all that an event stands for is done.
    event_query = cuEventQuery(event: Handle);
    /// An object that calls a function when nobody refers to it any more.
    object_create = cuUserObjectCreate(object: *mut Handle, data: *mut c_void, destroy: HostFunction, count: c_uint, flags: c_uint);
    /// Drops references to an object.
    object_release = cuUserObjectRelease(object: Handle, count: c_uint);
    /// Lets a graph, and those made from it, refer to an object.
    graph_retain = cuGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint);
    /// The pool that a device has from the start.
    default_pool = cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    /// The pool that a device uses.
    current_pool = cuDeviceGetMemPool(pool: *mut Handle, device: c_int);
    /// Gives back what a pool keeps unused.
    pool_trim = cuMemPoolTrimTo(pool: Handle, kept: usize);
    /// Free and all bytes of the current context's device.
    memory_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    /// Device memory.
    alloc = cuMemAlloc_v2(address: *mut Address, bytes: usize);
    /// Frees device or managed memory.
    free = cuMemFree_v2(address: Address);
    /// Pinned host memory.
    host_alloc = cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    /// Frees pinned host memory.
    host_free = cuMemFreeHost(pointer: *mut c_void);
    /// Managed memory.
    managed_alloc = cuMemAllocManaged(address: *mut Address, bytes: usize, flags: c_uint);
    /// The unit of physical memory.
    granularity = cuMemGetAllocationGranularity(bytes: *mut usize, property: *const AllocationProperties, option: c_uint);
    /// A range of addresses.
    reserve = cuMemAddressReserve(address: *mut Address, bytes: usize, align: usize, at: Address, flags: c_ulonglong);
    /// Gives a range of addresses back.
    unreserve = cuMemAddressFree(address: Address, bytes: usize);
    /// Physical memory.
    create = cuMemCreate(physical: *mut Physical, bytes: usize, property: *const AllocationProperties, flags: c_ulonglong);
    /// Drops a reference to physical memory, which stays while it is mapped.
    release = cuMemRelease(physical: Physical);
    /// Puts physical memory behind addresses.
    map = cuMemMap(address: Address, bytes: usize, offset: usize, physical: Physical, flags: c_ulonglong);
    /// Takes it away.
    unmap = cuMemUnmap(address: Address, bytes: usize);
    /// Says which devices may touch mapped memory.
    set_access = cuMemSetAccess(address: Address, bytes: usize, access: *const AccessDescription, count: usize);
    /// The name of a code.
    error_name = cuGetErrorName(code: u32, name: *mut *const c_char);
    /// What a code means.
    error_string = cuGetErrorString(code: u32, text: *mut *const c_char);
}

/// The driver, initialised.
#[derive(Debug)]
pub(super) struct Driver {
    functions: Functions,
}

/// Why there is no driver to use.
#[derive(Debug)]
pub(super) enum Absent {
    /// No library.
    NoLibrary,
    /// A driver that counts no device.
    NoDevice,
    /// A driver that is there and fails.
    Failed(Error),
}

impl Absent {
    /// The failure of somebody who asked for CUDA.
    pub(super) fn into_error(self) -> Error {
        let message = match self {
            Self::NoLibrary => {
                "there is no CUDA driver: the library libcuda.so.1 was not found; install NVIDIA's driver, or use the host backend (LUMA_BACKEND=host)"
            }
            Self::NoDevice => {
                "the CUDA driver counts no device (CUDA_VISIBLE_DEVICES may hide it); use the host backend (LUMA_BACKEND=host)"
            }
            Self::Failed(error) => return error,
        };
        Error::new(Status::NoDevice, message)
    }
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// The driver, if it was loaded.
#[inline]
pub(super) fn loaded() -> Option<&'static Driver> {
    DRIVER.get()
}

/// The library's functions; `None`: there is no such library. The library is looked for again while it
/// is missing, since a program may bring it later.
pub(super) fn library() -> Option<&'static Driver> {
    if let Some(driver) = loaded() {
        return Some(driver);
    }
    const NAME: &CStr = c"libcuda.so.1";
    // SAFETY: the name ends in NUL. The driver's initialisers run, as in any program that is linked to it.
    let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    Some(DRIVER.get_or_init(|| Driver {
        // SAFETY: it was opened under the driver's name, and is never closed.
        functions: unsafe { Functions::load(library) },
    }))
}

/// The driver, initialised, with at least one device.
pub(super) fn driver() -> Result<&'static Driver, Absent> {
    let driver = library().ok_or(Absent::NoLibrary)?;
    let failed = |failure: Failure| {
        if failure.is_no_device() {
            return Absent::NoDevice;
        }
        let error = failure.into_error(driver);
        Absent::Failed(Error::new(
            Status::NoDevice,
            text!("the CUDA driver cannot be used: {error}; LUMA_BACKEND=host does without it"),
        ))
    };
    driver.has_essentials().map_err(failed)?;
    // SAFETY: no pointers.
    unsafe { driver.init(0) }.map_err(failed)?;
    match driver.devices().map_err(failed)? {
        0 => Err(Absent::NoDevice),
        _ => Ok(driver),
    }
}

impl Driver {
    /// How many devices there are.
    pub(super) fn devices(&self) -> Result<c_int, Failure> {
        let mut count = 0;
        // SAFETY: the out-parameter is valid for writing.
        unsafe { self.device_count(&mut count) }?;
        Ok(count)
    }

    /// Whether the functions are there without which no memory is to be had, whatever the kind.
    fn has_essentials(&self) -> Result<(), Failure> {
        let functions = &self.functions;
        let essentials = [
            (functions.init.is_some(), "cuInit"),
            (functions.device_count.is_some(), "cuDeviceGetCount"),
            (functions.device_get.is_some(), "cuDeviceGet"),
            (
                functions.primary_retain.is_some(),
                "cuDevicePrimaryCtxRetain",
            ),
            (functions.current.is_some(), "cuCtxGetCurrent"),
            (functions.current_device.is_some(), "cuCtxGetDevice"),
            (functions.push.is_some(), "cuCtxPushCurrent_v2"),
            (functions.pop.is_some(), "cuCtxPopCurrent_v2"),
        ];
        match essentials.iter().find(|(is_there, _)| !is_there) {
            Some((_, name)) => Err(Failure::missing(name)),
            None => Ok(()),
        }
    }

    /// Whether all functions of virtual memory are there.
    pub(super) fn has_virtual_memory(&self) -> bool {
        let functions = &self.functions;
        functions.reserve.is_some()
            && functions.unreserve.is_some()
            && functions.create.is_some()
            && functions.release.is_some()
            && functions.map.is_some()
            && functions.unmap.is_some()
            && functions.set_access.is_some()
    }
}
