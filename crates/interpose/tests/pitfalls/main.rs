//! What goes wrong in libraries that stand between a program and the CUDA driver, as programs that know
//! nothing of luma (`tests/programs`): each holds on the driver double alone, which shows that the program is
//! right, and with luma in front of it.
//!
//! A comment `// pitfall N` over a test says which row of the table in docs/interposition.md it is for.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod harness;
mod lifetime;
mod ownership;
mod page;
mod properties;
mod sharing;

#[path = "../support/mod.rs"]
mod support;
