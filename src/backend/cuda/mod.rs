//! Memory of the CUDA driver: a device's, pinned, managed.
//!
//! The driver is loaded when it is first asked for, so that programs run where there is none. Every
//! call leaves the calling thread's current context and capture mode as they were, and breaks no
//! capture.
//!
//! - `driver`: the table of the driver's functions; `structs`: what they are given;
//! - `failure`: what they fail with, in the driver's words;
//! - `context`: contexts, and calls made in them;
//! - `pages`: virtual memory;
//! - `memory`: the backends;
//! - `streams`: streams and events.

mod context;
mod driver;
mod failure;
mod memory;
mod pages;
mod streams;
mod structs;

pub use context::Fate;
pub use memory::{CudaBackend, Kind};

use super::captures;
use super::streams::{Stream, Streams};
use crate::error::{Error, Result, Status};
use crate::text::text;
use context::Context;
use driver::{Absent, Driver, driver};

/// The streams of the CUDA driver. Where there is none, each of their calls fails.
pub(super) fn streams() -> &'static dyn Streams {
    &streams::CudaStreams
}

/// Whether there is a driver with a device.
///
/// # Errors
/// `NoDevice`: there is a driver, and it fails; the message says with what.
pub fn is_available() -> Result<bool> {
    match driver() {
        Ok(_) => Ok(true),
        Err(Absent::NoLibrary | Absent::NoDevice) => Ok(false),
        Err(Absent::Failed(error)) => Err(error),
    }
}

/// How many devices there are.
///
/// # Errors
/// `NoDevice`: there is no driver or no device, or the driver fails.
pub fn devices() -> Result<i32> {
    count(usable()?)
}

fn count(driver: &Driver) -> Result<i32> {
    driver
        .devices()
        .map_err(|failure| failure.into_error(driver))
}

fn usable() -> Result<&'static Driver> {
    driver().map_err(Absent::into_error)
}

/// Checks a device's number.
///
/// # Errors
/// `NoDevice`: as [`devices`], or there is no such device.
pub fn check_device(device: i32) -> Result<()> {
    usable_for(device).map(|_| ())
}

/// The driver, which has the device.
fn usable_for(device: i32) -> Result<&'static Driver> {
    let driver = usable()?;
    let count = count(driver)?;
    if (0..count).contains(&device) {
        return Ok(driver);
    }
    let last = count - 1;
    Err(Error::new(
        Status::NoDevice,
        text!("there is no device {device}: the CUDA driver counts {count}, from 0 to {last}"),
    ))
}

/// A context, by its handle. Handles of contexts that were destroyed come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextKey(usize);

impl ContextKey {
    /// No context is current.
    pub const NONE: Self = Self(0);

    /// The context with this handle.
    pub const fn of(handle: usize) -> Self {
        Self(handle)
    }
}

/// The context that is current in the calling thread.
///
/// # Errors
/// `NoDevice`: there is no driver to ask. `Driver`: it fails, as in a forked child.
#[inline]
pub fn current_context() -> Result<ContextKey> {
    let driver = driver::loaded().map_or_else(usable, Ok)?;
    let handle = context::current(driver).map_err(|failure| failure.into_error(driver))?;
    Ok(ContextKey(handle as usize))
}

/// As [`current_context`], where the program is to begin the driver itself; `None`: it did not, or no
/// context is current, or there is no driver.
#[inline]
pub fn context_of_program() -> Option<ContextKey> {
    let driver = driver::loaded().or_else(driver::library)?;
    let handle = context::current(driver).ok()?;
    (!handle.is_null()).then_some(ContextKey(handle as usize))
}

/// The context of a stream that lives, of a default stream the current one; `None`: nobody can tell.
pub fn context_of_stream(stream: Stream) -> Option<ContextKey> {
    if stream.is_default() || stream == Stream::PER_THREAD {
        return context_of_program();
    }
    let driver = driver::loaded()?;
    streams::context(driver, stream)
        .ok()
        .map(|handle| ContextKey(handle as usize))
}

/// Whether the primary context of a device exists; `None`: nobody can tell.
pub fn is_primary_active(device: i32) -> Option<bool> {
    let driver = driver::loaded()?;
    context::is_primary_active(driver, device).ok()
}

/// The program has made a context: its work may use memory of others.
pub fn note_context(context: ContextKey) {
    streams::note(context.0 as *mut core::ffi::c_void);
}

/// The program is about to begin a capture on a stream.
pub fn capture_begins(stream: Stream) {
    if let Some(driver) = driver::loaded().or_else(driver::library) {
        let origin = streams::origin(driver, stream);
        captures::begin(origin, streams::numbered_context(driver, stream));
    }
}

/// The capture that was begun on a stream has ended, or did not begin.
pub fn capture_ended(stream: Stream) {
    if let Some(driver) = driver::loaded() {
        captures::end(streams::origin(driver, stream));
    }
}

/// Whether a capture goes on that was begun on a stream.
pub fn has_capture(stream: Stream) -> bool {
    let driver = driver::loaded().filter(|_| captures::are_open());
    driver.is_some_and(|driver| captures::has(streams::origin(driver, stream)))
}

/// A context has ended, and the captures of its streams.
pub fn context_ended() {
    if let Some(driver) = driver::loaded().filter(|_| captures::are_open()) {
        captures::end_in(|context| streams::has_ended(driver, context));
    }
}

impl CudaBackend {
    /// Memory of a device, in its primary context, which is made if it does not exist.
    ///
    /// # Errors
    /// `NoDevice`: there is no such device. What the driver fails with.
    pub fn of_device(device: i32, kind: Kind) -> Result<Self> {
        let driver = usable_for(device)?;
        Context::primary(driver, device)
            .and_then(|context| Self::new(context, kind))
            .map_err(|failure| failure.into_error(driver))
    }

    /// Device memory in the calling thread's current context. `owns`: if it is a primary context, it is kept
    /// alive as long as this. Otherwise whoever owns it says when it is given up, as of a reset.
    ///
    /// # Errors
    /// What the driver fails with.
    pub fn of_current_context(owns: bool) -> Result<Self> {
        let driver = usable()?;
        context::current(driver)
            .and_then(|handle| Context::current(driver, handle, owns))
            .and_then(|context| Self::new(context, Kind::Device))
            .map_err(|failure| failure.into_error(driver))
    }

    /// The device's number.
    pub fn device(&self) -> i32 {
        self.context().device()
    }

    /// Whether it is the memory of a device's primary context.
    pub fn is_primary(&self) -> bool {
        self.context().is_primary()
    }

    /// Whether a context under the handle that this one's had is this one's, and not another that was
    /// made since. A primary context that was reset is made again for that.
    pub fn is_still(&self, key: ContextKey) -> bool {
        self.context().is_still(key.0 as *mut core::ffi::c_void)
    }

    /// What became of its context, whatever has the handle by now.
    pub fn fate(&self) -> Fate {
        self.context().fate()
    }

    /// The handle of its context, as it was last.
    pub fn context_key(&self) -> ContextKey {
        ContextKey(self.context().handle() as usize)
    }
}
