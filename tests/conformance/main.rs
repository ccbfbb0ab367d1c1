//! One suite of behaviours, for every backend with every preset.

#![cfg(not(miri))]

mod blocks;
mod failures;
mod fixture;
mod limits;
mod sharing;

macro_rules! conformance {
    ($($name:ident: $supply:ident, $preset:ident;)*) => {
        $(mod $name {
            use crate::fixture::{Case, Supply};
            use luma::Preset;

            behaviours! {
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
    ($case:expr; $($module:ident: $($behaviour:ident),*;)*) => {
        $($(#[test]
        fn $behaviour() {
            crate::$module::$behaviour(&$case);
        })*)*
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
}
