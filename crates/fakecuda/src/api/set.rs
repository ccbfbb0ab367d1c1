//! Sets of memory.

use crate::driver;
use crate::state::lock;
use crate::status::Result;
use crate::transfer::Mode;
use crate::transfer::set::{Set, enqueue};

/// Sets memory on a stream of the current context.
fn set(set: Set, stream: u64, mode: Mode) -> Result {
    let mut guard = lock();
    guard.current()?;
    let stream = guard.stream(stream)?;
    enqueue(guard, stream, &set, mode)
}

/// One row of elements.
fn row(address: u64, value: u32, element_bytes: usize, width: usize) -> Set {
    Set {
        address,
        pitch: 0,
        value,
        element_bytes,
        width,
        height: 1,
    }
}

driver! {
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds (address: u64, value: u8, count: usize) {
        set(row(address, value.into(), 1, count), 0, Mode::Synchronous)
    }
    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds (address: u64, value: u16, count: usize) {
        set(row(address, value.into(), 2, count), 0, Mode::Synchronous)
    }
    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds (address: u64, value: u32, count: usize) {
        set(row(address, value, 4, count), 0, Mode::Synchronous)
    }
    fn cuMemsetD8Async | cuMemsetD8Async_ptsz (address: u64, value: u8, count: usize, stream: u64) {
        set(row(address, value.into(), 1, count), stream, Mode::Asynchronous)
    }
    fn cuMemsetD16Async | cuMemsetD16Async_ptsz (
        address: u64, value: u16, count: usize, stream: u64,
    ) {
        set(row(address, value.into(), 2, count), stream, Mode::Asynchronous)
    }
    fn cuMemsetD32Async | cuMemsetD32Async_ptsz (
        address: u64, value: u32, count: usize, stream: u64,
    ) {
        set(row(address, value, 4, count), stream, Mode::Asynchronous)
    }
    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds (
        address: u64, pitch: usize, value: u8, width: usize, height: usize,
    ) {
        let row = row(address, value.into(), 1, width);
        set(Set { pitch, height, ..row }, 0, Mode::Synchronous)
    }
    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds (
        address: u64, pitch: usize, value: u16, width: usize, height: usize,
    ) {
        let row = row(address, value.into(), 2, width);
        set(Set { pitch, height, ..row }, 0, Mode::Synchronous)
    }
    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds (
        address: u64, pitch: usize, value: u32, width: usize, height: usize,
    ) {
        let row = row(address, value, 4, width);
        set(Set { pitch, height, ..row }, 0, Mode::Synchronous)
    }
    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz (
        address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64,
    ) {
        let row = row(address, value.into(), 1, width);
        set(Set { pitch, height, ..row }, stream, Mode::Asynchronous)
    }
    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz (
        address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64,
    ) {
        let row = row(address, value.into(), 2, width);
        set(Set { pitch, height, ..row }, stream, Mode::Asynchronous)
    }
    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz (
        address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64,
    ) {
        let row = row(address, value, 4, width);
        set(Set { pitch, height, ..row }, stream, Mode::Asynchronous)
    }
}
