//! Sets of memory.

use super::Mode;
use super::shape::{Extent, Layout};
use crate::abi::graph::SetNodeV1;
use crate::context::ContextId;
use crate::exec::{self, Kind, StreamId, Work};
use crate::graph::Params;
use crate::memory::{Access, Location};
use crate::state::{Guard, State};
use crate::status::{Code, Result};
use std::sync::Arc;

/// What is to be set.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// The first byte.
    pub address: u64,
    /// Bytes from a row to the next. Not looked at if there is one row.
    pub pitch: usize,
    /// The element; its lower bytes count.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element_bytes: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Set {
    fn extent(&self) -> Result<Extent> {
        let width = self.width.checked_mul(self.element_bytes);
        let width = width.ok_or(Code::INVALID_VALUE)?;
        Ok(Extent {
            width,
            height: self.height,
            depth: 1,
        })
    }

    /// Checks it for a context, and gives what does it. `None`: there is nothing to set.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not aligned to elements, rows that overlap, or memory that may not be written.
    pub fn prepare(&self, state: &State, context: ContextId) -> Result<Option<Work>> {
        let extent = self.extent()?;
        if extent.is_empty() {
            return Ok(None);
        }
        extent.bytes()?;
        let element = self.element_bytes as u64;
        if !matches!(element, 1 | 2 | 4) || self.address % element != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let has_rows = self.height > 1;
        if has_rows && (self.pitch < extent.width || self.pitch as u64 % element != 0) {
            return Err(Code::INVALID_VALUE);
        }
        let layout = Layout {
            address: self.address,
            pitch: self.pitch,
            slice: 0,
        };
        let bytes = layout.span(extent)?;
        if state.is_pageable(self.address) {
            return Err(Code::INVALID_VALUE);
        }
        state.check_access(context, self.address, bytes, Access::Write)?;
        let pattern = self.value.to_le_bytes();
        let length = self.element_bytes;
        Ok(Some(Arc::new(move || {
            // SAFETY: the range was checked when the set was asked for, and a program keeps its memory
            // until its sets are done.
            unsafe { layout.fill(&pattern[..length], extent) };
        })))
    }
}

impl State {
    /// What does a set, for a node of a graph.
    ///
    /// # Errors
    /// As for [`Set::prepare`].
    pub fn set_work(&self, context: ContextId, set: &Set) -> Result<Work> {
        let work = set.prepare(self, context)?;
        Ok(work.unwrap_or_else(|| Arc::new(|| ())))
    }
}

/// Queues a set on a stream. A synchronous one is waited for if the host can see the memory.
///
/// # Errors
/// Those of capture, and of [`Set::prepare`].
pub fn enqueue(mut guard: Guard, stream: StreamId, set: &Set, mode: Mode) -> Result {
    let context = guard.current()?;
    if mode == Mode::Synchronous {
        guard.refuse_wait_on(stream)?;
    }
    let Some(work) = set.prepare(&guard, context)? else {
        return Ok(());
    };
    let finishes =
        guard.location(set.address) != Location::Device || guard.has_sync_memops(set.address);
    if mode == Mode::Synchronous && finishes {
        guard.refuse_in_capture()?;
        return exec::perform(guard, stream, work).map(drop);
    }
    let params = Params::Set(SetNodeV1 {
        address: set.address,
        pitch: set.pitch,
        value: set.value,
        element_bytes: set.element_bytes as u32,
        width: set.width,
        height: set.height,
    });
    guard
        .submit_described(stream, Kind::Set, work, Some(params))
        .map(drop)
}
