//! Which functions of the driver are hooked.
//!
//! A line is `module: symbol(arguments) as names`. The symbol is what the driver exports, and what `dlsym` is
//! asked for; `hooks::module` has a function of the same name and type. Each of the names is one for
//! `cuGetProcAddress`, with the first version at which it means this symbol and, behind `..`, the first at
//! which it no longer does; `per_thread` is for programs whose default stream is each thread's own. Versions
//! are 1000 × major + 10 × minor.
//!
//! Functions of before 3.2 with addresses of 32 bits, which have the names without `_v2`, are not hooked.

use crate::real::Real;
use crate::{hooks, report};
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! for_each_hook {
    ($then:ident) => {
        $then! {
            proc_address: cuGetProcAddress(symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) as "cuGetProcAddress" 11030..12000;
            proc_address: cuGetProcAddress_v2(symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int) as "cuGetProcAddress" 12000;

            memory: cuMemAlloc_v2(address: *mut Address, bytes: usize) as "cuMemAlloc" 3020;
            memory: cuMemAllocPitch_v2(address: *mut Address, pitch: *mut usize, width: usize, height: usize, element: c_uint) as "cuMemAllocPitch" 3020;
            memory: cuMemFree_v2(address: Address) as "cuMemFree" 3020;

            ordered: cuMemAllocAsync(address: *mut Address, bytes: usize, stream: Handle) as "cuMemAllocAsync" 11020;
            ordered: cuMemAllocAsync_ptsz(address: *mut Address, bytes: usize, stream: Handle) as "cuMemAllocAsync" 11020 per_thread;
            ordered: cuMemAllocFromPoolAsync(address: *mut Address, bytes: usize, pool: Handle, stream: Handle) as "cuMemAllocFromPoolAsync" 11020;
            ordered: cuMemAllocFromPoolAsync_ptsz(address: *mut Address, bytes: usize, pool: Handle, stream: Handle) as "cuMemAllocFromPoolAsync" 11020 per_thread;
            ordered: cuMemFreeAsync(address: Address, stream: Handle) as "cuMemFreeAsync" 11020;
            ordered: cuMemFreeAsync_ptsz(address: Address, stream: Handle) as "cuMemFreeAsync" 11020 per_thread;

            info: cuMemGetInfo_v2(free: *mut usize, total: *mut usize) as "cuMemGetInfo" 3020;
            info: cuMemGetAddressRange_v2(base: *mut Address, bytes: *mut usize, address: Address) as "cuMemGetAddressRange" 3020;
            info: cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: Address) as "cuPointerGetAttribute" 4000;
            info: cuPointerGetAttributes(count: c_uint, attributes: *mut c_int, values: *mut *mut c_void, address: Address) as "cuPointerGetAttributes" 7000;

            share: cuIpcGetMemHandle(handle: *mut c_void, address: Address) as "cuIpcGetMemHandle" 4010;
            share: cuDeviceSetMemPool(device: Device, pool: Handle) as "cuDeviceSetMemPool" 11020;
            share: cuMemSetMemPool(location: *mut c_void, kind: c_int, pool: Handle) as "cuMemSetMemPool" 13000;
            share: cuMemPoolSetAccess(pool: Handle, access: *const c_void, count: usize) as "cuMemPoolSetAccess" 11020;
            share: cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) as "cuMemPoolSetAttribute" 11020;
            share: cuMemPoolTrimTo(pool: Handle, kept: usize) as "cuMemPoolTrimTo" 11020;
            share: cuMemPoolExportToShareableHandle(handle: *mut c_void, pool: Handle, kind: c_int, flags: u64) as "cuMemPoolExportToShareableHandle" 11020;
            share: cuMemPoolExportPointer(data: *mut c_void, address: Address) as "cuMemPoolExportPointer" 11020;

            lifetime: cuDevicePrimaryCtxReset(device: Device) as "cuDevicePrimaryCtxReset" 7000..11000;
            lifetime: cuDevicePrimaryCtxReset_v2(device: Device) as "cuDevicePrimaryCtxReset" 11000;
            lifetime: cuDevicePrimaryCtxRelease(device: Device) as "cuDevicePrimaryCtxRelease" 7000..11000;
            lifetime: cuDevicePrimaryCtxRelease_v2(device: Device) as "cuDevicePrimaryCtxRelease" 11000;
            lifetime: cuCtxDestroy(context: Handle) as "cuCtxDestroy" 2000..4000;
            lifetime: cuCtxDestroy_v2(context: Handle) as "cuCtxDestroy" 4000;
            lifetime: cuCtxDetach(context: Handle) as "cuCtxDetach" 2000;
            lifetime: cuStreamDestroy(stream: Handle) as "cuStreamDestroy" 2000..4000;
            lifetime: cuStreamDestroy_v2(stream: Handle) as "cuStreamDestroy" 4000;

            capture: cuStreamBeginCapture(stream: Handle) as "cuStreamBeginCapture" 10000..10010;
            capture: cuStreamBeginCapture_ptsz(stream: Handle) as "cuStreamBeginCapture" 10000..10010 per_thread;
            capture: cuStreamBeginCapture_v2(stream: Handle, mode: c_int) as "cuStreamBeginCapture" 10010;
            capture: cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: c_int) as "cuStreamBeginCapture" 10010 per_thread;
            capture: cuStreamBeginCaptureToGraph(stream: Handle, graph: Handle, nodes: *const Handle, edges: *const c_void, count: usize, mode: c_int) as "cuStreamBeginCaptureToGraph" 12030;
            capture: cuStreamBeginCaptureToGraph_ptsz(stream: Handle, graph: Handle, nodes: *const Handle, edges: *const c_void, count: usize, mode: c_int) as "cuStreamBeginCaptureToGraph" 12030 per_thread;
            capture: cuStreamBeginCaptureToCig(stream: Handle, parameters: *mut c_void) as "cuStreamBeginCaptureToCig" 13010;
            capture: cuStreamBeginCaptureToCig_ptsz(stream: Handle, parameters: *mut c_void) as "cuStreamBeginCaptureToCig" 13010 per_thread;
            capture: cuStreamEndCapture(stream: Handle, graph: *mut Handle) as "cuStreamEndCapture" 10000;
            capture: cuStreamEndCapture_ptsz(stream: Handle, graph: *mut Handle) as "cuStreamEndCapture" 10000 per_thread;
            capture: cuStreamEndCaptureToCig(stream: Handle) as "cuStreamEndCaptureToCig" 13010;
            capture: cuStreamEndCaptureToCig_ptsz(stream: Handle) as "cuStreamEndCaptureToCig" 13010 per_thread;

            lifetime: cuDevicePrimaryCtxRetain(context: *mut Handle, device: Device) as "cuDevicePrimaryCtxRetain" 7000;
            lifetime: cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: Device) as "cuCtxCreate" 3020..11040;
            lifetime: cuCtxCreate_v3(context: *mut Handle, affinity: *mut c_void, count: c_int, flags: c_uint, device: Device) as "cuCtxCreate" 11040..12050;
            lifetime: cuCtxCreate_v4(context: *mut Handle, parameters: *mut c_void, flags: c_uint, device: Device) as "cuCtxCreate" 12050;
            retry: cuCtxSetLimit(limit: c_int, value: usize) as "cuCtxSetLimit" 3010;
            retry: cuMemCreate(physical: *mut u64, bytes: usize, properties: *const c_void, flags: u64) as "cuMemCreate" 10020;
            retry: cuMemAllocManaged(address: *mut Address, bytes: usize, flags: c_uint) as "cuMemAllocManaged" 6000;
            retry: cuArrayCreate_v2(array: *mut Handle, shape: *const c_void) as "cuArrayCreate" 3020;
            retry: cuArray3DCreate_v2(array: *mut Handle, shape: *const c_void) as "cuArray3DCreate" 3020;
            retry: cuMipmappedArrayCreate(array: *mut Handle, shape: *const c_void, levels: c_uint) as "cuMipmappedArrayCreate" 5000;
            retry: cuModuleLoad(module: *mut Handle, file: *const c_char) as "cuModuleLoad" 2000;
            retry: cuModuleLoadData(module: *mut Handle, image: *const c_void) as "cuModuleLoadData" 2000;
            retry: cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void) as "cuModuleLoadDataEx" 2010;
            retry: cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) as "cuModuleLoadFatBinary" 2000;
            retry: cuLibraryLoadData(library: *mut Handle, code: *const c_void, jit_options: *mut c_int, jit_values: *mut *mut c_void, jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint) as "cuLibraryLoadData" 12000;
            retry: cuLibraryLoadFromFile(library: *mut Handle, file: *const c_char, jit_options: *mut c_int, jit_values: *mut *mut c_void, jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint) as "cuLibraryLoadFromFile" 12000;
            retry: cuLibraryGetModule(module: *mut Handle, library: Handle) as "cuLibraryGetModule" 12000;
            retry: cuKernelGetFunction(function: *mut Handle, kernel: Handle) as "cuKernelGetFunction" 12000;
            retry: cuGraphInstantiate(executable: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, bytes: usize) as "cuGraphInstantiate" 10000..11000;
            retry: cuGraphInstantiate_v2(executable: *mut Handle, graph: Handle, node: *mut Handle, log: *mut c_char, bytes: usize) as "cuGraphInstantiate" 11000..12000;
            retry: cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64) as "cuGraphInstantiateWithFlags" 11040, "cuGraphInstantiate" 12000;
            retry: cuGraphInstantiateWithParams(executable: *mut Handle, graph: Handle, parameters: *mut c_void) as "cuGraphInstantiateWithParams" 12000;
            retry: cuGraphInstantiateWithParams_ptsz(executable: *mut Handle, graph: Handle, parameters: *mut c_void) as "cuGraphInstantiateWithParams" 12000 per_thread;
            retry: cuGraphUpload(executable: Handle, stream: Handle) as "cuGraphUpload" 11010;
            retry: cuGraphUpload_ptsz(executable: Handle, stream: Handle) as "cuGraphUpload" 11010 per_thread;
            retry: cuGraphLaunch(executable: Handle, stream: Handle) as "cuGraphLaunch" 10000;
            retry: cuGraphLaunch_ptsz(executable: Handle, stream: Handle) as "cuGraphLaunch" 10000 per_thread;
            retry: cuGraphAddMemAllocNode(node: *mut Handle, graph: Handle, before: *const Handle, count: usize, parameters: *mut c_void) as "cuGraphAddMemAllocNode" 11040;
            retry: cuGraphAddNode(node: *mut Handle, graph: Handle, before: *const Handle, count: usize, parameters: *mut c_void) as "cuGraphAddNode" 12020..12030;
            retry: cuGraphAddNode_v2(node: *mut Handle, graph: Handle, before: *const Handle, edges: *const c_void, count: usize, parameters: *mut c_void) as "cuGraphAddNode" 12030..13040;
            retry: cuGraphAddNode_v3(node: *mut Handle, graph: Handle, before: *const Handle, edges: *const c_void, count: usize, parameters: *mut c_void) as "cuGraphAddNode" 13040;
            retry: cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) as "cuModuleGetFunction" 2000;
            retry: cuModuleGetGlobal_v2(address: *mut Address, bytes: *mut usize, module: Handle, name: *const c_char) as "cuModuleGetGlobal" 3020;
            retry: cuLibraryGetGlobal(address: *mut Address, bytes: *mut usize, library: Handle, name: *const c_char) as "cuLibraryGetGlobal" 12000;
            retry: cuLibraryGetManaged(address: *mut Address, bytes: *mut usize, library: Handle, name: *const c_char) as "cuLibraryGetManaged" 12000;
            retry: cuFuncLoad(function: Handle) as "cuFuncLoad" 12040;
            retry: cuLaunchKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) as "cuLaunchKernel" 4000;
            retry: cuLaunchKernel_ptsz(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) as "cuLaunchKernel" 7000 per_thread;
            retry: cuLaunchKernelEx(config: *const c_void, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) as "cuLaunchKernelEx" 11060;
            retry: cuLaunchKernelEx_ptsz(config: *const c_void, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) as "cuLaunchKernelEx" 11060 per_thread;
            retry: cuLaunchCooperativeKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void) as "cuLaunchCooperativeKernel" 9000;
            retry: cuLaunchCooperativeKernel_ptsz(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, parameters: *mut *mut c_void) as "cuLaunchCooperativeKernel" 9000 per_thread;
            retry: cuStreamCreate(stream: *mut Handle, flags: c_uint) as "cuStreamCreate" 2000;
            retry: cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) as "cuStreamCreateWithPriority" 5050;
        }
    };
}
pub(crate) use for_each_hook;

