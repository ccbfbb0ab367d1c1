//! The report of a request that failed for want of memory.

use super::boundary::call;
use super::types::{
    luma_backend_t, luma_oom_action_t, luma_oom_report_t, luma_oom_stream_t, luma_pool_t,
    luma_status_t,
};
use super::versioned::{self, Versioned};
use crate::error::{Error, Status};
use crate::pool::oom::{self, Action, OomReport};
use core::ffi::c_void;

// SAFETY: a plain C struct of integers and nullable pointers that begins with its size.
unsafe impl Versioned for luma_oom_report_t {
    const NAME: &'static str = "luma_oom_report_t";
    const INIT: &'static str = "LUMA_OOM_REPORT_INIT";
    const FIRST_SIZE: usize = 392;
}

fn backend(name: &str) -> luma_backend_t {
    match name {
        "cuda" => luma_backend_t::LUMA_BACKEND_CUDA,
        "cuda_host" => luma_backend_t::LUMA_BACKEND_CUDA_HOST,
        "cuda_managed" => luma_backend_t::LUMA_BACKEND_CUDA_MANAGED,
        "callbacks" => luma_backend_t::LUMA_BACKEND_CALLBACKS,
        "simulated" => luma_backend_t::LUMA_BACKEND_SIMULATED,
        _ => luma_backend_t::LUMA_BACKEND_HOST,
    }
}

fn to_c(report: &OomReport) -> luma_oom_report_t {
    let mut c = luma_oom_report_t {
        requested_bytes: report.requested,
        rounded_bytes: report.rounded,
        alignment: report.align,
        allocated_bytes: report.allocated,
        live_blocks: report.live_blocks,
        reserved_bytes: report.reserved,
        largest_free_block: report.largest_free,
        idle_bytes: report.idle,
        stuck_bytes: report.stuck,
        pending_bytes: report.pending.bytes,
        pending_streams: report.pending.streams,
        pending: report.pending.largest.map(|stream| luma_oom_stream_t {
            stream_id: stream.stream,
            bytes: stream.bytes,
            blocks: stream.blocks,
        }),
        memory_limit: report.limit.unwrap_or(0),
        device_free_bytes: report.memory.map_or(0, |memory| memory.free),
        device_total_bytes: report.device_total.unwrap_or(0),
        give_backs: report.steps.give_backs,
        waits: report.steps.waits,
        wait_ns: report.steps.wait_ns,
        handler_calls: report.steps.handlers,
        device_is_known: i32::from(report.memory.is_some()),
        backend: backend(report.backend) as i32,
        device: report.device,
        ..luma_oom_report_t::zeroed()
    };
    let action = match report.action {
        Action::Unknown => luma_oom_action_t::LUMA_OOM_NONE,
        Action::AskForLess { most } => {
            c.action_bytes = most;
            luma_oom_action_t::LUMA_OOM_ASK_FOR_LESS
        }
        Action::RaiseLimit { to } => {
            c.action_bytes = to;
            luma_oom_action_t::LUMA_OOM_RAISE_LIMIT
        }
        Action::FreeBlock { addr, size } => {
            c.action_address = addr as *mut c_void;
            c.action_bytes = size;
            luma_oom_action_t::LUMA_OOM_FREE_BLOCK
        }
        Action::WaitForStream { stream, bytes } => {
            c.action_stream = stream;
            c.action_bytes = bytes;
            luma_oom_action_t::LUMA_OOM_WAIT_FOR_STREAM
        }
        Action::EmptyOtherPool(other) => {
            c.action_pool = other.pool as *mut luma_pool_t;
            c.action_bytes = other.bytes;
            luma_oom_action_t::LUMA_OOM_EMPTY_OTHER_POOL
        }
        Action::FreeSeveral { bytes } => {
            c.action_bytes = bytes;
            luma_oom_action_t::LUMA_OOM_FREE_SEVERAL
        }
    };
    c.action = action as i32;
    c
}

/// Writes what the calling thread's last request that failed with `LUMA_ERROR_OUT_OF_MEMORY` asked for,
/// what its pool held then, what was tried, and which single action would have made it fit. The report
/// stays until the thread's next such failure; calls that succeed keep it. `out->struct_size` must be
/// set (`LUMA_OOM_REPORT_INIT`).
///
/// A request that failed because the host had no memory left for luma's book-keeping leaves no report.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` when no request of this thread has failed so.
///
/// # Safety
/// `out` is NULL or points to a `luma_oom_report_t` of `out->struct_size` bytes.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_oom_report(out: *mut luma_oom_report_t) -> luma_status_t {
    let make = || {
        let report = oom::last_report().ok_or_else(|| {
            Error::new(
                Status::InvalidValue,
                "no request of this thread has failed for want of memory, so there is no report",
            )
        })?;
        Ok(to_c(&report))
    };
    // SAFETY: the caller's contract.
    call(|| unsafe { versioned::write(out, make) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_versions_size_holds() {
        assert_eq!(
            luma_oom_report_t::FIRST_SIZE,
            size_of::<luma_oom_report_t>()
        );
    }
}
