//! Types and codes of the driver's interface, as far as they are looked at here.

use std::ffi::c_int;

/// A `CUdeviceptr`.
pub type Address = u64;
/// A `CUcontext`, `CUstream`, `CUgraph`, `CUmodule` or the like: a pointer that is never followed here.
pub type Handle = usize;
/// A `CUdevice`.
pub type Device = c_int;

/// `CUDA_SUCCESS`.
pub const SUCCESS: c_int = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub const INVALID_VALUE: c_int = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: c_int = 2;
/// `CUDA_ERROR_NOT_INITIALIZED`.
pub const NOT_INITIALIZED: c_int = 3;
/// `CUDA_ERROR_DEINITIALIZED`.
pub const DEINITIALIZED: c_int = 4;
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub const NOT_SUPPORTED: c_int = 801;
/// `CUDA_ERROR_UNKNOWN`.
pub const UNKNOWN: c_int = 999;
