//! Copies and sets: what is moved from where to where, and what of it the caller waits for.
//!
//! The rules are those of "API synchronization behavior" in the driver's documentation. Where it
//! leaves a choice:
//! - A copy of pageable memory to a device takes the source during the call; in a plain call the
//!   destination is then written before the call returns, in the late mode after it, as the
//!   documentation permits.
//! - A copy from a device to pageable memory is done when the call returns, asynchronous or not.
//! - A synchronous copy within device memory is queued and not waited for, and so is a synchronous set
//!   of device memory: no host synchronisation is documented for them, unless the memory has
//!   `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.

pub mod array;
pub mod set;
pub mod shape;
pub mod side;

use crate::abi::copy::{Copy3D, Side3D, TYPE_DEVICE, TYPE_HOST};
use crate::context::ContextId;
use crate::environment::environment;
use crate::exec::{self, Kind, StreamId, Submitted, Work};
use crate::graph::Params;
use crate::memory::{Access, Location};
use crate::state::{self, Guard, State};
use crate::status::Result;
use shape::{Extent, Layout};
use side::Side;
use std::sync::Arc;

/// More than that is not staged: the caller waits for the copy instead, as the documentation permits.
const STAGED_AT_MOST: usize = 64 << 20;

/// Whether a call waits for what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Synchronous,
    Asynchronous,
}

/// A copy whose ranges were checked.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    from: Layout,
    to: Layout,
    extent: Extent,
    from_location: Location,
    to_location: Location,
    /// Whether the source may be gone after the call, wherever it is.
    takes_source: bool,
    /// Whether a synchronous copy of this memory always finishes in the call
    /// (`CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`).
    finishes: bool,
}

impl Copy {
    /// Checks a copy in a context. `None`: there is nothing to copy.
    ///
    /// # Errors
    /// `INVALID_VALUE`: a range that may not be accessed so. `INVALID_HANDLE`: no such array.
    pub fn new(
        state: &State,
        context: ContextId,
        from: Side,
        to: Side,
        extent: Extent,
    ) -> Result<Option<Self>> {
        Self::between(state, (context, from), (context, to), extent)
    }

    /// Checks a copy of which each side is accessed in a context of its own.
    ///
    /// # Errors
    /// As for [`Copy::new`].
    pub fn between(
        state: &State,
        (from_context, from): (ContextId, Side),
        (to_context, to): (ContextId, Side),
        extent: Extent,
    ) -> Result<Option<Self>> {
        if extent.is_empty() {
            return Ok(None);
        }
        extent.bytes()?;
        let from = from.resolve(state, from_context, extent, Access::Read)?;
        let to = to.resolve(state, to_context, extent, Access::Write)?;
        Ok(Some(Self {
            from,
            to,
            extent,
            from_location: state.location(from.address),
            to_location: state.location(to.address),
            takes_source: false,
            finishes: state.has_sync_memops(from.address) || state.has_sync_memops(to.address),
        }))
    }

    /// The same copy, of a source that is read during the call, out of the stream's order.
    pub fn taking_source(self) -> Self {
        Self {
            takes_source: true,
            ..self
        }
    }

    /// What does it.
    pub fn work(self) -> Work {
        Arc::new(move || {
            // SAFETY: the ranges were checked when the copy was asked for, and a program keeps its
            // memory until its copies are done.
            unsafe { self.from.copy_to(&self.to, self.extent) };
        })
    }

    /// The structure that asks for the same bytes. Arrays are named by where they lie.
    fn describe(self) -> Copy3D {
        let side = |layout: Layout, location: Location| {
            let is_host = matches!(location, Location::Pageable | Location::Pinned);
            let pitch = layout.pitch.max(self.extent.width);
            Side3D {
                x_bytes: 0,
                y: 0,
                z: 0,
                level: 0,
                memory_type: if is_host { TYPE_HOST } else { TYPE_DEVICE },
                host: if is_host { layout.address } else { 0 },
                device: if is_host { 0 } else { layout.address },
                array: 0,
                context: 0,
                pitch,
                height: (layout.slice / pitch).max(self.extent.height),
            }
        };
        Copy3D {
            source: side(self.from, self.from_location),
            destination: side(self.to, self.to_location),
            width_bytes: self.extent.width,
            height: self.extent.height,
            depth: self.extent.depth,
        }
    }

