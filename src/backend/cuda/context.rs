//! Contexts: which one a pool's memory belongs to, and calls made in it.

use super::driver::{ContextHandle, Driver, Handle};
use super::failure::Failure;
use core::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A context that memory belongs to.
#[derive(Debug)]
pub(super) struct Context {
    driver: &'static Driver,
    device: c_int,
    handle: AtomicPtr<c_void>,
    /// Whether it is a primary context that was reset, and must be made again before the next call.
    is_stale: AtomicBool,
    /// Whether it is the device's primary context.
    is_primary: bool,
    /// Whether this is one owner of the primary context.
    is_owner: bool,
    /// Its number, where the driver numbers contexts: handles come again. 0: not known, as that of a
    /// primary context which has an owner here.
    id: AtomicU64,
}

/// What became of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Lives,
    /// It has ended.
    Ended,
    /// It is a primary context that was forgotten, and is looked for again at the next call.
    Forgotten,
    /// The driver does not number contexts.
    Unknown,
}

impl Context {
    /// The primary context of a device, made if it does not exist.
    pub(super) fn primary(driver: &'static Driver, device: c_int) -> Result<Self, Failure> {
        Ok(Self {
            driver,
            device,
            handle: AtomicPtr::new(retain(driver, device)?),
            is_stale: AtomicBool::new(false),
            is_primary: true,
            is_owner: true,
            id: AtomicU64::new(0),
        })
    }

    /// The calling thread's current context, whose handle is `handle`. `owns`: a primary one is kept alive.
    pub(super) fn current(
        driver: &'static Driver,
        handle: ContextHandle,
        owns: bool,
    ) -> Result<Self, Failure> {
        let mut device = 0;
        // SAFETY: the out-parameter is valid for writing.
        unsafe { driver.current_device(&mut device) }?;
        if is_primary_active(driver, device)? {
            let mut primary = Self::primary(driver, device)?;
            if primary.handle() == handle {
                primary.set_owner(owns);
                if !owns {
                    let id = id_of(driver, handle)?;
                    primary.id = AtomicU64::new(id.unwrap_or(0));
                }
                return Ok(primary);
            }
        }
        Ok(Self {
            driver,
            device,
            handle: AtomicPtr::new(handle),
            is_stale: AtomicBool::new(false),
            is_primary: false,
            is_owner: false,
            id: AtomicU64::new(id_of(driver, handle)?.unwrap_or(0)),
        })
    }

