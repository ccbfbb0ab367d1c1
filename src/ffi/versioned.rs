//! Structs that cross the boundary begin with their size, so that a program and a library of
//! different versions understand each other: what the shorter one lacks is zero.

use crate::error::{Error, Result, Status};
use crate::text::text;

/// No struct will ever be larger; a size above is taken for a missing initialisation.
const LARGEST: usize = 1 << 16;

/// A plain C struct that begins with a `size_t struct_size`.
///
/// # Safety
/// `repr(C)`, its first field is a `usize`, and any bytes after it are a valid value.
pub(super) unsafe trait Versioned: Copy {
    /// The name for messages.
    const NAME: &'static str;
    /// The macro that initialises it.
    const INIT: &'static str;
    /// Its size in the first version that had it.
    const FIRST_SIZE: usize;

    /// All zero, but for its size.
    fn zeroed() -> Self {
        // SAFETY: any bytes are a valid value, zeros too, and the first field is the size.
        unsafe {
            let mut value: Self = std::mem::zeroed();
            (&raw mut value).cast::<usize>().write(size_of::<Self>());
            value
        }
    }
}

fn check_size<T: Versioned>(size: usize) -> Result<()> {
    if (T::FIRST_SIZE..=LARGEST).contains(&size) {
        return Ok(());
    }
    Err(Error::new(
        Status::InvalidValue,
        text!(
            "struct_size of {} is {size}, which is not between {} and {LARGEST}: initialise it with {}",
            T::NAME,
            T::FIRST_SIZE,
            T::INIT
        ),
    ))
}

/// Reads a struct of the caller's version.
///
/// # Safety
/// `from` is NULL, or points to a `usize` that says how many bytes may be read there.
pub(super) unsafe fn read<T: Versioned>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(super::boundary::null(T::NAME));
    }
    // SAFETY: the caller's contract; the struct begins with its size.
    let size = unsafe { from.cast::<usize>().read() };
    check_size::<T>(size)?;
    let known = size.min(size_of::<T>());
    let mut value = T::zeroed();
    // SAFETY: `size` bytes may be read, `value` has room for `known`, and any bytes are valid.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), known);
    }
    // SAFETY: `size` bytes may be read.
    let tail = unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    if tail.iter().any(|&byte| byte != 0) {
        return Err(Error::new(
            Status::InvalidValue,
            text!(
                "{} sets fields that this version of luma does not know",
                T::NAME
            ),
        ));
    }
    Ok(value)
}

/// Reads a struct of the caller's version; all zero where there is none.
///
/// # Safety
/// As [`read`].
pub(super) unsafe fn read_or_zeroed<T: Versioned>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Ok(T::zeroed());
    }
    // SAFETY: the caller's contract.
    unsafe { read(from) }
}

/// Writes a struct in the caller's version, and leaves its size as it is.
///
/// # Safety
/// `to` is NULL, or points to a `usize` that says how many bytes may be written there.
pub(super) unsafe fn write<T: Versioned>(
    to: *mut T,
    make: impl FnOnce() -> Result<T>,
) -> Result<()> {
    if to.is_null() {
        return Err(super::boundary::null(T::NAME));
    }
    // SAFETY: the caller's contract; the struct begins with its size.
    let size = unsafe { to.cast::<usize>().read() };
    check_size::<T>(size)?;
    let value = make()?;
    let known = size.min(size_of::<T>());
    // SAFETY: `size` bytes may be written, of which `value` has `known`; the first field, the size,
    // is skipped.
    unsafe {
        let skip = size_of::<usize>();
        let bytes = (&raw const value).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.add(skip), to.cast::<u8>().add(skip), known - skip);
        to.cast::<u8>().add(known).write_bytes(0, size - known);
    }
    Ok(())
}
