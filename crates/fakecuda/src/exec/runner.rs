//! The threads that run operations.
//!
//! A stream whose first operation may run gets a thread of its own until that is done: one that is
//! idle, or a new one. So an operation that blocks keeps its stream busy and no other, and there are
//! at most as many threads as streams that run at once. A thread that finds nothing to do for a while
//! ends.

use super::queue::Step;
use super::{Exec, StreamId};
use crate::state::{self, Guard};
use crate::thread::as_host_function;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an idle thread stays.
const STAY: Duration = Duration::from_millis(200);

/// Signalled once for each permit.
static WORK: Condvar = Condvar::new();

/// The threads.
#[derive(Debug, Default)]
pub struct Runners {
    /// Threads that wait for a permit.
    idle: usize,
    /// Threads that were idle, were told to look for a ready stream, and have not yet done so.
    permits: usize,
    /// Threads that were made to look for a ready stream, and have not yet done so.
    starting: usize,
}

impl Exec {
    /// Sees to it that each ready stream has a thread that will come for it, other than `spare` ones for
    /// which the caller comes.
    pub(super) fn wake_runners(&mut self, spare: usize) {
        let runners = &mut self.runners;
        let covered = runners.permits + runners.starting + spare;
        for _ in covered..self.ready.len() {
            if runners.idle > 0 {
                runners.idle -= 1;
                runners.permits += 1;
                WORK.notify_one();
            } else if spawn_thread("fakecuda", serve).is_ok() {
                runners.starting += 1;
            } else {
                // The threads that there are come for it when they are done, or a caller who waits for it.
                return;
            }
        }
    }

    /// Takes a stream off the ready ones, for a caller who runs its first operation.
    pub(super) fn claim(&mut self, id: StreamId) -> Step {
        self.ready.retain(|&ready| ready != id);
        self.start(id)
    }
}

/// Runs an operation's step, with the lock released, and completes it.
pub(super) fn run(mut guard: Guard, id: StreamId, step: Step) -> Guard {
    drop(guard);
    // A panic is the end of this operation only. Programs' functions cannot get one here.
    let _ = catch_unwind(AssertUnwindSafe(|| match &step {
        Step::Nothing | Step::Keep(_) | Step::Stamp(_) => {}
        Step::Work(work) => work(),
        Step::Host(function) => as_host_function(|| function()),
    }));
    // What the step holds may run code when it goes, which must not be under the lock.
    drop(step);
    guard = state::lock();
    guard.exec.finish(id);
    guard
}

/// Starts a thread of the driver's own.
pub fn spawn_thread(name: &str, body: fn()) -> io::Result<()> {
    const STACK: usize = 8 << 20;
    let builder = thread::Builder::new().name(name.into()).stack_size(STACK);
    let signals = SignalsBlocked::new();
    let spawned = builder.spawn(body);
    drop(signals);
    spawned.map(drop)
}

/// Blocks all signals of this thread while a thread is made, which inherits that: a program's signal
/// handlers run on the program's own threads.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> Self {
        // SAFETY: both sets are ours, and a set of zeros is a valid one.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // A fault of a program's function still has to reach the program's handler.
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGABRT,
                libc::SIGTRAP,
                libc::SIGSYS,
            ] {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            Self { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is what this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// A thread's life.
fn serve() {
    let mut guard = state::lock();
    guard.exec.runners.starting -= 1;
    loop {
        while let Some(id) = guard.exec.ready.pop_front() {
            let step = guard.exec.start(id);
            guard = run(guard, id, step);
            // This thread is about to take one itself.
            guard.exec.wake_runners(1);
        }
        guard.exec.runners.idle += 1;
        loop {
            let waited = WORK.wait_timeout(guard, STAY);
            let (after, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            guard = after;
            if guard.exec.runners.permits > 0 {
                guard.exec.runners.permits -= 1;
                break;
            }
            // Whoever gives a permit takes one thread from the idle ones, so that without a permit this
            // one is still counted among them.
            if waited.timed_out() {
                guard.exec.runners.idle -= 1;
                return;
            }
        }
    }
}
