//! Devices and what they say of themselves.

use crate::abi::device::DeviceProperties;
use crate::attribute;
use crate::device;
use crate::driver;
use crate::entry::put;
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::{CStr, c_char};

/// The attributes that the older functions tell.
const CAPABILITY_MAJOR: u32 = 75;
const CAPABILITY_MINOR: u32 = 76;
const MAX_LINEAR_WIDTH: u32 = 69;

/// Characters of a PCI bus id, with the zero at its end.
const BUS_ID: i32 = 13;

/// Writes as much of a string as there is room for, and a zero.
///
/// # Safety
/// `to` is null or has room for `room` bytes.
unsafe fn put_text(to: *mut c_char, room: i32, text: &[u8]) -> Result {
    if to.is_null() || room <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    let length = text.len().min(room as usize - 1);
    // SAFETY: the caller promises the room; the text has that many bytes.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), length);
        to.add(length).write(0);
    }
    Ok(())
}

/// The device at a PCI address: `[domain:]bus:device[.function]`, in hexadecimal. The function may be
/// left out if the domain is there.
fn by_bus(address: &str) -> Option<usize> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (slot, function) = match address.split_once('.') {
        Some((slot, function)) => (slot, number(function)?),
        None => (address, 0),
    };
    let fields: Vec<u32> = slot.split(':').map(number).collect::<Option<_>>()?;
    let bus = match fields[..] {
        [0, bus, 0] => bus,
        [bus, 0] if address.contains('.') => bus,
        _ => return None,
    };
    (function == 0).then_some(())?;
    (0..device::MOST).find(|&device| device::bus(device) == bus as usize)
}

driver! {
    fn cuDeviceGetCount(count: *mut i32) {
        put(count, lock().devices.len() as i32)
    }

    fn cuDeviceGet(device: *mut i32, ordinal: i32) {
        let number = lock().device(ordinal)?;
        put(device, number as i32)
    }

    fn cuDeviceGetName(name: *mut c_char, room: i32, device: i32) {
        lock().device(device)?;
        put_text(name, room, device::NAME.to_bytes())
    }

    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: i32) {
        let device = lock().device(device)?;
        put(uuid, device::uuid(device))
    }

    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32) {
        let device = lock().device(device)?;
        put(uuid, device::uuid(device))
    }

    // Only Windows has these.
    fn cuDeviceGetLuid(luid: *mut c_char, nodes: *mut u32, device: i32) {
        lock().device(device)?;
        if luid.is_null() || nodes.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        Err(Code::NOT_SUPPORTED)
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) {
        let state = lock();
        let device = state.device(device)?;
        put(bytes, state.devices[device].capacity as usize)
    }

    fn cuDeviceGetAttribute(value: *mut i32, which: u32, device: i32) {
        let device = lock().device(device)?;
        put(value, attribute::value(which, device).ok_or(Code::INVALID_VALUE)?)
    }

    fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, device: i32) {
        let device = lock().device(device)?;
        put(major, attribute::known(CAPABILITY_MAJOR, device))?;
        put(minor, attribute::known(CAPABILITY_MINOR, device))
    }

    fn cuDeviceGetProperties(properties: *mut DeviceProperties, device: i32) {
        let device = lock().device(device)?;
        let known = |which| attribute::known(which, device);
        put(properties, DeviceProperties {
            max_threads_per_block: known(1),
            max_threads_dim: [known(2), known(3), known(4)],
            max_grid_size: [known(5), known(6), known(7)],
            shared_memory_per_block: known(8),
            total_constant_memory: known(9),
            simd_width: known(10),
            memory_pitch: known(11),
            registers_per_block: known(12),
            clock_rate: known(13),
            texture_alignment: known(14),
        })
    }

    fn cuDeviceGetPCIBusId(text: *mut c_char, room: i32, device: i32) {
        let device = lock().device(device)?;
        if room < BUS_ID {
            return Err(Code::INVALID_VALUE);
        }
        put_text(text, room, format!("0000:{:02X}:00.0", device::bus(device)).as_bytes())
    }

    fn cuDeviceGetByPCIBusId(device: *mut i32, text: *const c_char) {
        if text.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let text = CStr::from_ptr(text).to_str().map_err(|_| Code::INVALID_VALUE)?;
        let number = by_bus(text).ok_or(Code::INVALID_DEVICE)?;
        let number = lock().device(number as i32)?;
        put(device, number as i32)
    }

    fn cuDeviceGetTexture1DLinearMaxWidth(elements: *mut usize, _format: u32, channels: u32, device: i32) {
        let device = lock().device(device)?;
        if !matches!(channels, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        put(elements, attribute::known(MAX_LINEAR_WIDTH, device) as usize)
    }

    // Of the one kind there is: a share of the multiprocessors.
    fn cuDeviceGetExecAffinitySupport(supported: *mut i32, kind: u32, device: i32) {
        lock().device(device)?;
        if kind != 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(supported, 0)
    }
}