    /// The source's bytes now, and what puts them in place.
    fn stage(self) -> Work {
        let mut staged = vec![0u8; self.extent.width * self.extent.height * self.extent.depth];
        let stage = Layout::packed(staged.as_mut_ptr() as u64, self.extent);
        // SAFETY: the source is the caller's, and the stage is as large as the extent.
        unsafe { self.from.copy_to(&stage, self.extent) };
        Arc::new(move || {
            let stage = Layout::packed(staged.as_ptr() as u64, self.extent);
            // SAFETY: the stage lives as long as this work; the destination as in `work`.
            unsafe { stage.copy_to(&self.to, self.extent) };
        })
    }

    /// Whether the host sees it done when the call returns, if it was not staged.
    fn is_waited_for(self, mode: Mode) -> bool {
        let ends = [self.from_location, self.to_location];
        self.takes_source
            || match mode {
                // Managed memory may be read by the host at once.
                Mode::Synchronous => {
                    self.finishes || ends.iter().any(|&end| end != Location::Device)
                }
                Mode::Asynchronous => {
                    ends.contains(&Location::Pageable)
                        || ends.iter().all(|&end| end == Location::Pinned)
                }
            }
    }

    /// Whether the source is taken during the call, and only that.
    fn is_staged(self, mode: Mode) -> bool {
        let is_to_device = match mode {
            Mode::Synchronous => {
                environment().lazy && !self.finishes && self.to_location == Location::Device
            }
            Mode::Asynchronous => {
                matches!(self.to_location, Location::Device | Location::Managed)
            }
        };
        let bytes = self.extent.width * self.extent.height * self.extent.depth;
        let is_taken = self.from_location == Location::Pageable && is_to_device;
        (is_taken || self.takes_source) && bytes <= STAGED_AT_MOST
    }
}

/// Waits for submitted work, unless it was captured.
fn wait(guard: Guard, submitted: Submitted) -> Guard {
    match submitted {
        Submitted::Queued(point) => exec::wait(guard, point),
        Submitted::Captured(_) => guard,
    }
}

/// Queues a copy on a stream and waits as its kind asks.
///
/// # Errors
/// Those of capture. `INVALID_HANDLE`: the stream has gone.
pub fn enqueue(mut guard: Guard, stream: StreamId, copy: Option<Copy>, mode: Mode) -> Result {
    // The lock may have been released since the stream was looked up.
    guard.stream_ref(stream)?;
    if mode == Mode::Synchronous {
        guard.refuse_wait_on(stream)?;
    }
    let Some(copy) = copy else { return Ok(()) };
    if mode == Mode::Synchronous && copy.is_waited_for(mode) {
        guard.refuse_in_capture()?;
    }
    if guard.is_capturing(stream) {
        // A node reads its source at each launch.
        let params = Some(Params::Copy(Box::new(copy.describe())));
        let captured = guard.submit_described(stream, Kind::Copy, copy.work(), params);
        return captured.map(drop);
    }
    if copy.is_staged(mode) {
        if mode == Mode::Synchronous {
            guard = exec::perform(guard, stream, Arc::new(|| ()))?;
        }
        drop(guard);
        let staged = copy.stage();
        guard = state::lock();
        guard.stream_ref(stream)?;
        return guard.submit_as(stream, Kind::Copy, staged).map(drop);
    }
    if copy.is_waited_for(mode) && mode == Mode::Synchronous {
        return exec::perform(guard, stream, copy.work()).map(drop);
    }
    let submitted = guard.submit_as(stream, Kind::Copy, copy.work())?;
    if copy.is_waited_for(mode) {
        drop(wait(guard, submitted));
    }
    Ok(())
}
