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

use crate::abi::{Address, UNKNOWN};
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
    empty(None, Pool::empty_cache)
}

/// The same, with what waits for the device, as soon as that is done.
pub fn give_back_in_time() -> bool {
    empty(None, Pool::empty_cache_in_time)
}

/// Empties the caches of all pools but one.
fn empty(kept: Option<&Pool>, empty: impl Fn(&Pool) -> luma::error::Result<u64>) -> bool {
    let emptied = catch_unwind(AssertUnwindSafe(|| {
        let pools = defaults::of_devices().map(|(_, pool)| pool);
        let others = pools.filter(|&pool| kept.is_none_or(|kept| !std::ptr::eq(kept, pool)));
        others.fold(0, |bytes, pool| bytes + empty(pool).unwrap_or(0))
    }));
    emptied.is_ok_and(|bytes| bytes > 0)
}

/// Allocates from a pool; where the device lacks memory, again when other contexts' pools have given back
/// what they keep unused, and at last when all work is done that what was freed waits for.
fn allocate_with_retry<E>(
    pool: &Pool,
    bytes: usize,
    lacks_memory: impl Fn(&E) -> bool,
    allocate: impl Fn() -> Result<Option<Address>, E>,
) -> Result<Option<Address>, E> {
    let mut outcome = allocate();
    let remedies: [&dyn Fn() -> bool; 2] = [&|| empty(Some(pool), Pool::empty_cache), &|| {
        pool.wait_for_frees(bytes as u64).unwrap_or(false)
    }];
    for remedy in remedies {
        match &outcome {
            Err(error) if lacks_memory(error) && remedy() => outcome = allocate(),
            _ => {}
        }
    }
    outcome
}

/// Whether a pool may hold less than its device has.
fn is_limited(pool: &Pool) -> bool {
    pool.room().is_ok_and(|room| room.limit.is_some())
}
