//! The driver double as the tests use it: its functions, contexts, streams, and work that waits.

use crate::support::double;
use libloading::Library;
use luma::backend::cuda::{CudaBackend, Kind};
use luma::backend::streams::{Event, Place, Stream, StreamSource, Streams};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

type HostFunction = extern "C" fn(data: *mut c_void);

macro_rules! driver {
    ($(fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        /// Functions of the double as programs call them.
        pub struct Driver(Library);

        #[allow(non_snake_case)]
        impl Driver {
            $(
                pub fn $name(&self, $($arg: $type),*) -> u32 {
                    // SAFETY: the signature is the documented one, and the tests give valid pointers.
                    unsafe {
                        self.0
                            .get::<unsafe extern "C" fn($($type),*) -> u32>(stringify!($name).as_bytes())
                            .expect("the double has it")($($arg),*)
                    }
                }
            )*
        }
    };
}

driver! {
    fn cuInit(flags: u32);
    fn cuCtxCreate_v2(context: *mut usize, flags: u32, device: i32);
    fn cuCtxDestroy_v2(context: usize);
    fn cuCtxPopCurrent_v2(context: *mut usize);
    fn cuCtxGetCurrent(context: *mut usize);
    fn cuCtxSetCurrent(context: usize);
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32);
    fn cuStreamCreate(stream: *mut usize, flags: u32);
    fn cuStreamDestroy_v2(stream: usize);
    fn cuStreamSynchronize(stream: usize);
    fn cuLaunchHostFunc(stream: usize, function: HostFunction, data: *mut c_void);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32);
    fn cuStreamBeginCapture_v2(stream: usize, mode: u32);
    fn cuStreamEndCapture(stream: usize, graph: *mut usize);
    fn cuGraphClone(clone: *mut usize, graph: usize);
    fn cuGraphDestroy(graph: usize);
    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64);
    fn cuGraphExecDestroy(executable: usize);
    fn cuGraphLaunch(executable: usize, stream: usize);
    fn cuEventCreate(event: *mut usize, flags: u32);
    fn cuEventDestroy_v2(event: usize);
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize);
    fn cuMemFreeAsync(address: u64, stream: usize);
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: i32);
    fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: *const u64);
}

#[track_caller]
pub fn ok(code: u32) {
    assert_eq!(code, 0);
}

/// Gives what a call writes.
#[track_caller]
pub fn made<T: Default>(call: impl FnOnce(*mut T) -> u32) -> T {
    let mut made = T::default();
    ok(call(&raw mut made));
    made
}

pub fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let _ = double::load();
        // SAFETY: as `double::load`.
        let driver = Driver(unsafe { Library::new(double::library()) }.expect("it is loaded"));
        ok(driver.cuInit(0));
        driver
    })
}

pub fn streams() -> &'static dyn Streams {
    StreamSource::Cuda.streams().expect("CUDA has streams")
}

pub fn backend(kind: Kind) -> CudaBackend {
    CudaBackend::of_device(0, kind).expect("the double has a device")
}

/// Makes the primary context current, as the runtime interface does.
pub fn use_primary() -> usize {
    let driver = driver();
    let context = made(|context| driver.cuDevicePrimaryCtxRetain(context, 0));
    ok(driver.cuCtxSetCurrent(context));
    context
}

/// A context that replaces the current one.
pub fn create_context() -> usize {
    let context = made(|context| driver().cuCtxCreate_v2(context, 0, 0));
    let _: usize = made(|popped| driver().cuCtxPopCurrent_v2(popped));
    ok(driver().cuCtxSetCurrent(context));
    context
}

pub fn stream(flags: u32) -> Stream {
    Stream(made(|stream| driver().cuStreamCreate(stream, flags)))
}

pub fn destroy(stream: Stream) {
    ok(driver().cuStreamDestroy_v2(stream.0));
}

pub fn current() -> usize {
    made(|context| driver().cuCtxGetCurrent(context))
}

/// The thread's capture mode.
pub fn capture_mode() -> u32 {
    let mut mode = 0;
    ok(driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
    let mut again = mode;
    ok(driver().cuThreadExchangeStreamCaptureMode(&raw mut again));
    mode
}

pub fn set_capture_mode(mut mode: u32) {
    ok(driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
}

pub fn place(stream: Stream) -> Place {
    streams().place(stream).expect("the stream is there")
}

pub fn event_in(domain: usize) -> Event {
    streams()
        .create_event(domain)
        .expect("the context is there")
}

/// Keeps streams busy until it is opened, or goes.
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn close(&self, stream: Stream) {
        extern "C" fn wait(data: *mut c_void) {
            // SAFETY: it is the share that was given for this call.
            let is_open = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
            while !is_open.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let data = Arc::into_raw(self.0.clone()).cast_mut().cast();
        ok(driver().cuLaunchHostFunc(stream.0, wait, data));
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// Whether it comes true in time.
pub fn soon(is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

pub fn is_done(event: Event) -> bool {
    streams().is_done(event).expect("an event")
}
