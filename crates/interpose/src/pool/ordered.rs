//! Memory in the order of streams.

use super::{ALIGNMENT, Answer, allocate_with_retry, current, has_ended, is_limited};
use crate::abi::{Address, INVALID_VALUE, OUT_OF_MEMORY, UNKNOWN};
use crate::report;
use crate::switch::is_on;
use luma::backend::streams::Stream;
use luma::backend::{captures, cuda};
use luma::pool::{Marks, defaults};
use luma::{Error, Pool, Status};
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
/// `is_here`: the memory is to be the current context's device's, whatever the stream's is.
pub fn allocate(bytes: usize, stream: Stream, is_here: bool) -> Answer<Address> {
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
    } else if is_here {
        return Answer::Driver;
    } else {
        match own.and_then(defaults::of_context) {
            Some(pool) => pool,
            None => return Answer::Driver,
        }
    };
    let lacks_memory = |error: &Option<Error>| {
        let status = error.as_ref().map(Error::status);
        status == Some(Status::OutOfMemory)
    };
    let served = allocate_with_retry(pool, bytes, lacks_memory, || {
        pool.allocate_on_uncaptured(bytes as u64, ALIGNMENT, stream)
    });
    match served {
        Ok(Some(address)) => {
            pool.mark(address, Marks::ORDERED);
            report::ordered_alloc();
            Answer::Served(address)
        }
        Err(error) if lacks_memory(&error) && is_limited(pool) => Answer::Refused(OUT_OF_MEMORY),
        Ok(None) | Err(_) => Answer::Driver,
    }
}

/// Whether a pool knows a stream by its handle. The default stream is the current context's, and to the pool
/// that of its own context: what is freed in the order of another one waits for all work.
fn is_in_order(pool: &Pool, stream: Stream) -> bool {
    let current = || cuda::context_of_program().and_then(defaults::of_context);
    !stream.is_default() || current().is_some_and(|current| std::ptr::eq(current, pool))
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
    if stream.is_default() && cuda::context_of_program().is_none() {
        // There is no such stream.
        return Answer::Refused(refusal(about_stream()));
    }
    if is_in_order(pool, stream) {
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
    }
    match pool.free_unordered(address) {
        Ok(()) => {
            report::ordered_free();
            Answer::Served(())
        }
        Err(error) if error.status() == Status::InvalidPointer => Answer::Refused(INVALID_VALUE),
        Err(_) => Answer::Refused(UNKNOWN),
    }
}

/// The code of a free that the pool refused, where the driver says this of the stream.
fn refusal(about_stream: c_int) -> c_int {
    match about_stream {
        0 => UNKNOWN,
        code => code,
    }
}
