//! The structs of planning that begin with their size.

use super::types::{
    luma_graph_t, luma_place_options_t, luma_placement_t, luma_plan_options_t, luma_plan_report_t,
    luma_plan_view_t, luma_spill_cost_t,
};
use crate::ffi::versioned::Versioned;

// SAFETY: here and below, plain C structs of integers and nullable pointers that begin with their
// size.
unsafe impl Versioned for luma_spill_cost_t {
    const NAME: &'static str = "luma_spill_cost_t";
    const INIT: &'static str = "LUMA_SPILL_COST_INIT";
    const FIRST_SIZE: usize = 56;
}

// SAFETY: as above.
unsafe impl Versioned for luma_graph_t {
    const NAME: &'static str = "luma_graph_t";
    const INIT: &'static str = "LUMA_GRAPH_INIT";
    const FIRST_SIZE: usize = 96;
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_options_t {
    const NAME: &'static str = "luma_plan_options_t";
    const INIT: &'static str = "LUMA_PLAN_OPTIONS_INIT";
    const FIRST_SIZE: usize = 64;
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_view_t {
    const NAME: &'static str = "luma_plan_view_t";
    const INIT: &'static str = "LUMA_PLAN_VIEW_INIT";
    const FIRST_SIZE: usize = 144;
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_report_t {
    const NAME: &'static str = "luma_plan_report_t";
    const INIT: &'static str = "LUMA_PLAN_REPORT_INIT";
    const FIRST_SIZE: usize = 48;
}

// SAFETY: as above.
unsafe impl Versioned for luma_place_options_t {
    const NAME: &'static str = "luma_place_options_t";
    const INIT: &'static str = "LUMA_PLACE_OPTIONS_INIT";
    const FIRST_SIZE: usize = 64;
}

// SAFETY: as above.
unsafe impl Versioned for luma_placement_t {
    const NAME: &'static str = "luma_placement_t";
    const INIT: &'static str = "LUMA_PLACEMENT_INIT";
    const FIRST_SIZE: usize = 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_the_first_version<T: Versioned>() {
        assert_eq!(T::FIRST_SIZE, size_of::<T>(), "{}", T::NAME);
    }

    #[test]
    fn the_first_versions_sizes_hold() {
        is_of_the_first_version::<luma_spill_cost_t>();
        is_of_the_first_version::<luma_graph_t>();
        is_of_the_first_version::<luma_plan_options_t>();
        is_of_the_first_version::<luma_plan_view_t>();
        is_of_the_first_version::<luma_plan_report_t>();
        is_of_the_first_version::<luma_place_options_t>();
        is_of_the_first_version::<luma_placement_t>();
    }
}
