//! The management library beside the driver.

use crate::library::{driver, initialize, management};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Debug, Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// The texts that the functions of this form write.
fn text(function: &str, device: *mut c_void) -> String {
    let mut text = [0 as c_char; 96];
    // SAFETY: the type is that of nvml.h, and there is as much room as is said.
    unsafe {
        let get: unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> u32 =
            management().function(function);
        assert_eq!(
            get(device, text.as_mut_ptr(), text.len() as c_uint),
            0,
            "{function}"
        );
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

fn memory(device: *mut c_void) -> Memory {
    let mut memory = Memory::default();
    // SAFETY: the type is that of nvml.h.
    unsafe {
        let get: unsafe extern "C" fn(*mut c_void, *mut Memory) -> u32 =
            management().function("nvmlDeviceGetMemoryInfo");
        assert_eq!(get(device, &mut memory), 0);
    }
    memory
}

#[test]
fn it_knows_what_the_driver_knows() {
    const UNINITIALIZED: u32 = 1;
    initialize();
    // SAFETY: the types are those of nvml.h and cuda.h, and all pointers have room.
    unsafe {
        let count: unsafe extern "C" fn(*mut c_uint) -> u32 =
            management().function("nvmlDeviceGetCount_v2");
        let mut devices = 0;
        assert_eq!(count(&mut devices), UNINITIALIZED);

        let start: unsafe extern "C" fn() -> u32 = management().function("nvmlInit_v2");
        assert_eq!(start(), 0);
        assert_eq!((count(&mut devices), devices), (0, 1));

        let by_index: unsafe extern "C" fn(c_uint, *mut *mut c_void) -> u32 =
            management().function("nvmlDeviceGetHandleByIndex_v2");
        let mut device = std::ptr::null_mut();
        assert_eq!(by_index(0, &mut device), 0);
        assert_ne!(by_index(1, &mut device), 0);

        let get_uuid: unsafe extern "C" fn(*mut [u8; 16], c_int) -> u32 =
            driver().function("cuDeviceGetUuid_v2");
        let mut uuid = [0; 16];
        assert_eq!(get_uuid(&mut uuid, 0), 0);
        let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            text("nvmlDeviceGetUUID", device).replace('-', ""),
            format!("GPU{hex}")
        );

        let bus_id: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> u32 =
            driver().function("cuDeviceGetPCIBusId");
        let mut bus = [0 as c_char; 16];
        assert_eq!(bus_id(bus.as_mut_ptr(), bus.len() as c_int, 0), 0);
        let by_bus: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> u32 =
            management().function("nvmlDeviceGetHandleByPciBusId_v2");
        let mut found = std::ptr::null_mut();
        assert_eq!((by_bus(bus.as_ptr(), &mut found), found), (0, device));

        let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> u32 =
            driver().function("cuDevicePrimaryCtxRetain");
        let current: unsafe extern "C" fn(*mut c_void) -> u32 =
            driver().function("cuCtxSetCurrent");
        let allocate: unsafe extern "C" fn(*mut u64, usize) -> u32 =
            driver().function("cuMemAlloc_v2");
        let free: unsafe extern "C" fn(u64) -> u32 = driver().function("cuMemFree_v2");
        let release: unsafe extern "C" fn(c_int) -> u32 =
            driver().function("cuDevicePrimaryCtxRelease_v2");
        let mut context = std::ptr::null_mut();
        assert_eq!(retain(&mut context, 0), 0);
        assert_eq!(current(context), 0);
        let before = memory(device);
        assert_eq!(before.total, before.free + before.used);
        let mut block = 0;
        assert_eq!(allocate(&mut block, 64 << 20), 0);
        assert_eq!(memory(device).used, before.used + (64 << 20));
        assert_eq!(free(block), 0);
        assert_eq!(memory(device).used, before.used);
        assert_eq!(release(0), 0);

        let stop: unsafe extern "C" fn() -> u32 = management().function("nvmlShutdown");
        assert_eq!(stop(), 0);
        assert_eq!(stop(), UNINITIALIZED);
    }
}
