//! Arrays: memory that only copies reach. Rows lie one after another, without gaps.

use super::shape::{Extent, Layout};
use crate::abi::copy::Array3DDescriptor;
use crate::context::ContextId;
use crate::handle::Table;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::BTreeMap;

/// `CUDA_ARRAY3D_LAYERED`.
const LAYERED: u32 = 1;
/// `CUDA_ARRAY3D_CUBEMAP`.
const CUBEMAP: u32 = 4;

/// An array.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// As given at its creation.
    pub descriptor: Array3DDescriptor,
    context: ContextId,
    address: u64,
    element_bytes: usize,
    /// The mipmapped array that it is a level of.
    owner: Option<u64>,
}

/// A mipmapped array: the handles of its levels.
#[derive(Debug)]
struct Mipmap {
    context: ContextId,
    levels: Vec<u64>,
}

/// All arrays.
#[derive(Debug)]
pub struct Arrays {
    arrays: Table<Array>,
    mipmaps: Table<Mipmap>,
}

impl Arrays {
    pub fn new() -> Self {
        Self {
            arrays: Table::new(37),
            mipmaps: Table::new(38),
        }
    }

    /// A context goes, and its memory with it.
    pub fn forget_all_of(&mut self, context: ContextId) {
        let arrays = self
            .arrays
            .iter()
            .filter(|(_, array)| array.context == context);
        for handle in arrays.map(|(handle, _)| handle).collect::<Vec<_>>() {
            self.arrays.remove(handle);
        }
        let mipmaps = self
            .mipmaps
            .iter()
            .filter(|(_, mipmap)| mipmap.context == context);
        for handle in mipmaps.map(|(handle, _)| handle).collect::<Vec<_>>() {
            self.mipmaps.remove(handle);
        }
    }
}

/// Bytes of one channel of a `CUarray_format` of plain elements.
fn channel_bytes(format: u32) -> Option<usize> {
    let sizes = BTreeMap::from([
        (0x01, 1),
        (0x02, 2),
        (0x03, 4),
        (0x08, 1),
        (0x09, 2),
        (0x0a, 4),
        (0x10, 2),
        (0x20, 4),
    ]);
    sizes.get(&format).copied()
}

impl Array {
    /// Where an extent from a point on lies.
    ///
    /// # Errors
    /// `INVALID_VALUE`: it is not inside, or not of whole elements.
    pub fn layout(&self, x_bytes: usize, y: usize, z: usize, extent: Extent) -> Result<Layout> {
        let [width, height, depth] = self.extent();
        let is_inside = |from: usize, length: usize, all: usize| {
            from.checked_add(length).is_some_and(|end| end <= all)
        };
        if x_bytes % self.element_bytes != 0
            || extent.width % self.element_bytes != 0
            || !is_inside(x_bytes, extent.width, width)
            || !is_inside(y, extent.height, height)
            || !is_inside(z, extent.depth, depth)
        {
            return Err(Code::INVALID_VALUE);
        }
        let slice = width * height;
        Ok(Layout {
            address: self.address + (z * slice + y * width + x_bytes) as u64,
            pitch: width,
            slice,
        })
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Bytes of a row, rows, slices.
    fn extent(&self) -> [usize; 3] {
        [
            self.descriptor.width * self.element_bytes,
            self.descriptor.height.max(1),
            self.descriptor.depth.max(1),
        ]
    }
}

impl State {
    /// An array by its handle.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none.
    pub fn array(&self, handle: u64) -> Result<&Array> {
        self.arrays.arrays.get(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// Makes an array in the current context.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no such format or size. `OUT_OF_MEMORY`.
    pub fn create_array(&mut self, descriptor: Array3DDescriptor) -> Result<u64> {
        self.create_level(descriptor, None)
    }

    fn create_level(&mut self, descriptor: Array3DDescriptor, owner: Option<u64>) -> Result<u64> {
        let context = self.current()?;
        let channel = channel_bytes(descriptor.format).ok_or(Code::INVALID_VALUE)?;
        let is_layered = descriptor.flags & (LAYERED | CUBEMAP) != 0;
        let has_gap = descriptor.depth > 0 && descriptor.height == 0 && !is_layered;
        if descriptor.width == 0 || has_gap || !matches!(descriptor.channels, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        let element_bytes = channel * descriptor.channels as usize;
        let bytes = descriptor
            .width
            .checked_mul(element_bytes)
            .and_then(|row| row.checked_mul(descriptor.height.max(1)))
            .and_then(|slice| slice.checked_mul(descriptor.depth.max(1)))
            .ok_or(Code::INVALID_VALUE)?;
        let address = self.global_allocate(context, bytes as u64)?;
        Ok(self.arrays.arrays.insert(Array {
            descriptor,
            context,
            address,
            element_bytes,
            owner,
        }))
    }

    /// Destroys an array.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none, or it is a level of a mipmapped one.
    pub fn destroy_array(&mut self, handle: u64) -> Result {
        if self.array(handle)?.owner.is_some() {
            return Err(Code::INVALID_HANDLE);
        }
        self.remove_array(handle);
        Ok(())
    }

    fn remove_array(&mut self, handle: u64) {
        if let Some(array) = self.arrays.arrays.remove(handle) {
            self.global_release(array.address);
        }
    }

    /// Makes a mipmapped array: each level has half the extent of the one before.
    ///
    /// # Errors
    /// As for an array. `INVALID_VALUE`: more levels than there are sizes, or none.
    pub fn create_mipmap(&mut self, descriptor: Array3DDescriptor, levels: u32) -> Result<u64> {
        let context = self.current()?;
        let is_layered = descriptor.flags & (LAYERED | CUBEMAP) != 0;
        let depth = if is_layered { 0 } else { descriptor.depth };
        let longest = descriptor.width.max(descriptor.height).max(depth);
        if levels == 0 || longest == 0 || levels > longest.ilog2() + 1 {
            return Err(Code::INVALID_VALUE);
        }
        let mipmap = self.arrays.mipmaps.insert(Mipmap {
            context,
            levels: Vec::new(),
        });
        for level in 0..levels {
            let half = |size: usize| if size == 0 { 0 } else { (size >> level).max(1) };
            let descriptor = Array3DDescriptor {
                width: half(descriptor.width),
                height: half(descriptor.height),
                depth: if is_layered {
                    descriptor.depth
                } else {
                    half(descriptor.depth)
                },
                ..descriptor
            };
            match self.create_level(descriptor, Some(mipmap)) {
                Ok(array) => {
                    if let Some(mipmap) = self.arrays.mipmaps.get_mut(mipmap) {
                        mipmap.levels.push(array);
                    }
                }
                Err(code) => {
                    self.destroy_mipmap(mipmap)?;
                    return Err(code);
                }
            }
        }
        Ok(mipmap)
    }

    /// The array of a level.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such mipmapped array. `INVALID_VALUE`: no such level.
    pub fn mipmap_level(&self, handle: u64, level: u32) -> Result<u64> {
        let mipmap = self
            .arrays
            .mipmaps
            .get(handle)
            .ok_or(Code::INVALID_HANDLE)?;
        mipmap
            .levels
            .get(level as usize)
            .copied()
            .ok_or(Code::INVALID_VALUE)
    }

    /// Destroys a mipmapped array with its levels.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none.
    pub fn destroy_mipmap(&mut self, handle: u64) -> Result {
        let mipmap = self
            .arrays
            .mipmaps
            .remove(handle)
            .ok_or(Code::INVALID_HANDLE)?;
        for level in mipmap.levels {
            self.remove_array(level);
        }
        Ok(())
    }
}
