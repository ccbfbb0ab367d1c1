//! Memory of other processes.

use crate::abi::memory::Opaque64;
use crate::driver;
use crate::entry::put;
use crate::exec;
use crate::state::lock;
use crate::status::{Code, Result};

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, which must be given.
const LAZY_PEER_ACCESS: u32 = 1;

unsafe fn open(pointer: *mut u64, handle: &Opaque64, flags: u32) -> Result {
    let mut state = lock();
    let context = state.current()?;
    if pointer.is_null() || flags != LAZY_PEER_ACCESS {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: it is not null, and the caller keeps the driver's contract.
    unsafe { put(pointer, state.import_block(context, handle)?) }
}

driver! {
    fn cuIpcGetMemHandle(handle: *mut Opaque64, pointer: u64) {
        let state = lock();
        state.current()?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(handle, state.export_block(pointer)?)
    }

    fn cuIpcOpenMemHandle(pointer: *mut u64, handle: Opaque64, flags: u32) {
        open(pointer, &handle, flags)
    }

    fn cuIpcOpenMemHandle_v2(pointer: *mut u64, handle: Opaque64, flags: u32) {
        open(pointer, &handle, flags)
    }

    fn cuIpcCloseMemHandle(pointer: u64) {
        let mut state = lock();
        state.current()?;
        let device = state.imported_device(pointer)?;
        state = exec::wait_device(state, device);
        state.close_import(pointer)
    }
}
