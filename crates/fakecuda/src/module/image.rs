//! What a module image holds, as far as it can be read.

use super::{binary, ptx};
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::slice;

/// A parameter of a kernel, as it lies in the buffer of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub offset: usize,
    pub bytes: usize,
}

/// A kernel takes no more than that in all.
pub const MOST_PARAMETER_BYTES: usize = 32764;

/// A kernel.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// `None`: not known.
    pub parameters: Option<Vec<Parameter>>,
    /// Threads of a block, if the kernel limits them.
    pub most_threads: Option<u64>,
    /// Shared memory that it declares.
    pub shared_bytes: u64,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    pub bytes: u64,
    /// The first bytes; the others are zero.
    pub initial: Vec<u8>,
    pub is_managed: bool,
}

/// What an image holds.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub entries: BTreeMap<String, Entry>,
    pub variables: BTreeMap<String, Variable>,
    /// Part of it cannot be read (it is compressed, say): there may be any kernel in it.
    pub is_opaque: bool,
}

/// The structure that nvcc puts in front of the images of a program.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const c_void,
    name: *const c_void,
}

const WRAPPER_MAGIC: u32 = 0x4662_43b1;

impl Image {
    /// Reads an image of memory: PTX text up to its zero, or a binary image, which knows its size.
    ///
    /// # Errors
    /// `INVALID_VALUE`: null. `INVALID_IMAGE`: nothing known.
    ///
    /// # Safety
    /// It is null or one of these.
    pub unsafe fn read(image: *const c_void) -> Result<Self> {
        if image.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: text ends with a zero. The numbers that tell the binary kinds apart hold no zero and
        // have one soon after them, so that looking for a text's end stays inside those, too.
        unsafe {
            let text = CStr::from_ptr(image.cast::<c_char>());
            if text.count_bytes() >= 4 {
                let magic = image.cast::<u32>().read_unaligned();
                if magic == WRAPPER_MAGIC {
                    return Self::read(image.cast::<Wrapper>().read_unaligned().data);
                }
                if let Some(bytes) = binary::length(image.cast()) {
                    return Self::of_bytes(slice::from_raw_parts(image.cast(), bytes));
                }
            }
            ptx::read(text.to_bytes()).ok_or(Code::INVALID_IMAGE)
        }
    }

    /// Reads an image of known length.
    ///
    /// # Errors
    /// `INVALID_IMAGE`: nothing known.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        binary::read(bytes)
            .or_else(|| ptx::read(bytes))
            .ok_or(Code::INVALID_IMAGE)
    }

    /// Adds what another image holds.
    pub fn merge(&mut self, other: Self) {
        for (name, entry) in other.entries {
            // What knows the parameters is worth more.
            let known = self.entries.entry(name).or_default();
            if known.parameters.is_none() {
                *known = entry;
            }
        }
        for (name, variable) in other.variables {
            self.variables.entry(name).or_insert(variable);
        }
        self.is_opaque |= other.is_opaque;
    }

    /// Whether there is a kernel of a name, or may be.
    pub fn has_kernel(&self, name: &str) -> bool {
        self.entries.contains_key(name) || (self.is_opaque && !name.is_empty())
    }
}
