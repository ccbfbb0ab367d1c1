//! NVIDIA's management library as far as programs ask it for devices and memory: a
//! `libnvidia-ml.so.1` that answers for the devices of fakecuda, in the process that asks.
//!
//! What a board measures (temperature, power, clocks, links) is not supported, and says so.

#![allow(non_snake_case)]

mod driver;
mod unsupported;

use driver::{Driver, driver};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// `nvmlReturn_t`.
pub(crate) mod status {
    pub const SUCCESS: u32 = 0;
    pub const UNINITIALIZED: u32 = 1;
    pub const INVALID_ARGUMENT: u32 = 2;
    pub const NOT_SUPPORTED: u32 = 3;
    pub const NOT_FOUND: u32 = 6;
    pub const INSUFFICIENT_SIZE: u32 = 7;
    pub const DRIVER_NOT_LOADED: u32 = 9;
    pub const VERSION_MISMATCH: u32 = 25;
}

/// The texts of the codes that are given here; another code has none.
const TEXTS: &[(u32, &CStr)] = &[
    (status::SUCCESS, c"Success"),
    (status::UNINITIALIZED, c"Uninitialized"),
    (status::INVALID_ARGUMENT, c"Invalid Argument"),
    (status::NOT_SUPPORTED, c"Not Supported"),
    (status::NOT_FOUND, c"Not Found"),
    (status::INSUFFICIENT_SIZE, c"Insufficient Size"),
    (status::DRIVER_NOT_LOADED, c"Driver Not Loaded"),
    (status::VERSION_MISMATCH, c"Argument Version Mismatch"),
];

/// What is told as the version of the kernel's driver, and of this library.
const DRIVER_VERSION: &str = "580.0.0-fakecuda";
const LIBRARY_VERSION: &str = "13.580.0";

/// Attributes of `cuDeviceGetAttribute`.
const PCI_BUS: u32 = 33;
const MULTIPROCESSORS: u32 = 16;
const MAJOR: u32 = 75;
const MINOR: u32 = 76;

/// Characters of `busIdLegacy` and `busId`.
const SHORT_BUS_ID: usize = 16;
const LONG_BUS_ID: usize = 32;

/// `nvmlMemory_t`.
#[repr(C)]
pub struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct MemoryV2 {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlMemory_v2`: the structure's size and its version.
const MEMORY_V2: c_uint = size_of::<MemoryV2>() as c_uint | 2 << 24;

/// `nvmlPciInfo_t`, as of its third version.
#[repr(C)]
pub struct Pci {
    short_bus_id: [u8; SHORT_BUS_ID],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [u8; LONG_BUS_ID],
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
pub struct Process {
    process: c_uint,
    used: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`.
#[repr(C)]
pub struct ProcessV2 {
    process: c_uint,
    used: c_ulonglong,
    instance: c_uint,
    compute_instance: c_uint,
}

/// `nvmlUtilization_t`.
#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// A device's handle is its number and one, so that none is null.
type Device = usize;

type Result<T = ()> = std::result::Result<T, u32>;

/// How often the library was initialised and not shut down.
static INITIALIZED: AtomicU32 = AtomicU32::new(0);

fn code(outcome: Result) -> u32 {
    outcome.err().unwrap_or(status::SUCCESS)
}

/// The driver, if the library is initialised.
fn ready() -> Result<&'static Driver> {
    if INITIALIZED.load(Ordering::Acquire) == 0 {
        return Err(status::UNINITIALIZED);
    }
    driver().ok_or(status::DRIVER_NOT_LOADED)
}

fn count(driver: &Driver) -> usize {
    // SAFETY: it takes nothing.
    unsafe { (driver.devices)() }.try_into().unwrap_or(0)
}

/// The driver and the number of a device.
fn device(handle: Device) -> Result<(&'static Driver, c_int)> {
    let driver = ready()?;
    let number = handle
        .checked_sub(1)
        .filter(|&number| number < count(driver));
    Ok((driver, number.ok_or(status::INVALID_ARGUMENT)? as c_int))
}

fn attribute(driver: &Driver, device: c_int, which: u32) -> c_int {
    // SAFETY: it takes numbers.
    unsafe { (driver.attribute)(device, which) }
}

