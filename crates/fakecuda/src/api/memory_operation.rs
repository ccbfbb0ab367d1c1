//! Waits for values in memory, and writes of them.

use crate::driver;
use crate::exec::memory_operation::Width;
use crate::state::lock;
use crate::status::{Code, Result};

fn wait(stream: u64, address: u64, width: Width, value: u64, flags: u32) -> Result {
    let mut state = lock();
    let stream = state.stream(stream)?;
    state.wait_value(stream, address, width, value, flags)
}

fn write(stream: u64, address: u64, width: Width, value: u64, flags: u32) -> Result {
    let mut state = lock();
    let stream = state.stream(stream)?;
    state.write_value(stream, address, width, value, flags)
}

/// `CUstreamBatchMemOpParams`: the parts that all operations with a value have.
#[repr(C)]
struct Operation {
    operation: u32,
    /// Of the operations without a value.
    other_flags: u32,
    address: u64,
    value: u64,
    flags: u32,
    rest: [u32; 5],
}

const _: () = assert!(size_of::<Operation>() == 48);

/// `CUstreamBatchMemOpType`.
mod operation {
    pub const WAIT_32: u32 = 1;
    pub const WRITE_32: u32 = 2;
    pub const FLUSH_REMOTE_WRITES: u32 = 3;
    pub const WAIT_64: u32 = 4;
    pub const WRITE_64: u32 = 5;
    pub const BARRIER: u32 = 6;
}

/// How many operations a call takes.
const MOST: u32 = 256;

unsafe fn batch(stream: u64, count: u32, operations: *const Operation, flags: u32) -> Result {
    if count > MOST || flags != 0 || (count > 0 && operations.is_null()) {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller gives as many.
    let read = |index: usize| unsafe { operations.add(index).read_unaligned() };
    let operations: Vec<Operation> = (0..count as usize).map(read).collect();
    let is_known = |one: &Operation| match one.operation {
        operation::WAIT_32 | operation::WRITE_32 | operation::WAIT_64 | operation::WRITE_64 => true,
        operation::FLUSH_REMOTE_WRITES => one.other_flags == 0,
        operation::BARRIER => one.other_flags <= 1,
        _ => false,
    };
    if !operations.iter().all(is_known) {
        return Err(Code::INVALID_VALUE);
    }
    for one in operations {
        let (address, value, flags) = (one.address, one.value, one.flags);
        match one.operation {
            operation::WAIT_32 => wait(stream, address, Width::Bits32, value, flags)?,
            operation::WRITE_32 => write(stream, address, Width::Bits32, value, flags)?,
            operation::WAIT_64 => wait(stream, address, Width::Bits64, value, flags)?,
            operation::WRITE_64 => write(stream, address, Width::Bits64, value, flags)?,
            // Operations of a stream see all that was written before.
            _ => {}
        }
    }
    Ok(())
}

driver! {
    fn cuStreamBatchMemOp | cuStreamBatchMemOp_ptsz (
        stream: u64, count: u32, operations: *const Operation, flags: u32,
    ) {
        batch(stream, count, operations, flags)
    }

    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz (
        stream: u64, count: u32, operations: *const Operation, flags: u32,
    ) {
        batch(stream, count, operations, flags)
    }

    fn cuStreamWaitValue32 | cuStreamWaitValue32_ptsz (
        stream: u64, address: u64, value: u32, flags: u32,
    ) {
        wait(stream, address, Width::Bits32, value.into(), flags)
    }

    fn cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz (
        stream: u64, address: u64, value: u32, flags: u32,
    ) {
        wait(stream, address, Width::Bits32, value.into(), flags)
    }

    fn cuStreamWaitValue64 | cuStreamWaitValue64_ptsz (
        stream: u64, address: u64, value: u64, flags: u32,
    ) {
        wait(stream, address, Width::Bits64, value, flags)
    }

    fn cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz (
        stream: u64, address: u64, value: u64, flags: u32,
    ) {
        wait(stream, address, Width::Bits64, value, flags)
    }

    fn cuStreamWriteValue32 | cuStreamWriteValue32_ptsz (
        stream: u64, address: u64, value: u32, flags: u32,
    ) {
        write(stream, address, Width::Bits32, value.into(), flags)
    }

    fn cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz (
        stream: u64, address: u64, value: u32, flags: u32,
    ) {
        write(stream, address, Width::Bits32, value.into(), flags)
    }

    fn cuStreamWriteValue64 | cuStreamWriteValue64_ptsz (
        stream: u64, address: u64, value: u64, flags: u32,
    ) {
        write(stream, address, Width::Bits64, value, flags)
    }

    fn cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz (
        stream: u64, address: u64, value: u64, flags: u32,
    ) {
        write(stream, address, Width::Bits64, value, flags)
    }
}