/// A function of the driver that one of ours stands for.
#[derive(Debug)]
pub struct Hook {
    /// What the driver exports it as, and this library too.
    pub symbol: &'static CStr,
    function: Function,
    /// The driver's.
    pub real: Real,
    /// How many look-ups were answered with ours.
    answered: AtomicU32,
    names: &'static [Name],
}

/// The address of one of our functions.
#[derive(Debug)]
struct Function(*const ());

// SAFETY: the address of code, which nobody writes to.
unsafe impl Sync for Function {}

/// What `cuGetProcAddress` is asked for when it is to give a function.
#[derive(Debug)]
struct Name {
    name: &'static CStr,
    since: c_int,
    until: c_int,
    per_thread: bool,
}

impl Name {
    const fn new(name: &'static CStr, since: c_int, until: &[c_int], flavour: &[&str]) -> Self {
        Self {
            name,
            since,
            until: if until.is_empty() {
                c_int::MAX
            } else {
                until[0]
            },
            per_thread: !flavour.is_empty(),
        }
    }
}

impl Hook {
    /// The address of ours.
    pub fn address(&self) -> *mut c_void {
        self.function.0.cast_mut().cast()
    }

    /// Counts one more look-up that was answered with ours.
    pub fn count_answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        report::looked_up();
    }

    /// How many look-ups were answered with ours, by `dlsym`, `dlvsym` and `cuGetProcAddress`.
    pub fn answers(&self) -> u32 {
        self.answered.load(Ordering::Relaxed)
    }
}

