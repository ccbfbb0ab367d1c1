#![forbid(unsafe_code)]
//! What luma's pool answers to a program that takes it for the driver.
//!
//! - `memory`: `cuMemAlloc` and `cuMemFree`;
//! - `ordered`: the same in the order of streams;
//! - `about`: what a program asks about memory;
//! - `share`: memory for other processes;
//! - `ends`: contexts and streams that end.
//!
//! No call here answers for the driver where the pool has no answer: see [`Answer::Driver`].

pub mod about;
pub mod ends;
pub mod memory;
pub mod ordered;
pub mod share;

use crate::abi::UNKNOWN;
use crate::real::extra;
use crate::start;
use luma::Pool;
use luma::pool::defaults;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All blocks begin at a multiple of this, as the driver's do. Textures need it.
pub const ALIGNMENT: u64 = 512;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The pool has served it.
    Served(T),
    /// It fails with this code.
    Refused(c_int),
    /// It is not for the pool: the driver is to be called with the program's arguments.
    Driver,
}

/// Nothing unwinds into the program.
pub fn guarded<T>(answer: impl FnOnce() -> Answer<T>) -> Answer<T> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or(Answer::Refused(UNKNOWN))
}

/// The same for what changes the pool's books only.
pub fn noted(note: impl FnOnce()) {
    // A pool that fails inside is half changed, and refuses its next call with the reason.
    let _ = catch_unwind(AssertUnwindSafe(note));
}

/// The pool of the current context; `None`: the driver is to be asked.
#[inline]
fn current() -> Option<&'static Pool> {
    if !defaults::exist() {
        start::begin_process();
    }
    defaults::of_program().ok().flatten()
}

/// Whether it is too late for memory to be anybody's: the driver is to say so.
#[inline]
fn has_ended() -> bool {
    start::is_exiting() && extra::has_ended()
}

/// Gives back to the driver what the pools keep unused. Whether there was any.
pub fn give_back() -> bool {
    empty(Pool::empty_cache)
}

/// The same, with what waits for the device, as soon as that is done.
pub fn give_back_in_time() -> bool {
    empty(Pool::empty_cache_in_time)
}

fn empty(empty: impl Fn(&Pool) -> luma::error::Result<u64>) -> bool {
    let emptied = catch_unwind(AssertUnwindSafe(|| {
        let pools = defaults::of_devices();
        pools.fold(0, |bytes, (_, pool)| bytes + empty(pool).unwrap_or(0))
    }));
    emptied.is_ok_and(|bytes| bytes > 0)
}

/// Whether a pool may hold less than its device has.
fn is_limited(pool: &Pool) -> bool {
    pool.room().is_ok_and(|room| room.limit.is_some())
}
