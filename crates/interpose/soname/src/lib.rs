//! Empty: the crate is there for its build script.
