//! The library's face: what it exports, under which names at which versions, what it says of itself,
//! and that its pages and its header say the same.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod control;
mod layout;
mod library;
mod names;
mod nvml;
mod pages;
