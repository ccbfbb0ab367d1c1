//! Memory in the order of streams.

use super::{ALIGNMENT, Answer, current, has_ended, is_limited};
use crate::abi::{Address, INVALID_VALUE, OUT_OF_MEMORY, UNKNOWN};
use crate::report;
use crate::switch::is_on;
use luma::Status;
use luma::backend::streams::Stream;
use luma::backend::{captures, cuda};
use luma::pool::{Marks, defaults};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program has set up the driver's own pools for more than luma's offers: other devices' access,
/// other processes, another pool.
static CONFIGURED: AtomicBool = AtomicBool::new(false);

/// From now on such memory is the driver's.
pub fn leave_to_the_driver() {
    CONFIGURED.store(true, Ordering::Relaxed);
}

/// `cuMemAllocAsync`. A captured allocation belongs to its graph, which only the driver knows how to run.
pub fn allocate(bytes: usize, stream: Stream) -> Answer<Address> {
    report::reached();
    if !is_on() || bytes == 0 || CONFIGURED.load(Ordering::Relaxed) {
        return Answer::Driver;
    }
    let Some(current) = current() else {
        return Answer::Driver;
    };
    // The memory is that of the stream's device, whatever context is current.
    let own = cuda::context_of_stream(stream);
    let pool = if own == cuda::context_of_program() {
        current
    } else {
        match own.and_then(defaults::of_context) {
            Some(pool) => pool,
            None => return Answer::Driver,
        }
    };
    match pool.allocate_on_uncaptured(bytes as u64, ALIGNMENT, stream) {
        Ok(Some(address)) => {
            pool.mark(address, Marks::ORDERED);
            report::ordered_alloc();
            Answer::Served(address)
        }
        Err(Some(error)) if error.status() == Status::OutOfMemory && is_limited(pool) => {
            Answer::Refused(OUT_OF_MEMORY)
        }
        Ok(None) | Err(_) => Answer::Driver,
    }
}

/// `cuMemFreeAsync`. `about_stream` asks the driver what is wrong with a stream, and gives its code.
/// `is_captured`: in a graph only the graph's own memory is freed, and the driver refuses other.
pub fn free(
    address: Address,
    stream: Stream,
    about_stream: impl Fn() -> c_int,
    is_captured: impl Fn() -> bool,
) -> Answer<()> {
    if address == 0 || !is_on() || has_ended() {
        return Answer::Driver;
    }
    let Some(pool) = defaults::holder(address) else {
        return Answer::Driver;
    };
    match pool.marks(address) {
        // Only memory of that kind may be freed so.
        None => return Answer::Refused(INVALID_VALUE),
        Some(marks) if !marks.has(Marks::ORDERED) => return Answer::Refused(INVALID_VALUE),
        Some(_) => {}
    }
    if captures::are_open() && is_captured() {
        return Answer::Driver;
    }
    match pool.free_on(address, stream) {
        Ok(()) => {
            report::ordered_free();
            return Answer::Served(());
        }
        Err(error) if error.status() == Status::InvalidPointer => {
            return Answer::Refused(INVALID_VALUE);
        }
        Err(_) => {}
    }
    match about_stream() {
        0 => {}
        code => return Answer::Refused(code),
    }
    // The stream is well, but could not be asked: all streams are waited for.
    match pool.free_unordered(address) {
        Ok(()) => {
            report::ordered_free();
            Answer::Served(())
        }
        Err(_) => Answer::Refused(UNKNOWN),
    }
}
