//! The two sides of a copy as programs name them.

use super::shape::{Extent, Layout};
use crate::abi::copy::{Copy3D, Side3D, TYPE_ARRAY, TYPE_DEVICE, TYPE_HOST, TYPE_UNIFIED};
use crate::context::ContextId;
use crate::exec::Work;
use crate::memory::Access;
use crate::state::State;
use crate::status::{Code, Result};
use crate::transfer::Copy;
use std::sync::Arc;

/// More bytes from a row to the next cannot be asked for (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
pub const MOST_PITCH: usize = i32::MAX as usize;

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// Rows of host memory, known to the driver or not.
    Host(Layout),
    /// Rows of memory that the driver knows.
    Device(Layout),
    /// Rows of whatever memory.
    Unified(Layout),
    /// Bytes of an array, from a point on.
    Array {
        array: u64,
        x_bytes: usize,
        y: usize,
        z: usize,
    },
}

impl Side {
    /// One row of host memory.
    pub fn host(address: u64) -> Self {
        Self::Host(Self::row(address))
    }

    /// One row of device memory.
    pub fn device(address: u64) -> Self {
        Self::Device(Self::row(address))
    }

    /// One row of any memory.
    pub fn unified(address: u64) -> Self {
        Self::Unified(Self::row(address))
    }

    fn row(address: u64) -> Layout {
        Layout {
            address,
            pitch: 0,
            slice: 0,
        }
    }

    /// A side of a shaped copy. Pitch and height may be left out where there is one row or slice.
    ///
    /// # Errors
    /// `INVALID_VALUE`: the numbers do not fit each other.
    pub fn shaped(side: &Side3D, extent: Extent) -> Result<Self> {
        if side.memory_type == TYPE_ARRAY {
            return Ok(Self::Array {
                array: side.array,
                x_bytes: side.x_bytes,
                y: side.y,
                z: side.z,
            });
        }
        let row = side
            .x_bytes
            .checked_add(extent.width)
            .ok_or(Code::INVALID_VALUE)?;
        let pitch = if side.pitch == 0 { row } else { side.pitch };
        let rows = side
            .y
            .checked_add(extent.height)
            .ok_or(Code::INVALID_VALUE)?;
        let height = if side.height == 0 { rows } else { side.height };
        let is_volume = extent.depth > 1 || side.z > 0;
        if pitch < row || pitch > MOST_PITCH || (is_volume && height < rows) {
            return Err(Code::INVALID_VALUE);
        }
        let base = match side.memory_type {
            TYPE_HOST => side.host,
            TYPE_DEVICE | TYPE_UNIFIED => side.device,
            _ => return Err(Code::INVALID_VALUE),
        };
        let place = || {
            let slice = pitch.checked_mul(height)?;
            let skipped = slice
                .checked_mul(side.z)?
                .checked_add(pitch.checked_mul(side.y)?)?;
            let address = base.checked_add(skipped.checked_add(side.x_bytes)? as u64)?;
            Some(Layout {
                address,
                pitch,
                slice,
            })
        };
        let layout = place().ok_or(Code::INVALID_VALUE)?;
        Ok(match side.memory_type {
            TYPE_HOST => Self::Host(layout),
            TYPE_DEVICE => Self::Device(layout),
            _ => Self::Unified(layout),
        })
    }

    /// Where the bytes are, if a context may access them so.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not all of them. `INVALID_HANDLE`: no such array.
    pub fn resolve(
        self,
        state: &State,
        context: ContextId,
        extent: Extent,
        access: Access,
    ) -> Result<Layout> {
        let layout = match self {
            Self::Array {
                array,
                x_bytes,
                y,
                z,
            } => {
                return state.array(array)?.layout(x_bytes, y, z, extent);
            }
            Self::Host(layout) | Self::Device(layout) | Self::Unified(layout) => layout,
        };
        let bytes = layout.span(extent)?;
        let is_device_call = matches!(self, Self::Device(_));
        if layout.address == 0 || (is_device_call && state.is_pageable(layout.address)) {
            return Err(Code::INVALID_VALUE);
        }
        // Copies between devices need no peer access: the driver then goes through the host.
        let owner = state.owner(layout.address).unwrap_or(context);
        state.check_access(owner, layout.address, bytes, access)?;
        Ok(layout)
    }
}

/// The parts of a shaped copy.
///
/// # Errors
/// `INVALID_VALUE`: the numbers do not fit each other.
pub fn shaped(copy: &Copy3D) -> Result<(Side, Side, Extent)> {
    let extent = Extent {
        width: copy.width_bytes,
        height: copy.height,
        depth: copy.depth,
    };
    if copy.source.level != 0 || copy.destination.level != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let from = Side::shaped(&copy.source, extent)?;
    let to = Side::shaped(&copy.destination, extent)?;
    Ok((from, to, extent))
}

impl State {
    /// What does a shaped copy, for a node of a graph.
    ///
    /// # Errors
    /// As for the copy itself.
    pub fn copy_work(&self, context: ContextId, copy: &Copy3D) -> Result<Work> {
        let (from, to, extent) = shaped(copy)?;
        let copy = Copy::new(self, context, from, to, extent)?;
        Ok(copy.map_or_else(|| Arc::new(|| ()) as Work, Copy::work))
    }
}
