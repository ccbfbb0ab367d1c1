#![forbid(unsafe_code)]
//! The grain of all sizes and addresses, and rounding that cannot wrap.

/// Binary logarithm of [`GRAIN`].
pub const GRAIN_BITS: u32 = 8;
/// Every address and size is a multiple of this many bytes.
pub const GRAIN: u64 = 1 << GRAIN_BITS;

/// `value` rounded up to a multiple of `to`, a power of two; `None` when that does not fit.
#[inline]
pub fn round_up(value: u64, to: u64) -> Option<u64> {
    debug_assert!(to.is_power_of_two());
    Some(value.checked_add(to - 1)? & !(to - 1))
}

/// `value` rounded down to a multiple of `to`, a power of two.
#[inline]
pub fn round_down(value: u64, to: u64) -> u64 {
    debug_assert!(to.is_power_of_two());
    value & !(to - 1)
}
