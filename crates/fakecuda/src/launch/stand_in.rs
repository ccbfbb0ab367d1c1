//! Host functions that stand in for kernels.

use super::name;
use crate::abi::launch::Launch;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a test registers for a kernel.
pub type Kernel = unsafe extern "C" fn(*const Launch, *mut c_void);

/// A registered function.
#[derive(Clone, Debug)]
pub struct StandIn {
    pub function: Kernel,
    user: usize,
    /// Bytes of each parameter.
    pub sizes: Vec<usize>,
}

impl StandIn {
    /// The pointer that was registered with it.
    pub fn user(&self) -> *mut c_void {
        self.user as *mut c_void
    }
}

/// It has its own lock, as functions are registered before there is a driver, and from functions that
/// run while it is busy.
static STAND_INS: Mutex<BTreeMap<String, StandIn>> = Mutex::new(BTreeMap::new());

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

fn stand_ins() -> MutexGuard<'static, BTreeMap<String, StandIn>> {
    STAND_INS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a function stand in for all kernels of a name from now on, or no function any more. The name
/// is the exact one, or the plain one inside a mangled one. `sizes` are the bytes of each parameter.
pub fn register(name: &str, function: Option<Kernel>, user: *mut c_void, sizes: &[usize]) {
    let mut stand_ins = stand_ins();
    match function {
        Some(function) => {
            let stand_in = StandIn {
                function,
                user: user as usize,
                sizes: sizes.to_vec(),
            };
            stand_ins.insert(name.to_owned(), stand_in);
        }
        None => {
            stand_ins.remove(name);
        }
    }
}

/// What stands in for a kernel. An exact name goes before a plain one.
pub fn find(kernel: &str) -> Option<StandIn> {
    let stand_ins = stand_ins();
    let found = stand_ins.get(kernel);
    found
        .or_else(|| stand_ins.get(name::plain(kernel)?))
        .cloned()
}

/// Counts a kernel that runs.
pub fn count() {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
}

/// How many kernels have run, those of graphs each time.
pub fn launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}
