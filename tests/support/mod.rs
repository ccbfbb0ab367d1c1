//! What the tests with outside tools share.

// Each test program uses a part of it.
#![allow(dead_code)]

pub mod cc;
pub mod double;
pub mod golden;
pub mod graphs;
pub mod kernels;
pub mod least;
pub mod plan_bytes;
pub mod plan_c;
pub mod plan_rules;
pub mod shared;
pub mod tools;
