#![forbid(unsafe_code)]
//! What can go wrong, as a number and a sentence.

use crate::text::Text;
use std::ffi::CStr;
use std::fmt;

/// The number of a failure; the values of `luma_status_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// An argument is out of range, misaligned or NULL.
    InvalidValue = 1,
    /// The backend and the pool have nothing left, or the limit is reached.
    OutOfMemory = 2,
    /// The pointer is not from this pool, was freed already, or lies inside a block.
    InvalidPointer = 3,
    /// There is no usable backend, or no such device.
    NoDevice = 4,
    /// The CUDA driver failed.
    Driver = 5,
    /// This backend or driver cannot do it.
    Unsupported = 6,
    /// A check found a broken invariant.
    Corrupted = 7,
    /// No plan exists within the capacities.
    Infeasible = 8,
    /// A bug in luma.
    Internal = 9,
}

impl Status {
    /// Every status, in the order of the numbers.
    pub const ALL: [Self; 9] = [
        Self::InvalidValue,
        Self::OutOfMemory,
        Self::InvalidPointer,
        Self::NoDevice,
        Self::Driver,
        Self::Unsupported,
        Self::Corrupted,
        Self::Infeasible,
        Self::Internal,
    ];

    /// A few words that say what the status means.
    pub const fn description(self) -> &'static CStr {
        match self {
            Self::InvalidValue => c"invalid value",
            Self::OutOfMemory => c"out of memory",
            Self::InvalidPointer => c"invalid pointer",
            Self::NoDevice => c"no usable device",
            Self::Driver => c"driver failure",
            Self::Unsupported => c"not supported",
            Self::Corrupted => c"broken invariant",
            Self::Infeasible => c"no plan within the capacities",
            Self::Internal => c"internal error",
        }
    }
}

/// A failure: its status, and a message that says what was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    message: Text,
}

impl Error {
    /// A failure with its message.
    pub fn new(status: Status, message: impl Into<Text>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// The status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The host has no memory left for book-keeping.
    pub(crate) fn host_memory() -> Self {
        Self::new(
            Status::OutOfMemory,
            "the host has no memory left for luma's own book-keeping",
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The result of a call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
