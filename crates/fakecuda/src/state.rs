//! All that the driver knows, behind one lock.
//!
//! Nothing that may take long is done under it: streams' work runs on their own threads with the
//! lock released, and a call that waits does so on [`CHANGED`].

use crate::context::{Context, ContextId};
use crate::device::Device;
use crate::environment::environment;
use crate::exec::Exec;
use crate::graph::Graphs;
use crate::handle::Table;
use crate::memory::Memory;
use crate::module::Modules;
use crate::status::{Code, Result};
use crate::transfer::array::Arrays;
use std::collections::BTreeMap;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

/// The state of the driver.
#[derive(Debug)]
pub struct State {
    pub devices: Vec<Device>,
    pub contexts: BTreeMap<ContextId, Context>,
    pub context_handles: Table<ContextId>,
    pub contexts_made: u64,
    pub memory: Memory,
    pub exec: Exec,
    pub graphs: Graphs,
    pub modules: Modules,
    pub arrays: Arrays,
}

/// The lock, held.
pub type Guard = MutexGuard<'static, State>;

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    Mutex::new(State {
        devices: (0..environment().devices).map(|_| Device::new()).collect(),
        contexts: BTreeMap::new(),
        context_handles: Table::new(1),
        contexts_made: 0,
        memory: Memory::new(),
        exec: Exec::new(),
        graphs: Graphs::new(),
        modules: Modules::new(),
        arrays: Arrays::new(),
    })
});

/// Signalled when any stream has got on, or has got work.
pub static CHANGED: Condvar = Condvar::new();

/// Locks the state.
pub fn lock() -> Guard {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal with the lock released.
pub fn wait_for_change(guard: Guard) -> Guard {
    CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Checks a device's number.
    pub fn device(&self, device: i32) -> Result<usize> {
        usize::try_from(device)
            .ok()
            .filter(|&device| device < self.devices.len())
            .ok_or(Code::INVALID_DEVICE)
    }
}
