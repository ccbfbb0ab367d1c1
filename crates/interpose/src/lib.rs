//! `libluma_interpose.so`: under `LD_PRELOAD` it gives CUDA programs that never heard of luma its pool.
//!
//! It stands before the CUDA driver. A program, or the CUDA runtime in it, reaches the driver by a symbol, by
//! `dlsym` or `dlvsym`, or by `cuGetProcAddress`; all four lead to the functions in [`hooks`] first.
//!
//! From the bottom up:
//! - [`abi`], [`switch`]: the driver's types; `LUMA_INTERPOSE`;
//! - [`real`]: the functions that follow: the C library's, the next `dlsym`, the driver's;
//! - [`table`]: which names are hooked, at which versions;
//! - [`start`]: what is done before the pool exists;
//! - [`doors`]: the ways to a function of the driver;
//! - [`hooks`]: what is called in place of the driver; [`probe`]: what tests ask;
//! - [`report`]: what a process says of itself when it ends.
//!
//! The whole of luma is in the library, with its C interface, so that a process has one pool.
//!
//! # Safety
//! An exported function has the contract of the function that it stands for. It may be the first that a
//! process calls, before any constructor has run: nothing here has an initialiser, and on the way through a
//! door nothing is allocated, locked or logged.

// The functions have the names and the contracts of those that they stand for.
#![allow(non_snake_case, clippy::missing_safety_doc)]

// For its exported functions.
extern crate luma;

mod abi;
mod doors;
mod hooks;
mod pool;
mod probe;
mod real;
mod report;
mod start;
mod switch;
mod table;
