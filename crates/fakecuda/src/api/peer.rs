//! Access between devices.

use crate::driver;
use crate::entry::put;
use crate::state::{State, lock};
use crate::status::{Code, Result};

/// Whether one device can reach another's memory: each can, and its own needs nothing.
fn can_access(device: usize, peer: usize) -> bool {
    device != peer
}

/// Two different devices.
fn link(state: &State, from: i32, to: i32) -> Result {
    let (from, to) = (state.device(from)?, state.device(to)?);
    if from == to {
        return Err(Code::INVALID_DEVICE);
    }
    Ok(())
}

driver! {
    fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) {
        let state = lock();
        let (device, peer) = (state.device(device)?, state.device(peer)?);
        put(can, i32::from(can_access(device, peer)))
    }

    fn cuDeviceGetP2PAttribute(value: *mut i32, which: u32, from: i32, to: i32) {
        link(&lock(), from, to)?;
        put(value, match which {
            1 => 0, // PERFORMANCE_RANK
            2 => 1, // ACCESS_SUPPORTED
            3 => 1, // NATIVE_ATOMIC_SUPPORTED
            4 => 0, // CUDA_ARRAY_ACCESS_SUPPORTED
            5 => 0, // ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut state = lock();
        let current = state.current()?;
        let peer = state.context_by_handle(peer).map_err(|_| Code::INVALID_CONTEXT)?;
        if peer == current {
            return Err(Code::INVALID_CONTEXT);
        }
        if !can_access(state.context(current)?.device, state.context(peer)?.device) {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        if !state.context_mut(current)?.peers.insert(peer) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: u64) {
        let mut state = lock();
        let current = state.current()?;
        let peer = state.context_by_handle(peer).map_err(|_| Code::INVALID_CONTEXT)?;
        if !state.context_mut(current)?.peers.remove(&peer) {
            return Err(Code::PEER_ACCESS_NOT_ENABLED);
        }
        Ok(())
    }

    // Writes of other devices are writes to host memory, and visible at once.
    fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        // The one target is the current context; the scopes are its owner and all devices.
        if target != 0 || !matches!(scope, 100 | 200) {
            return Err(Code::INVALID_VALUE);
        }
        lock().current().map(|_| ())
    }
}
