//! A caching allocator for accelerator memory: a best-fit pool with coalescing over CUDA or host
//! memory, with a C interface.
//!
//! C and C++ programs use `include/luma.h` and `include/luma.hpp`; the functions behind them are in
//! [`ffi`]. Rust programs use [`Pool`]:
//!
//! ```
//! use luma::{BackendKind, Pool, PoolConfig};
//!
//! let pool = Pool::new(&PoolConfig {
//!     backend: BackendKind::Host,
//!     ..PoolConfig::default()
//! })?;
//! let block = pool.allocate(1000, 0)?.expect("more than no bytes");
//! assert_eq!(pool.stats()?.allocated_bytes, 1024);
//! pool.free(block)?;
//! # Ok::<(), luma::Error>(())
//! ```
//!
//! # Layers
//! Each knows only those below it: [`ffi`]; [`pool`]; [`stream`]; [`trace`] and [`alloc`]; [`backend`]; [`config`];
//! [`log`]; [`plan`]; [`error`], [`text`], [`stats`], [`size`] and `flag`. `unsafe` is in [`ffi`] and [`backend`] only.

#![warn(missing_docs)]

pub mod alloc;
pub mod backend;
pub mod config;
pub mod error;
pub mod ffi;
mod flag;
pub mod log;
pub mod plan;
pub mod pool;
pub mod size;
pub mod stats;
pub mod stream;
pub mod text;
pub mod trace;

pub use error::{Error, Status};
pub use pool::{BackendKind, Pool, PoolConfig, Preset};
pub use stats::{BackendTime, Stats};
