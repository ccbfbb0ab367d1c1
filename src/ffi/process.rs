//! Fork and exit.

use super::{boundary, plan};
use crate::log::{self, Level};
use crate::pool::{defaults, recorder, registry};
use crate::text::text;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Once;

/// What is locked while the process forks.
struct Locked {
    pools: registry::ForkGuard,
    _plans: plan::ForkGuard,
}

thread_local! {
    /// What is locked between the two sides of a fork; both run on the forking thread. It has no
    /// destructor, so that a fork works while a thread ends.
    static LOCKED: RefCell<ManuallyDrop<Option<Locked>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Prepares the process, once: before the first pool is made.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    if STARTED.is_completed() {
        return;
    }
    // Before anything is begun once: bad values are logged, and whoever hears of them may call luma.
    defaults::read_environment();
    STARTED.call_once(|| {
        boundary::quiet_panics();
        // SAFETY: the handlers may run at any fork, on the forking thread: they only lock and
        // unlock. The library is never unloaded (-z nodelete). A failure leaves forks without
        // protection, as in a library that has none.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        if recorder::is_recording() {
            // SAFETY: the handler may run at any exit: it only writes a file.
            unsafe { libc::atexit(at_exit) };
        }
    });
}

extern "C" fn before_fork() {
    let locked = Locked {
        _plans: plan::lock_for_fork(),
        pools: registry::lock_for_fork(),
    };
    LOCKED.with_borrow_mut(|slot| *slot = ManuallyDrop::new(Some(locked)));
}

fn take_locked() -> Option<Locked> {
    LOCKED.with_borrow_mut(|slot| slot.take())
}

extern "C" fn in_parent() {
    drop(take_locked());
}

extern "C" fn in_child() {
    if let Some(locked) = take_locked() {
        locked.pools.in_child();
    }
}

extern "C" fn at_exit() {
    if let Some(problem) = recorder::begin_exit() {
        log::log(Level::Error, || text!("the trace is incomplete: {problem}"));
    }
}
