//! The last status and message of each thread.
//!
//! They lie in the thread's own storage, which has no destructor and takes no memory at run time:
//! a failure can be told when the host's memory is used up, and while the process exits.

use super::types::luma_status_t;
use crate::text::{Text, text};
use core::ffi::c_char;
use std::cell::{Cell, UnsafeCell};

/// Longer messages are cut, at a character's boundary.
const CAPACITY: usize = 1024;

struct LastError {
    status: Cell<luma_status_t>,
    message: UnsafeCell<[u8; CAPACITY]>,
}

thread_local! {
    static LAST: LastError = const {
        LastError {
            status: Cell::new(luma_status_t::LUMA_SUCCESS),
            message: UnsafeCell::new([0; CAPACITY]),
        }
    };
}

/// The call succeeded.
#[inline]
pub(super) fn clear() {
    LAST.with(|last| last.status.set(luma_status_t::LUMA_SUCCESS));
}

/// The call failed.
#[cold]
pub(super) fn set(status: luma_status_t, message: &str) {
    LAST.with(|last| {
        last.status.set(status);
        let mut end = message.len().min(CAPACITY - 1);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        // SAFETY: the storage is this thread's, no reference to it is kept, and the pointers that
        // `message` gave out are promised to be valid until the thread's next call only.
        let buffer = unsafe { &mut *last.message.get() };
        for (to, &from) in buffer.iter_mut().zip(&message.as_bytes()[..end]) {
            // A NUL would end the message for C.
            *to = if from == 0 { b'?' } else { from };
        }
        buffer[end] = 0;
    });
}

/// The last status.
pub(super) fn status() -> luma_status_t {
    LAST.with(|last| last.status.get())
}

/// A copy of the last message.
pub(super) fn copy() -> Text {
    LAST.with(|last| {
        // SAFETY: as in `set`; the copy is made before anything else can run on this thread.
        let buffer = unsafe { &*last.message.get() };
        let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(0);
        text!(
            "{}",
            std::str::from_utf8(&buffer[..end]).unwrap_or_default()
        )
    })
}

/// The last message; empty after a success.
pub(super) fn message() -> *const c_char {
    LAST.with(|last| match last.status.get() {
        luma_status_t::LUMA_SUCCESS => c"".as_ptr(),
        _ => last.message.get().cast_const().cast(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text() -> String {
        // SAFETY: `message` gives a string that ends in NUL and stays until the next call.
        unsafe { CStr::from_ptr(message()) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn messages_are_cut_at_characters_and_cleared() {
        set(luma_status_t::LUMA_ERROR_DRIVER, "a\0b");
        assert_eq!(
            (text().as_str(), status()),
            ("a?b", luma_status_t::LUMA_ERROR_DRIVER)
        );
        set(luma_status_t::LUMA_ERROR_INTERNAL, &"ä".repeat(CAPACITY));
        assert_eq!(text(), "ä".repeat((CAPACITY - 1) / 2));
        clear();
        assert_eq!(
            (text().as_str(), status()),
            ("", luma_status_t::LUMA_SUCCESS)
        );
    }
}
