//! `luma plan`, `luma place` and `luma check`: spills and places for graphs and lifetimes in files.

pub mod check;
pub mod files;
pub mod kernel;
mod lifetimes;
pub mod memories;
mod picture;
pub mod place;
pub mod plan;
mod progress;
mod stays;
mod summary;
mod svg;
mod table;