    fn set_owner(&mut self, owns: bool) {
        if !owns {
            self.is_owner = false;
            release(self.driver, self.device);
        }
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn device(&self) -> c_int {
        self.device
    }

    pub(super) fn is_primary(&self) -> bool {
        self.is_primary
    }

    pub(super) fn handle(&self) -> ContextHandle {
        self.handle.load(Ordering::Acquire)
    }

    /// Whether this is the context that is current under a handle which was this one's.
    pub(super) fn is_still(&self, handle: ContextHandle) -> bool {
        if self.is_primary {
            // After a reset it is made again, perhaps under another handle.
            return self.usable().is_ok_and(|usable| usable == handle);
        }
        match id_of(self.driver, handle) {
            Ok(id) => id.unwrap_or(0) == self.id.load(Ordering::Acquire),
            // A driver that cannot say has not said that it is another one.
            Err(failure) => failure.is_the_end() || !failure.took_the_memory(),
        }
    }

    /// Whether the context is there, whatever has its handle.
    pub(super) fn fate(&self) -> Fate {
        // In this order: the number of a context that was made again is there before it is not stale.
        if self.is_stale.load(Ordering::Acquire) {
            return Fate::Forgotten;
        }
        let id = self.id.load(Ordering::Acquire);
        match id_of(self.driver, self.handle()) {
            _ if id == 0 => Fate::Unknown,
            Ok(now) if now == Some(id) => Fate::Lives,
            Err(failure) if !failure.took_the_memory() => Fate::Unknown,
            _ => Fate::Ended,
        }
    }

    /// The device was reset, and with it this context if it is the primary one. No driver call.
    pub(super) fn forget(&self) {
        if self.is_primary {
            self.is_stale.store(true, Ordering::Release);
        }
    }

    /// The handle; of a primary context that was reset, after making it again.
    pub(super) fn usable(&self) -> Result<ContextHandle, Failure> {
        if self.is_stale.load(Ordering::Acquire) {
            // Without a lock, which a child that is forked meanwhile would find taken for ever.
            // The share that was held before the reset is left alone: if the reset took it, giving it
            // up would take somebody else's.
            let handle = if self.is_owner {
                retain(self.driver, self.device)?
            } else {
                let handle = active_primary(self.driver, self.device)?
                    .ok_or(Failure::destroyed_context("cuDevicePrimaryCtxGetState"))?;
                let id = id_of(self.driver, handle)?;
                self.id.store(id.unwrap_or(0), Ordering::Release);
                handle
            };
            self.handle.store(handle, Ordering::Release);
            if !self.is_stale.swap(false, Ordering::AcqRel) && self.is_owner {
                // Another thread was faster, and one share is enough.
                release(self.driver, self.device);
            }
        }
        Ok(self.handle())
    }

    /// Makes driver calls in this context. The thread's current context and capture mode are the same
    /// afterwards, whatever fails.
    pub(super) fn within<T>(
        &self,
        calls: impl FnOnce(&'static Driver) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        within(self.driver, self.usable()?, calls)
    }
}

/// A context: by its number, which no other context of the process ever has, or by its handle where the
/// driver does not number contexts.
pub(super) type ContextNumber = u64;

/// The number of a context.
pub(super) fn number_of(driver: &Driver, handle: ContextHandle) -> Result<ContextNumber, Failure> {
    Ok(id_of(driver, handle)?.unwrap_or(handle as u64))
}

/// Makes driver calls in a context. The thread's current context and capture mode are the same
/// afterwards, whatever fails.
pub(super) fn within<T>(
    driver: &'static Driver,
    handle: ContextHandle,
    calls: impl FnOnce(&'static Driver) -> Result<T, Failure>,
) -> Result<T, Failure> {
    relaxed(driver, || {
        let before = current(driver)?;
        if before == handle {
            return calls(driver);
        }
        // SAFETY: the handle is a context's; one that was destroyed is an error.
        unsafe { driver.push(handle) }?;
        let result = calls(driver);
        let mut popped = null_mut();
        // SAFETY: the out-parameter is valid for writing, here and below.
        if unsafe { driver.pop(&mut popped) }.is_err()
            && unsafe { driver.pop(&mut popped) }.is_err()
        {
            // What the call did counts all the same. The caller's context is at least current again.
            // SAFETY: it was current before.
            let _ = unsafe { driver.set_current(before) };
        }
        result
    })
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: u32 = 2;

/// Makes driver calls that become no part of a capture, whatever the thread's or another one's captures
/// are: without this the driver refuses them, and breaks the captures. The thread's mode is the same
/// afterwards, whatever fails.
pub(super) fn relaxed<T>(
    driver: &Driver,
    calls: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut mode = RELAXED;
    // SAFETY: the parameter is valid for reading and writing, here and below.
    match unsafe { driver.exchange_capture_mode(&mut mode) } {
        Ok(()) => {}
        // Such a driver does not capture, or not in modes.
        Err(failure) if failure.is_unsupported() => return calls(),
        Err(failure) => return Err(failure),
    }
    let result = calls();
    if mode != RELAXED && unsafe { driver.exchange_capture_mode(&mut mode) }.is_err() {
        let _ = unsafe { driver.exchange_capture_mode(&mut mode) };
    }
    result
}

/// `CU_STREAM_LEGACY`: the legacy default stream, whatever 0 means to the program.
pub(super) const LEGACY_STREAM: Handle = 1;

/// Fails while a stream is being captured that the legacy default stream of the current context waits
/// for. Any other call about the default stream would break that capture.
pub(super) fn check_default_stream(driver: &Driver) -> Result<(), Failure> {
    let mut status = 0;
    // SAFETY: the out-parameter is valid for writing; the handle means this stream in every context.
    match unsafe { driver.is_capturing(LEGACY_STREAM, &mut status) } {
        Err(failure) if failure.is_unsupported() => Ok(()),
        outcome => outcome,
    }
}

/// Waits until the legacy default stream of the current context has done all that is queued on it. A
/// block is freed in that stream's order, so what its owner still has queued may use it until then.
pub(super) fn wait_for_default_stream(driver: &Driver) -> Result<(), Failure> {
    // SAFETY: the handle means this stream in every context.
    match check_default_stream(driver)
        .and_then(|()| unsafe { driver.stream_synchronize(LEGACY_STREAM) })
    {
        // The process is ending, and no work with it.
        Err(failure) if failure.is_the_end() => Ok(()),
        outcome => outcome,
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_owner {
            release(self.driver, self.device);
        }
    }
}

/// The calling thread's current context; null: none.
pub(super) fn current(driver: &Driver) -> Result<ContextHandle, Failure> {
    let mut handle = null_mut();
    // SAFETY: the out-parameter is valid for writing.
    unsafe { driver.current(&mut handle) }?;
    Ok(handle)
}

/// The number of a context that is current; `None`: the driver does not number them.
fn id_of(driver: &Driver, handle: ContextHandle) -> Result<Option<u64>, Failure> {
    let ask = || {
        let mut id = 0;
        // SAFETY: the out-parameter is valid for writing; a handle of no context is an error.
        unsafe { driver.context_id(handle, &mut id) }.map(|()| id)
    };
    // Much hangs on it: a context that only seems to have no number, or to be gone, is taken for idle.
    match ask().or_else(|failure| match failure.is_missing() {
        true => Err(failure),
        false => ask(),
    }) {
        Ok(id) => Ok(Some(id)),
        Err(failure) if failure.is_unsupported() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn retain(driver: &Driver, device: c_int) -> Result<ContextHandle, Failure> {
    let mut number = 0;
    let mut handle = null_mut();
    // SAFETY: the out-parameters are valid for writing.
    relaxed(driver, || unsafe {
        driver.device_get(&mut number, device)?;
        driver.primary_retain(&mut handle, number)
    })?;
    Ok(handle)
}

/// The primary context of a device, if it exists. Nobody owns it more than before.
pub(super) fn active_primary(
    driver: &Driver,
    device: c_int,
) -> Result<Option<ContextHandle>, Failure> {
    if !is_primary_active(driver, device)? {
        return Ok(None);
    }
    let handle = retain(driver, device)?;
    release(driver, device);
    Ok(Some(handle))
}

/// One owner less. Whoever gives a context up has nobody to tell of a failure.
fn release(driver: &Driver, device: c_int) {
    // SAFETY: `retain` was called for it.
    let release = || unsafe {
        match driver.primary_release(device) {
            Err(failure) if failure.is_missing() => driver.primary_release_v1(device),
            outcome => outcome,
        }
    };
    let _ = relaxed(driver, || release().or_else(|_| release())).or_else(|_| release());
}

/// Whether a device's primary context exists. A driver that cannot tell has made one by now.
pub(super) fn is_primary_active(driver: &Driver, device: c_int) -> Result<bool, Failure> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: the out-parameters are valid for writing.
    match unsafe { driver.primary_state(device, &mut flags, &mut active) } {
        Ok(()) => Ok(active != 0),
        Err(failure) if failure.is_missing() => Ok(true),
        Err(failure) => Err(failure),
    }
}
