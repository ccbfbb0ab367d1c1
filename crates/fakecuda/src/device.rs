//! Devices.

use crate::context::ContextId;
use crate::environment::environment;
use std::ffi::CStr;

/// More devices than that cannot be asked for.
pub const MOST: usize = 64;

/// What each device is called.
pub const NAME: &CStr = c"fakecuda host memory device";

/// A device.
#[derive(Debug)]
pub struct Device {
    /// Bytes of memory that it has.
    pub capacity: u64,
    /// Bytes in use by anything.
    pub used: u64,
    /// The most that were in use at once.
    pub peak: u64,
    /// Its primary context, if that is active.
    pub primary: Option<ContextId>,
    /// The primary context's handle, which is the same each time that it becomes active again.
    pub primary_handle: Option<u64>,
    /// How often the primary context was retained and not yet released.
    pub retained: u32,
    /// The flags of the primary context.
    pub primary_flags: u32,
}

impl Device {
    /// A device as the environment says.
    pub fn new() -> Self {
        Self {
            capacity: environment().memory,
            used: 0,
            peak: 0,
            primary: None,
            primary_handle: None,
            retained: 0,
            primary_flags: 0,
        }
    }
}

/// The bus, device and function numbers are those of one board a bus, in domain 0.
pub fn bus(device: usize) -> usize {
    device + 1
}

/// The identifier, as `nvmlDeviceGetUUID` also gives it.
pub fn uuid(device: usize) -> [u8; 16] {
    let mut uuid = *b"fakecuda\0\0\0\0\0\0\0\0";
    uuid[15] = device as u8;
    uuid
}
