//! A global allocator that counts what a thread asks of it, and fails on demand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Without destructors, so that the allocator may use them at any time.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static FAIL_IN: Cell<u64> = const { Cell::new(0) };
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// To be made the `#[global_allocator]`.
pub struct Counting;

/// Allocations of this thread so far.
pub fn calls() -> u64 {
    CALLS.get()
}

/// Bytes that this thread allocated, less what it freed.
pub fn held() -> i64 {
    HELD.get()
}

/// Lets the `n`-th allocation of this thread from now on fail (1: the next), once.
pub fn fail_in(n: u64) {
    FAIL_IN.set(n);
    FAILED.set(false);
}

/// Takes that back. Gives whether the allocation was asked for.
pub fn stop_failing() -> bool {
    FAIL_IN.set(0);
    FAILED.get()
}

/// Whether this allocation fails.
fn fails() -> bool {
    CALLS.set(CALLS.get() + 1);
    match FAIL_IN.get() {
        0 => false,
        left => {
            FAIL_IN.set(left - 1);
            FAILED.set(left == 1);
            left == 1
        }
    }
}

// SAFETY: the system's allocator, but that an allocation may fail, which the contract allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        HELD.set(HELD.get() + layout.size() as i64);
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(ptr, layout) };
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        HELD.set(HELD.get() + new_size as i64 - layout.size() as i64);
        // SAFETY: the contract of this function.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
