//! The ways to the driver lead to luma's functions, and nothing else changes.
//!
//! `// pitfall N` is for tests of the N-th row of the list of what goes wrong in such libraries.

#[path = "../support/mod.rs"]
mod support;

mod bystanders;
mod library;
mod look_ups;
mod other_hooks;
mod plug_ins;
mod proc_address;
mod runtimes;
mod whole_table;
