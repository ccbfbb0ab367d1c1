//! The CUDA driver interface over host memory: a `libcuda.so.1` for machines without a GPU.
//!
//! Only the public interface is here, and `cuGetExportTable` finds nothing. Memory is real, copies
//! are made, streams run beside the program; kernels do nothing unless a host function was
//! registered for their name.
//!
//! From the bottom up:
//! - [`status`], [`abi`]: codes and structures of the interface;
//! - [`environment`], [`faults`], [`process`], [`thread`], [`entry`]: what every call passes through;
//! - [`handle`], [`state`], [`device`], [`attribute`], [`context`]: what the driver knows, behind one
//!   lock;
//! - [`memory`]: address space, allocations, virtual memory, pools;
//! - [`exec`]: streams, their workers, events;
//! - [`graph`]: stream capture and graphs;
//! - [`transfer`]: copies and sets of memory, arrays;
//! - [`module`], [`launch`]: modules, kernels and their host functions;
//! - [`api`]: the exported functions, one file a group; [`stubs`]: those that are not there;
//!   [`names`], [`lookup`]: which name means which of them at which version; [`control`]: the
//!   interface for tests.

#![allow(non_snake_case)]

mod abi;
mod api;
mod attribute;
mod context;
mod control;
mod device;
mod entry;
mod environment;
mod exec;
mod faults;
mod graph;
mod handle;
mod launch;
mod lookup;
mod memory;
mod module;
mod names;
mod process;
mod state;
mod status;
mod stubs;
mod thread;
mod transfer;

// The macro in which all functions are written.
use entry::driver;
