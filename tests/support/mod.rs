//! What the tests with outside tools share.

// Each test program uses a part of it.
#![allow(dead_code)]

pub mod cc;
pub mod double;
pub mod golden;
pub mod shared;
pub mod tools;
