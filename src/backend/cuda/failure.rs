//! What a driver function failed with, in the driver's words.

use super::driver::Driver;
use crate::backend::BackendError;
use crate::error::{Error, Status};
use crate::text::{Text, text};
use core::ffi::{CStr, c_char};
use std::fmt;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;
/// `CUDA_ERROR_NOT_INITIALIZED`: after `cuInit`, what every function answers in a forked child.
const NOT_INITIALIZED: u32 = 3;
/// `CUDA_ERROR_DEINITIALIZED`: the process ends, and the driver has freed everything.
const DEINITIALIZED: u32 = 4;
/// `CUDA_ERROR_NO_DEVICE`: what `cuInit` answers where there is none.
const NO_DEVICE: u32 = 100;
/// `CUDA_ERROR_INVALID_DEVICE`.
const INVALID_DEVICE: u32 = 101;
/// `CUDA_ERROR_INVALID_CONTEXT`.
const INVALID_CONTEXT: u32 = 201;
/// `CUDA_ERROR_INVALID_HANDLE`.
const INVALID_HANDLE: u32 = 400;
/// `CUDA_ERROR_NOT_READY`: work is not done yet.
const NOT_READY: u32 = 600;
/// `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
const CONTEXT_IS_DESTROYED: u32 = 709;
/// What a context answers for good whose work has failed (an illegal address, a timeout, an assertion, a
/// hardware fault): nothing of it runs any more.
const FAILED_FOR_GOOD: [u32; 12] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719];
/// `CUDA_ERROR_NOT_PERMITTED`: also what a host function of a stream gets from the driver.
const NOT_PERMITTED: u32 = 800;
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;
/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`, the first of those about captures.
const FIRST_OF_CAPTURES: u32 = 900;
/// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`, the last of them.
const LAST_OF_CAPTURES: u32 = 908;

/// A function of the driver that failed, or is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    function: &'static str,
    /// `None`: this driver lacks the function.
    code: Option<u32>,
}

impl Failure {
    /// A context that was destroyed, as the driver says it where it sees that.
    pub(super) const fn destroyed_context(function: &'static str) -> Self {
        Self::new(function, CONTEXT_IS_DESTROYED)
    }

    pub(super) const fn new(function: &'static str, code: u32) -> Self {
        Self {
            function,
            code: Some(code),
        }
    }

    pub(super) const fn missing(function: &'static str) -> Self {
        Self {
            function,
            code: None,
        }
    }

    pub(super) fn is_out_of_memory(self) -> bool {
        self.code == Some(OUT_OF_MEMORY)
    }

    /// Whether the driver is no more, and all memory with it.
    pub(super) fn is_the_end(self) -> bool {
        self.code == Some(DEINITIALIZED)
    }

    /// Whether the driver does nothing for this process: it has shut down, or is the parent's.
    pub(super) fn is_useless(self) -> bool {
        self.is_the_end() || self.code == Some(NOT_INITIALIZED)
    }

    /// Whether memory of a context is gone by itself: with its context, or with the driver.
    pub(super) fn took_the_memory(self) -> bool {
        self.is_the_end() || matches!(self.code, Some(INVALID_CONTEXT | CONTEXT_IS_DESTROYED))
    }

    /// Whether work of the context has failed such that none of it runs, now or later.
    pub(super) fn ended_all_work(self) -> bool {
        self.took_the_memory()
            || self
                .code
                .is_some_and(|code| FAILED_FOR_GOOD.contains(&code))
    }

    /// Whether the driver may not be called here.
    pub(super) fn is_not_permitted(self) -> bool {
        self.code == Some(NOT_PERMITTED)
    }

    pub(super) fn is_missing(self) -> bool {
        self.code.is_none()
    }

    /// Whether this driver, device or process does without the function.
    pub(super) fn is_unsupported(self) -> bool {
        self.is_missing() || self.code == Some(NOT_SUPPORTED)
    }

    /// Whether work is not done yet, which is no failure.
    pub(super) fn is_not_ready(self) -> bool {
        self.code == Some(NOT_READY)
    }

    /// Whether there is nothing with such a handle.
    pub(super) fn is_invalid_handle(self) -> bool {
        self.code == Some(INVALID_HANDLE)
    }

    pub(super) fn is_no_device(self) -> bool {
        self.code == Some(NO_DEVICE)
    }

    fn status(self) -> Status {
        match self.code {
            None | Some(NOT_SUPPORTED) => Status::Unsupported,
            Some(NO_DEVICE | INVALID_DEVICE) => Status::NoDevice,
            Some(OUT_OF_MEMORY) => Status::OutOfMemory,
            Some(_) => Status::Driver,
        }
    }

    /// The failure as luma's callers see it.
    pub(super) fn into_error(self, driver: &Driver) -> Error {
        Error::new(self.status(), self.message(driver))
    }

    /// The failure as the pool sees it.
    pub(super) fn into_backend_error(self, driver: &Driver) -> BackendError {
        if self.is_out_of_memory() {
            BackendError::OutOfMemory
        } else {
            self.without_request(driver)
        }
    }

    /// The failure of a call that asks for no memory, as the pool sees it.
    pub(super) fn without_request(self, driver: &Driver) -> BackendError {
        BackendError::Failed(self.into_error(driver))
    }

    fn message(self, driver: &Driver) -> Text {
        let function = self.function;
        let Some(code) = self.code else {
            return text!("the CUDA driver lacks {function}: it is too old for this call");
        };
        let hint = match code {
            NOT_INITIALIZED => {
                "; a forked child cannot use CUDA: use it after exec, or in the parent only"
            }
            DEINITIALIZED => "; the process is ending",
            FIRST_OF_CAPTURES..=LAST_OF_CAPTURES => {
                "; a stream is being captured, and this can be done when that has ended"
            }
            _ => "",
        };
        text!("{function}: {}{hint}", Described { driver, code })
    }
}

/// A code with the driver's name and text for it.
struct Described<'a> {
    driver: &'a Driver,
    code: u32,
}

impl Described<'_> {
    /// What one of the driver's two functions says about the code.
    fn say(
        &self,
        ask: impl FnOnce(&Driver, u32, *mut *const c_char) -> Result<(), Failure>,
    ) -> &str {
        let mut said = std::ptr::null();
        if ask(self.driver, self.code, &mut said).is_err() || said.is_null() {
            return "";
        }
        // SAFETY: the driver wrote the address of a string of its own, which it never frees.
        unsafe { CStr::from_ptr(said) }.to_str().unwrap_or("")
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the out-parameter is valid for writing, here and below.
        let name = self.say(|driver, code, said| unsafe { driver.error_name(code, said) });
        let text = self.say(|driver, code, said| unsafe { driver.error_string(code, said) });
        match name {
            "" => write!(f, "error {}", self.code)?,
            name => write!(f, "{name} ({})", self.code)?,
        }
        match text {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}
