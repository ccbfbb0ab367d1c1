//! What the driver keeps for each thread.

use crate::context::ContextId;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the null stream means in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullStream {
    /// The context's one legacy default stream.
    Legacy,
    /// The calling thread's own default stream: the functions whose names end in `_ptsz` or `_ptds`.
    PerThread,
}

/// An entry of a thread's stack of contexts. It stays when the context goes.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    /// The handle that the program gave.
    pub handle: u64,
    /// What it named then.
    pub context: ContextId,
    /// The device, if it is a primary context: that may become active again.
    pub primary_of: Option<usize>,
}

thread_local! {
    /// The stack of current contexts; the last is current. Exit handlers of the process run on a thread
    /// whose variables were dropped, and still have their contexts: see `Ended`.
    static CONTEXTS: ManuallyDrop<RefCell<Vec<Current>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static ENDED: Ended = const { Ended };
    static NULL_STREAM: Cell<NullStream> = const { Cell::new(NullStream::Legacy) };
    /// `CUstreamCaptureMode` for calls that are not safe under capture.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// Set while this thread runs a host function of a stream, which may not call the driver.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Gives a thread's stack of contexts back when it ends, other than the main thread's.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: two calls without arguments.
        if unsafe { libc::gettid() != libc::getpid() } {
            CONTEXTS.with(|contexts| contexts.take());
        }
    }
}

/// A number for this thread that no other thread ever has.
pub fn id() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    THREAD.with(|id| {
        if id.get() == 0 {
            id.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
        }
        id.get()
    })
}

/// Works on the thread's stack of contexts.
pub fn with_contexts<T>(work: impl FnOnce(&mut Vec<Current>) -> T) -> T {
    // Absent once the thread ends.
    let _ = ENDED.try_with(|_| ());
    CONTEXTS.with(|contexts| work(&mut contexts.borrow_mut()))
}

/// The top of the stack.
pub fn top() -> Option<Current> {
    with_contexts(|contexts| contexts.last().copied())
}

/// What the null stream means in the call that this thread is in.
pub fn null_stream() -> NullStream {
    NULL_STREAM.get()
}

/// Runs a call in which the null stream means the thread's own.
pub fn with_null_stream<T>(meaning: NullStream, call: impl FnOnce() -> T) -> T {
    let before = NULL_STREAM.replace(meaning);
    let result = call();
    NULL_STREAM.set(before);
    result
}

/// The thread's capture mode.
pub fn capture_mode() -> u32 {
    CAPTURE_MODE.get()
}

/// Sets the thread's capture mode and gives the one before.
pub fn exchange_capture_mode(mode: u32) -> u32 {
    CAPTURE_MODE.replace(mode)
}

/// Whether this thread is inside a host function of a stream.
pub fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Runs a host function of a stream.
pub fn as_host_function<T>(call: impl FnOnce() -> T) -> T {
    let before = IN_HOST_FUNCTION.replace(true);
    let result = call();
    IN_HOST_FUNCTION.set(before);
    result
}
