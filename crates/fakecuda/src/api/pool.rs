//! Memory pools, and memory in the order of streams.

use crate::abi::memory::{
    HANDLE_POSIX_FILE, MemAccessDesc, MemLocation, MemPoolProps, Opaque64, allocation_type,
};
use crate::driver;
use crate::entry::put;
use crate::memory;
use crate::state::{Guard, State, lock};
use crate::status::{Code, Result};
use std::ffi::c_void;

/// The state, if devices have pools.
fn begin() -> Result<Guard> {
    if memory::has_pools() {
        Ok(lock())
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

/// A device as a place for pools.
fn device_place(state: &State, device: i32) -> Result<MemLocation> {
    state.device(device)?;
    Ok(MemLocation::of_device(device))
}

/// `CUmemPool_attribute`.
mod attribute {
    pub const FOLLOW_EVENTS: u32 = 1;
    pub const OPPORTUNISTIC: u32 = 2;
    pub const INTERNAL_DEPENDENCIES: u32 = 3;
    pub const THRESHOLD: u32 = 4;
    pub const RESERVED: u32 = 5;
    pub const RESERVED_HIGH: u32 = 6;
    pub const USED: u32 = 7;
    pub const USED_HIGH: u32 = 8;
    pub const KIND: u32 = 9;
    pub const HANDLE_TYPES: u32 = 10;
    pub const LOCATION_ID: u32 = 11;
    pub const LOCATION_TYPE: u32 = 12;
    pub const MOST: u32 = 13;
    pub const IS_DECOMPRESS_CAPABLE: u32 = 14;
    pub const LOCALITY_DOMAIN: u32 = 15;
}

/// A value as wide as its attribute is.
enum Value {
    Int(i32),
    Long(u64),
}

fn get(pool: &memory::Pool, which: u32) -> Result<Value> {
    use attribute::*;
    let policies = &pool.policies;
    Ok(match which {
        FOLLOW_EVENTS => Value::Int(policies.follow_events.into()),
        OPPORTUNISTIC => Value::Int(policies.opportunistic.into()),
        INTERNAL_DEPENDENCIES => Value::Int(policies.internal_dependencies.into()),
        THRESHOLD => Value::Long(policies.threshold),
        RESERVED => Value::Long(pool.reserved),
        RESERVED_HIGH => Value::Long(pool.reserved_high),
        USED => Value::Long(pool.used),
        USED_HIGH => Value::Long(pool.used_high),
        KIND => Value::Int(pool.props.kind as i32),
        HANDLE_TYPES => Value::Int(pool.props.handle_types as i32),
        LOCATION_ID => Value::Int(pool.place().id),
        LOCATION_TYPE => Value::Int(pool.place().kind as i32),
        MOST if pool.props.max_size == 0 => Value::Long(0),
        MOST => Value::Long(pool.most()),
        IS_DECOMPRESS_CAPABLE => Value::Int(0),
        LOCALITY_DOMAIN => Value::Int(-1),
        _ => return Err(Code::INVALID_VALUE),
    })
}

unsafe fn set(pool: &mut memory::Pool, which: u32, value: *const c_void) -> Result {
    use attribute::*;
    // SAFETY: the caller says that the value is as wide as its attribute.
    let (flag, long) = unsafe {
        match which {
            FOLLOW_EVENTS | OPPORTUNISTIC | INTERNAL_DEPENDENCIES => {
                (value.cast::<i32>().read_unaligned() != 0, 0)
            }
            THRESHOLD | RESERVED_HIGH | USED_HIGH => (false, value.cast::<u64>().read_unaligned()),
            _ => return Err(Code::INVALID_VALUE),
        }
    };
    match which {
        FOLLOW_EVENTS => pool.policies.follow_events = flag,
        OPPORTUNISTIC => pool.policies.opportunistic = flag,
        INTERNAL_DEPENDENCIES => pool.policies.internal_dependencies = flag,
        THRESHOLD => pool.policies.threshold = long,
        RESERVED_HIGH if long == 0 => pool.reserved_high = pool.reserved,
        USED_HIGH if long == 0 => pool.used_high = pool.used,
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

driver! {
    fn cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32) {
        let mut state = begin()?;
        if pool.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = device_place(&state, device)?;
        let id = state.default_pool(place);
        put(pool, state.pool_handle(id)?)
    }

    fn cuDeviceGetMemPool(pool: *mut u64, device: i32) {
        let mut state = begin()?;
        if pool.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = device_place(&state, device)?;
        let id = state.current_pool(place);
        put(pool, state.pool_handle(id)?)
    }

    fn cuDeviceSetMemPool(device: i32, pool: u64) {
        let mut state = begin()?;
        let place = device_place(&state, device)?;
        state.set_current_pool(place, pool)
    }

    fn cuMemGetDefaultMemPool(pool: *mut u64, place: *const MemLocation, kind: u32) {
        let mut state = begin()?;
        if pool.is_null() || place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = state.pool_place(place.read_unaligned(), kind)?;
        let id = state.default_pool(place);
        put(pool, state.pool_handle(id)?)
    }

    fn cuMemGetMemPool(pool: *mut u64, place: *const MemLocation, kind: u32) {
        let mut state = begin()?;
        if pool.is_null() || place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = state.pool_place(place.read_unaligned(), kind)?;
        let id = state.current_pool(place);
        put(pool, state.pool_handle(id)?)
    }

    fn cuMemSetMemPool(place: *const MemLocation, kind: u32, pool: u64) {
        let mut state = begin()?;
        if place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = state.pool_place(place.read_unaligned(), kind)?;
        state.set_current_pool(place, pool)
    }

    fn cuMemPoolCreate(pool: *mut u64, props: *const MemPoolProps) {
        let mut state = begin()?;
        if pool.is_null() || props.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(pool, state.create_pool(&props.read_unaligned())?)
    }

    fn cuMemPoolDestroy(pool: u64) {
        begin()?.destroy_pool(pool)
    }

    fn cuMemPoolGetAttribute(pool: u64, which: u32, value: *mut c_void) {
        let state = begin()?;
        if value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        match get(state.pool(pool)?, which)? {
            Value::Int(number) => put(value.cast::<i32>(), number),
            Value::Long(number) => put(value.cast::<u64>(), number),
        }
    }

    fn cuMemPoolSetAttribute(pool: u64, which: u32, value: *const c_void) {
        let mut state = begin()?;
        if value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        set(state.pool_mut(pool)?, which, value)
    }

    fn cuMemPoolTrimTo(pool: u64, kept: usize) {
        begin()?.trim_pool_to(pool, kept as u64)
    }

    fn cuMemPoolSetAccess(pool: u64, changes: *const MemAccessDesc, count: usize) {
        let mut state = begin()?;
        if changes.is_null() || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.pool(pool)?;
        let changes = std::slice::from_raw_parts(changes, count);
        let mut access = Vec::new();
        for change in changes {
            let place = state.pool_place(change.location, allocation_type::PINNED);
            access.push((place.map_err(|_| Code::INVALID_VALUE)?, change.flags));
        }
        state.pool_mut(pool)?.set_access(&access)
    }

    fn cuMemPoolGetAccess(flags: *mut u32, pool: u64, place: *const MemLocation) {
        let state = begin()?;
        if flags.is_null() || place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let place = state.pool_place(place.read_unaligned(), allocation_type::PINNED);
        let place = place.map_err(|_| Code::INVALID_VALUE)?;
        put(flags, state.pool(pool)?.access(place))
    }

    fn cuMemAllocAsync | cuMemAllocAsync_ptsz (pointer: *mut u64, bytes: usize, stream: u64) {
        let mut state = begin()?;
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let stream = state.stream(stream)?;
        let device = state.stream_device(stream)?;
        let pool = state.current_pool(MemLocation::of_device(device as i32));
        put(pointer, state.allocate_in_order(stream, pool, bytes as u64)?)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz (pointer: *mut u64, bytes: usize, pool: u64, stream: u64) {
        let mut state = begin()?;
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let stream = state.stream(stream)?;
        let pool = state.pool_id(pool)?;
        put(pointer, state.allocate_in_order(stream, pool, bytes as u64)?)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz (pointer: u64, stream: u64) {
        let mut state = begin()?;
        let stream = state.stream(stream)?;
        state.free_in_order(stream, pointer)
    }

    fn cuMemPoolExportToShareableHandle(shareable: *mut c_void, pool: u64, kind: u32, flags: u64) {
        let state = begin()?;
        if shareable.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(shareable.cast::<i32>(), state.export_pool(pool, kind)?)
    }

    fn cuMemPoolImportFromShareableHandle(pool: *mut u64, shareable: *mut c_void, kind: u32, flags: u64) {
        let mut state = begin()?;
        if pool.is_null() || flags != 0 || kind != HANDLE_POSIX_FILE {
            return Err(Code::INVALID_VALUE);
        }
        let file = i32::try_from(shareable as usize).map_err(|_| Code::INVALID_VALUE)?;
        put(pool, state.import_pool(file)?)
    }

    fn cuMemPoolExportPointer(data: *mut Opaque64, pointer: u64) {
        let state = begin()?;
        if data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(data, state.export_pool_block(pointer)?)
    }

    fn cuMemPoolImportPointer(pointer: *mut u64, pool: u64, data: *const Opaque64) {
        let mut state = begin()?;
        if pointer.is_null() || data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(pointer, state.import_pool_block(pool, &data.read_unaligned())?)
    }
}
