//! Static placement.

use super::control::{self, ProgressCallback};
use super::input;
use super::types::{luma_lifetime_t, luma_place_options_t, luma_placement_t};
use crate::error::Result;
use crate::ffi::boundary::{call, null};
use crate::ffi::process;
use crate::ffi::types::luma_status_t;
use crate::ffi::versioned;
use crate::plan::place::{self, Lifetime, Placement};
use crate::plan::{Control, Progress};

/// # Safety
/// As `luma_place`.
unsafe fn run(
    lifetimes: *const luma_lifetime_t,
    count: usize,
    options: *const luma_place_options_t,
) -> Result<Placement> {
    // SAFETY: the caller's contract.
    let lifetimes = unsafe { input::array("lifetimes", lifetimes, count) }?;
    // SAFETY: the caller's contract.
    let options = unsafe { versioned::read_or_zeroed(options) }?;
    input::unused("reserved of luma_place_options_t", options.reserved.into())?;
    // SAFETY: the caller's contract.
    let callback = unsafe { ProgressCallback::new(options.progress, options.user) };
    let tell = callback
        .as_ref()
        .map(|callback| |progress: Progress| callback.tell(progress));
    let control = Control {
        deadline: control::deadline(options.time_limit_ms, options.work_limit),
        seed: options.seed,
        threads: options.threads as usize,
        work: control::work(options.work_limit),
        progress: tell.as_ref().map(|tell| tell as _),
    };
    let lifetimes = input::converted(lifetimes, |_, lifetime| {
        Ok(Lifetime {
            lower: lifetime.lower,
            upper: lifetime.upper,
            size: lifetime.size,
        })
    })?;
    let capacity = (options.capacity != 0).then_some(options.capacity);
    Ok(place::place(&lifetimes, capacity, &control)?)
}

/// Gives each of `count` lifetimes an offset, such that those which are there at the same time share no
/// byte: within the capacity, if the options name one, and as low as can be found otherwise. Writes one
/// offset a lifetime to `offsets`, and what is known of the placement to `out`, unless that is NULL.
/// `options` may be NULL: every option is the default.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, bad fields, a lifetime that ends before it begins, and
/// sums that overflow; `LUMA_ERROR_INFEASIBLE` where there is no placement within the capacity, or none was
/// found before a limit was reached: the message says which.
///
/// # Safety
/// `lifetimes` holds `count` elements and `offsets` has room for as many numbers; `options` and `out` are
/// NULL or point to structs of their `struct_size`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_place(
    lifetimes: *const luma_lifetime_t,
    count: usize,
    options: *const luma_place_options_t,
    offsets: *mut u64,
    out: *mut luma_placement_t,
) -> luma_status_t {
    call(|| {
        if offsets.is_null() && count > 0 {
            return Err(null("offsets"));
        }
        process::start();
        // SAFETY: the caller's contract.
        let placement = unsafe { run(lifetimes, count, options) }?;
        if !out.is_null() {
            let told = luma_placement_t {
                struct_size: size_of::<luma_placement_t>(),
                height: placement.height,
                lower_bound: placement.lower_bound,
                proved: i32::from(placement.proved),
                stopped: control::stopped(placement.stopped),
            };
            // SAFETY: the caller's contract.
            unsafe { versioned::write(out, || Ok(told)) }?;
        }
        for (at, &offset) in placement.offsets.iter().enumerate().take(count) {
            // SAFETY: not NULL, since there is an offset, and the caller's contract.
            unsafe { offsets.add(at).write(offset) };
        }
        Ok(())
    })
}
