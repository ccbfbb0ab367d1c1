//! The boundary of every call: panics stay in, errors become the return type's failure.

use super::last_error;
use super::types::luma_status_t;
use crate::error::{Error, Result, Status};
use crate::text::text;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

/// A type that the C interface returns, made of a result of type `Self::Success`.
pub(super) trait Returned: Sized {
    /// What the body gives on success.
    type Success;
    /// What the caller gets on success.
    fn success(value: Self::Success) -> Self;
    /// What the caller gets on failure.
    fn failure(status: luma_status_t) -> Self;
}

impl Returned for luma_status_t {
    type Success = ();
    fn success((): ()) -> Self {
        Self::LUMA_SUCCESS
    }
    fn failure(status: Self) -> Self {
        status
    }
}

impl Returned for usize {
    type Success = Self;
    fn success(value: Self) -> Self {
        value
    }
    fn failure(_: luma_status_t) -> Self {
        0
    }
}

impl Returned for i32 {
    type Success = Self;
    fn success(value: Self) -> Self {
        value
    }
    fn failure(_: luma_status_t) -> Self {
        0
    }
}

impl<T> Returned for *mut T {
    type Success = Self;
    fn success(value: Self) -> Self {
        value
    }
    fn failure(_: luma_status_t) -> Self {
        std::ptr::null_mut()
    }
}

impl From<Status> for luma_status_t {
    fn from(status: Status) -> Self {
        match status {
            Status::InvalidValue => Self::LUMA_ERROR_INVALID_VALUE,
            Status::OutOfMemory => Self::LUMA_ERROR_OUT_OF_MEMORY,
            Status::InvalidPointer => Self::LUMA_ERROR_INVALID_POINTER,
            Status::NoDevice => Self::LUMA_ERROR_NO_DEVICE,
            Status::Driver => Self::LUMA_ERROR_DRIVER,
            Status::Unsupported => Self::LUMA_ERROR_UNSUPPORTED,
            Status::Corrupted => Self::LUMA_ERROR_CORRUPTED,
            Status::Infeasible => Self::LUMA_ERROR_INFEASIBLE,
            Status::Internal => Self::LUMA_ERROR_INTERNAL,
        }
    }
}

thread_local! {
    /// Calls that this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs the body of a call.
#[inline]
pub(super) fn call<R: Returned>(body: impl FnOnce() -> Result<R::Success>) -> R {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    DEPTH.set(depth);
    match outcome {
        Ok(Ok(value)) => {
            last_error::clear();
            R::success(value)
        }
        Ok(Err(error)) => fail(&error),
        Err(_) => panicked(),
    }
}

#[cold]
fn fail<R: Returned>(error: &Error) -> R {
    let status = luma_status_t::from(error.status());
    last_error::set(status, error.message());
    R::failure(status)
}

/// The body panicked, and has been unwound.
#[cold]
fn panicked<R: Returned>() -> R {
    let message = last_error::copy();
    crate::log::log(crate::log::Level::Error, || message.clone());
    // Whoever heard of it may have called luma: what this call says comes last.
    last_error::set(luma_status_t::LUMA_ERROR_INTERNAL, &message);
    R::failure(luma_status_t::LUMA_ERROR_INTERNAL)
}

/// Keeps panics inside of calls from being printed: their message becomes the call's. Nothing else is
/// done here, while locks may be held. Other panics go where they went before.
pub(super) fn quiet_panics() {
    // The hook cannot be set while this thread unwinds; a first call from a destructor goes without.
    if std::thread::panicking() {
        return;
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if DEPTH.try_with(Cell::get).unwrap_or(0) == 0 {
            before(info);
            return;
        }
        let message = text!("a bug in luma, please report it: {info}");
        last_error::set(luma_status_t::LUMA_ERROR_INTERNAL, &message);
    }));
}

/// What a NULL argument is answered with.
#[cold]
pub(super) fn null(name: &str) -> Error {
    Error::new(Status::InvalidValue, text!("{name} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        quiet_panics();
        let status: luma_status_t = call(|| panic!("number {}", 7));
        assert_eq!(status, luma_status_t::LUMA_ERROR_INTERNAL);
        assert_eq!(last_error::status(), luma_status_t::LUMA_ERROR_INTERNAL);
        // SAFETY: `message` gives a string that ends in NUL and stays until the next call.
        let message = unsafe { std::ffi::CStr::from_ptr(last_error::message()) };
        assert!(message.to_str().unwrap().contains("number 7"));
        assert!(call::<*mut u8>(|| panic!("again")).is_null());
        assert_eq!(call::<usize>(|| Ok(3)), 3);
        assert_eq!(last_error::status(), luma_status_t::LUMA_SUCCESS);
    }

    #[test]
    fn every_status_keeps_its_number() {
        for status in Status::ALL {
            assert_eq!(luma_status_t::from(status) as i32, status as i32);
        }
    }
}