/// Writes through an out-parameter.
///
/// # Safety
/// `to` is null or may be written to.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller promises it.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a string and a zero.
///
/// # Safety
/// `to` is null or has room for `room` bytes.
unsafe fn put_text(to: *mut c_char, room: c_uint, text: &str) -> Result {
    if to.is_null() {
        return Err(status::INVALID_ARGUMENT);
    }
    if text.len() >= room as usize {
        return Err(status::INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the text and the zero.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// A string in a field of a structure.
fn field<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut bytes = [0; ROOM];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn uuid(driver: &Driver, device: c_int) -> String {
    let mut bytes = [0; 16];
    // SAFETY: there is room for the bytes.
    unsafe { (driver.uuid)(device, &mut bytes) };
    let hex = |range: std::ops::Range<usize>| -> String {
        bytes[range]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    format!(
        "GPU-{}-{}-{}-{}-{}",
        hex(0..4),
        hex(4..6),
        hex(6..8),
        hex(8..10),
        hex(10..16)
    )
}

/// Total and used bytes of a device's memory: of this process, which is all that uses it.
fn memory(handle: Device) -> Result<(u64, u64)> {
    let (driver, device) = device(handle)?;
    // SAFETY: these take a number.
    Ok(unsafe { ((driver.capacity)(device), (driver.used)(device)) })
}

/// Tells of the processes that use a device: this one, if it does.
///
/// # Safety
/// `count` may be read and written; `list` has room for as many as it says.
unsafe fn processes<T>(
    handle: Device,
    count: *mut c_uint,
    list: *mut T,
    entry: impl FnOnce(c_uint, u64) -> T,
) -> Result {
    let (_, used) = memory(handle)?;
    if count.is_null() {
        return Err(status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller promises it.
    unsafe {
        let room = count.replace(c_uint::from(used > 0));
        if used == 0 {
            return Ok(());
        }
        if room == 0 {
            return Err(status::INSUFFICIENT_SIZE);
        }
        put(list, entry(std::process::id(), used))
    }
}

/// Exports functions. A body is unsafe code and gives a [`Result`].
macro_rules! library {
    ($(fn $name:ident $(| $other:ident)* ($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            // Not every body does what only unsafe code may.
            #[allow(unused_unsafe)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> u32 {
                // SAFETY: the caller keeps the contract of the library's documentation.
                let body = || -> Result { unsafe { $body } };
                code(body())
            }
            library!(@other $name [$($other)*] ($($arg: $type),*));
        )*
    };
    (@other $name:ident [] $args:tt) => {};
    (@other $name:ident [$other:ident $($rest:ident)*] ($($arg:ident: $type:ty),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $other($($arg: $type),*) -> u32 {
            // SAFETY: as for the function itself.
            unsafe { $name($($arg),*) }
        }
        library!(@other $name [$($rest)*] ($($arg: $type),*));
    };
}

library! {
    fn nvmlInitWithFlags(_flags: c_uint) {
        driver().ok_or(status::DRIVER_NOT_LOADED)?;
        INITIALIZED.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn nvmlInit_v2 | nvmlInit () {
        match nvmlInitWithFlags(0) {
            status::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    fn nvmlShutdown() {
        let one_less = |count: u32| count.checked_sub(1);
        INITIALIZED
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less)
            .map(|_| ())
            .map_err(|_| status::UNINITIALIZED)
    }

    fn nvmlSystemGetDriverVersion(text: *mut c_char, room: c_uint) {
        ready()?;
        put_text(text, room, DRIVER_VERSION)
    }

    fn nvmlSystemGetNVMLVersion(text: *mut c_char, room: c_uint) {
        put_text(text, room, LIBRARY_VERSION)
    }

    fn nvmlSystemGetCudaDriverVersion_v2 | nvmlSystemGetCudaDriverVersion (version: *mut c_int) {
        let driver = driver().ok_or(status::DRIVER_NOT_LOADED)?;
        let mut number = 0;
        (driver.version)(&mut number);
        put(version, number)
    }

    fn nvmlDeviceGetCount_v2 | nvmlDeviceGetCount (number: *mut c_uint) {
        put(number, count(ready()?) as c_uint)
    }

    fn nvmlDeviceGetHandleByIndex_v2 | nvmlDeviceGetHandleByIndex (index: c_uint, handle: *mut Device) {
        let found = index as Device + 1;
        device(found)?;
        put(handle, found)
    }

    fn nvmlDeviceGetHandleByUUID(text: *const c_char, handle: *mut Device) {
        let driver = ready()?;
        if text.is_null() {
            return Err(status::INVALID_ARGUMENT);
        }
        let wanted = CStr::from_ptr(text).to_string_lossy();
        let found = (0..count(driver)).find(|&number| uuid(driver, number as c_int) == wanted);
        put(handle, found.ok_or(status::NOT_FOUND)? + 1)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2 | nvmlDeviceGetHandleByPciBusId (text: *const c_char, handle: *mut Device) {
        let driver = ready()?;
        if text.is_null() {
            return Err(status::INVALID_ARGUMENT);
        }
        let wanted = CStr::from_ptr(text).to_string_lossy();
        // domain:bus:device.function, the domain in four or eight digits.
        let fields: Option<Vec<c_int>> = wanted
            .split([':', '.'])
            .map(|number| c_int::from_str_radix(number, 16).ok())
            .collect();
        let bus = match fields.as_deref() {
            Some([0, bus, 0, 0] | [0, bus, 0]) => *bus,
            Some(_) => return Err(status::NOT_FOUND),
            None => return Err(status::INVALID_ARGUMENT),
        };
        let found = (0..count(driver)).find(|&number| attribute(driver, number as c_int, PCI_BUS) == bus);
        put(handle, found.ok_or(status::NOT_FOUND)? + 1)
    }

    fn nvmlDeviceGetIndex | nvmlDeviceGetMinorNumber (handle: Device, index: *mut c_uint) {
        let (_, device) = device(handle)?;
        put(index, device as c_uint)
    }

    fn nvmlDeviceGetName(handle: Device, text: *mut c_char, room: c_uint) {
        let (driver, device) = device(handle)?;
        let name = CStr::from_ptr((driver.name)(device)).to_string_lossy();
        put_text(text, room, &name)
    }

    fn nvmlDeviceGetUUID(handle: Device, text: *mut c_char, room: c_uint) {
        let (driver, device) = device(handle)?;
        put_text(text, room, &uuid(driver, device))
    }

    fn nvmlDeviceGetMemoryInfo(handle: Device, info: *mut Memory) {
        let (total, used) = memory(handle)?;
        put(info, Memory { total, free: total.saturating_sub(used), used })
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: Device, info: *mut MemoryV2) {
        let (total, used) = memory(handle)?;
        if info.is_null() {
            return Err(status::INVALID_ARGUMENT);
        }
        if (*info).version != MEMORY_V2 {
            return Err(status::VERSION_MISMATCH);
        }
        put(info, MemoryV2 { version: MEMORY_V2, total, reserved: 0, free: total.saturating_sub(used), used })
    }

    fn nvmlDeviceGetPciInfo_v3 | nvmlDeviceGetPciInfo (handle: Device, info: *mut Pci) {
        let (driver, device) = device(handle)?;
        let bus = attribute(driver, device, PCI_BUS) as c_uint;
        put(info, Pci {
            short_bus_id: field(&format!("0000:{bus:02X}:00.0")),
            domain: 0,
            bus,
            device: 0,
            device_id: 0,
            subsystem_id: 0,
            bus_id: field(&format!("00000000:{bus:02X}:00.0")),
        })
    }

    fn nvmlDeviceGetCudaComputeCapability(handle: Device, major: *mut c_int, minor: *mut c_int) {
        let (driver, device) = device(handle)?;
        put(major, attribute(driver, device, MAJOR))?;
        put(minor, attribute(driver, device, MINOR))
    }

    fn nvmlDeviceGetNumGpuCores(handle: Device, cores: *mut c_uint) {
        let (driver, device) = device(handle)?;
        // 128 a multiprocessor.
        put(cores, 128 * attribute(driver, device, MULTIPROCESSORS) as c_uint)
    }

    // The default mode, and not persistent.
    fn nvmlDeviceGetComputeMode | nvmlDeviceGetPersistenceMode (handle: Device, mode: *mut c_uint) {
        device(handle)?;
        put(mode, 0)
    }

    fn nvmlDeviceGetUtilizationRates(handle: Device, rates: *mut Utilization) {
        device(handle)?;
        put(rates, Utilization { gpu: 0, memory: 0 })
    }

    fn nvmlDeviceGetComputeRunningProcesses(handle: Device, count: *mut c_uint, list: *mut Process) {
        processes(handle, count, list, |process, used| Process { process, used })
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3 | nvmlDeviceGetComputeRunningProcesses_v2 (handle: Device, count: *mut c_uint, list: *mut ProcessV2) {
        // No part of a device that was divided.
        processes(handle, count, list, |process, used| ProcessV2 {
            process,
            used,
            instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        })
    }

    // Programs do not draw on it.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3 | nvmlDeviceGetGraphicsRunningProcesses_v2 | nvmlDeviceGetGraphicsRunningProcesses (handle: Device, count: *mut c_uint, _list: *mut c_void) {
        device(handle)?;
        put(count, 0)
    }
}

/// Never null, also for a code that does not exist.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    let known = TEXTS.iter().find(|(value, _)| *value == code);
    known.map_or(c"Unknown Error", |(_, text)| text).as_ptr()
}
