//! The shape of a copy: rows, and slices of rows.

use crate::memory;
use crate::status::{Code, Result};
use std::ptr;

/// How much is copied or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

impl Extent {
    /// One row.
    pub const fn row(bytes: usize) -> Self {
        Self {
            width: bytes,
            height: 1,
            depth: 1,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// All bytes of all rows.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there are no such numbers.
    pub fn bytes(self) -> Result<usize> {
        self.width
            .checked_mul(self.height)
            .and_then(|bytes| bytes.checked_mul(self.depth))
            .ok_or(Code::INVALID_VALUE)
    }
}

/// Where rows lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of the first byte.
    pub address: u64,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Bytes from a slice to the next.
    pub slice: usize,
}

impl Layout {
    /// Rows without gaps.
    pub fn packed(address: u64, extent: Extent) -> Self {
        Self {
            address,
            pitch: extent.width,
            slice: extent.width.saturating_mul(extent.height),
        }
    }

    /// Bytes from the first to the last of an extent that is not empty.
    ///
    /// # Errors
    /// `INVALID_VALUE`: the address space is not as large.
    pub fn span(&self, extent: Extent) -> Result<u64> {
        let slices = self.slice.checked_mul(extent.depth - 1);
        let rows = self.pitch.checked_mul(extent.height - 1);
        slices
            .zip(rows)
            .and_then(|(slices, rows)| slices.checked_add(rows)?.checked_add(extent.width))
            .map(|bytes| bytes as u64)
            .filter(|&bytes| self.address.checked_add(bytes).is_some())
            .ok_or(Code::INVALID_VALUE)
    }

    /// Calls `work` for the address of each row, or once for all of them where they have no gaps, with
    /// the bytes there.
    fn rows(&self, other: &Self, extent: Extent, mut work: impl FnMut(u64, u64, usize)) {
        let is_dense = |layout: &Self| {
            (extent.height == 1 || layout.pitch == extent.width)
                && (extent.depth == 1 || layout.slice == extent.width * extent.height)
        };
        if is_dense(self) && is_dense(other) {
            let bytes = extent.width * extent.height * extent.depth;
            return work(self.address, other.address, bytes);
        }
        for z in 0..extent.depth {
            for y in 0..extent.height {
                let at =
                    |layout: &Self| layout.address + (z * layout.slice + y * layout.pitch) as u64;
                work(at(self), at(other), extent.width);
            }
        }
    }

    /// Copies from here to another place. Rows may overlap, as in a move.
    ///
    /// # Safety
    /// Both are memory that may be accessed for as long as this runs.
    pub unsafe fn copy_to(&self, to: &Self, extent: Extent) {
        self.rows(to, extent, |from, to, bytes| {
            // SAFETY: the caller promises it of all rows.
            unsafe { ptr::copy(memory::host(from), memory::host(to), bytes) };
        });
    }

    /// Fills with a pattern of as many bytes as it is long, which divides the width.
    ///
    /// # Safety
    /// It is memory that may be written to for as long as this runs.
    pub unsafe fn fill(&self, pattern: &[u8], extent: Extent) {
        self.rows(self, extent, |address, _, bytes| {
            let start = memory::host(address);
            let is_uniform = pattern.iter().all(|byte| *byte == pattern[0]);
            // SAFETY: the caller promises it of all rows.
            unsafe {
                if is_uniform {
                    ptr::write_bytes(start, pattern[0], bytes);
                } else {
                    // Doubles what is filled, so that most of the work is done in large copies.
                    ptr::copy_nonoverlapping(pattern.as_ptr(), start, pattern.len());
                    let mut filled = pattern.len();
                    while filled < bytes {
                        let more = filled.min(bytes - filled);
                        ptr::copy_nonoverlapping(start, start.add(filled), more);
                        filled += more;
                    }
                }
            }
        });
    }
}
