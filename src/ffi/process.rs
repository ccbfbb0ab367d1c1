//! Fork and exit.

use super::types::luma_status_t;
use super::{boundary, plan};
use crate::config::environment;
use crate::log::{self, Level};
use crate::pool::{checked, defaults, recorder, registry};
use crate::text::text;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Prepares the process for forks and its exit, once: before the first pool is made. Whoever makes default
/// pools by other functions than these calls it first.
pub fn start() {
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
        if recorder::is_recording() || environment().debug {
            PROCESS.store(std::process::id(), Ordering::Relaxed);
            // SAFETY: the handler may run at any exit: it writes a file and logs, and takes no lock for
            // good.
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

/// The process that set the handler for its exit; its children have it too.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn at_exit() {
    // What a program frees in handlers that it set after its first call of luma is free by now. Blocks
    // in a forked child are copies of its parent's.
    if environment().debug && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        // A panic would end the process in another way than it chose.
        let _: luma_status_t = boundary::call(|| {
            checked::list_at_exit();
            Ok(())
        });
    }
    if let Some(problem) = recorder::begin_exit() {
        log::log(Level::Error, || text!("the trace is incomplete: {problem}"));
    }
}
