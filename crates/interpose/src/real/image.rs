//! Which addresses are this library's.

use super::elf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first address, and the one after the last; 0 until they are known.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Whether an address of code lies in this library.
pub fn is_ours(address: usize) -> bool {
    let start = START.load(Ordering::Acquire);
    if start == 0 {
        return find(address);
    }
    (start..END.load(Ordering::Relaxed)).contains(&address)
}

#[cold]
fn find(address: usize) -> bool {
    let mut bounds = None;
    elf::each(|object| {
        bounds = object.bounds_around(find as *const () as usize);
        bounds.is_some()
    });
    let Some((start, end)) = bounds else {
        return false;
    };
    END.store(end, Ordering::Relaxed);
    START.store(start, Ordering::Release);
    (start..end).contains(&address)
}
