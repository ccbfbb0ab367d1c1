//! One suite of behaviours, for every backend with every preset.

#![cfg(not(miri))]

mod blocks;
mod failures;
mod fixture;
mod limits;
mod sharing;
#[path = "../support/mod.rs"]
mod support;

use support::double;

macro_rules! conformance {
    ($($(#[$attribute:meta])* $name:ident: $supply:ident, $preset:ident;)*) => {
        $(mod $name {
            use crate::fixture::{Case, Supply};
            use luma::Preset;

            behaviours! {
                [$(#[$attribute])*]
                Case { supply: Supply::$supply, preset: Preset::$preset };
                blocks: no_bytes_are_no_block, sizes_are_rounded_up, addresses_are_aligned,
                    a_freed_block_is_used_again, neighbours_coalesce,
                    an_aligned_block_leaves_the_rest_usable, contents_stay, usable_size_is_of_starts;
                limits: the_whole_limit_can_be_used, an_odd_limit_can_be_filled,
                    the_limit_goes_up_and_down, a_limit_below_what_is_live_is_refused,
                    the_whole_device_can_be_used, memory_tells_what_is_left,
                    no_growth_step_is_larger_than_promised;
                failures: bad_frees_change_nothing, bad_alignments_change_nothing,
                    absurd_sizes_are_refused, out_of_memory_says_what_is_wrong,
                    a_refusal_leaves_the_pool_working, a_closed_pool_refuses_everything;
                sharing: an_empty_cache_holds_nothing, calls_balance, peaks_follow,
                    threads_keep_their_contents;
            }
        })*
    };
}

macro_rules! behaviours {
    ($attributes:tt $case:expr; $($module:ident: $($behaviour:ident),*;)*) => {
        $($(behaviour! { $attributes $case; $module $behaviour })*)*
    };
}

macro_rules! behaviour {
    ([$($attribute:tt)*] $case:expr; $module:ident $behaviour:ident) => {
        #[test]
        $($attribute)*
        fn $behaviour() {
            crate::$module::$behaviour(&$case);
        }
    };
}

conformance! {
    host_default: Host, Default;
    host_xla: Host, Xla;
    host_luma_0_3: Host, Luma03;
    callbacks_default: Callbacks, Default;
    callbacks_xla: Callbacks, Xla;
    callbacks_luma_0_3: Callbacks, Luma03;
    pages_default: Pages, Default;
    pages_xla: Pages, Xla;
    pages_luma_0_3: Pages, Luma03;
    segments_default: Segments, Default;
    segments_xla: Segments, Xla;
    segments_luma_0_3: Segments, Luma03;
    #[ignore = "cuda_* below run it, each on a driver of its own"]
    on_cuda_default: Cuda, Default;
    #[ignore = "as on_cuda_default"]
    on_cuda_xla: Cuda, Xla;
    #[ignore = "as on_cuda_default"]
    on_cuda_luma_0_3: Cuda, Luma03;
    #[ignore = "as on_cuda_default"]
    on_cuda_pinned: CudaPinned, Default;
    #[ignore = "as on_cuda_default"]
    on_cuda_managed: CudaManaged, Default;
}

/// Runs the suite on the driver double.
fn on_cuda(variables: &[(&str, &str)]) {
    let mut all = vec![("FAKECUDA_DEVICES", "64")];
    all.extend(variables);
    let count = double::run_ignored("on_cuda_", &all);
    assert!(count >= 5 * 20, "{count} behaviours");
}

#[test]
fn cuda_plain() {
    on_cuda(&[]);
}

#[test]
fn cuda_strict_and_late() {
    on_cuda(&[("FAKECUDA_STRICT", "1"), ("FAKECUDA_EXEC", "lazy")]);
}

/// An old driver: whole segments only.
#[test]
fn cuda_without_virtual_memory() {
    on_cuda(&[("FAKECUDA_NO_VMM", "1")]);
}