const fn string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name has one NUL, at its end"),
    }
}

macro_rules! define {
    ($($module:ident: $symbol:ident($($arg:ident: $type:ty),* $(,)?)
        as $($name:literal $since:literal $(.. $until:literal)? $($flavour:ident)?),+;)*) => {
        /// Each hook under the name of its symbol.
        #[allow(non_upper_case_globals)]
        pub mod by_symbol {
            use super::*;
            $(pub static $symbol: Hook = Hook {
                symbol: string(concat!(stringify!($symbol), "\0")),
                function: Function(hooks::$module::$symbol as *const ()),
                real: Real::unknown(),
                answered: AtomicU32::new(0),
                names: &[$(Name::new(string(concat!($name, "\0")), $since, &[$($until)?], &[$(stringify!($flavour))?])),+],
            };)*
        }

        /// All hooks.
        pub static HOOKS: &[&Hook] = &[$(&by_symbol::$symbol),*];

        /// Ours have the types of those that they stand for.
        mod types {
            use crate::abi::{Address, Device, Handle};
            use crate::hooks;
            use std::ffi::{c_char, c_int, c_uint, c_void};
            $(const _: unsafe extern "C" fn($($type),*) -> c_int = hooks::$module::$symbol;)*
        }
    };
}
for_each_hook!(define);

/// The hook of an exported symbol.
pub fn of_symbol(symbol: &CStr) -> Option<&'static Hook> {
    // Most names that are looked up in a process are none of the driver's.
    if !symbol.to_bytes().starts_with(b"cu") {
        return None;
    }
    HOOKS.iter().copied().find(|hook| hook.symbol == symbol)
}

/// The hook of the function that `cuGetProcAddress` gives for a name at a version: of that whose default stream
/// is the thread's own, if that is asked for and there is one.
pub fn of_name(name: &CStr, version: c_int, per_thread: bool) -> Option<&'static Hook> {
    let fits = |own: bool| {
        HOOKS.iter().copied().find(|hook| {
            hook.names.iter().any(|form| {
                form.per_thread == own
                    && (form.since..form.until).contains(&version)
                    && form.name == name
            })
        })
    };
    Some(true)
        .filter(|_| per_thread)
        .and_then(fits)
        .or_else(|| fits(false))
}
