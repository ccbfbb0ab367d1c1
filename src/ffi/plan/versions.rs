//! The structs of planning that begin with their size.

use super::types::{
    luma_graph_t, luma_place_options_t, luma_placement_t, luma_plan_options_t, luma_plan_report_t,
    luma_plan_view_t, luma_spill_cost_t,
};
use crate::ffi::versioned::Versioned;
use std::ptr::null;

// SAFETY: here and below, plain C structs of integers and nullable pointers that begin with their
// size.
unsafe impl Versioned for luma_spill_cost_t {
    const NAME: &'static str = "luma_spill_cost_t";
    const INIT: &'static str = "LUMA_SPILL_COST_INIT";
    const FIRST_SIZE: usize = 56;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            out_cycles_per_byte: 0,
            out_fixed_latency: 0,
            in_cycles_per_byte: 0,
            in_fixed_latency: 0,
            out_pipe: 0,
            in_pipe: 0,
            charge_backed_out: 0,
            reserved: 0,
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_graph_t {
    const NAME: &'static str = "luma_graph_t";
    const INIT: &'static str = "LUMA_GRAPH_INIT";
    const FIRST_SIZE: usize = 96;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            nodes: null(),
            node_count: 0,
            uses: null(),
            use_count: 0,
            edges: null(),
            edge_count: 0,
            buffers: null(),
            buffer_count: 0,
            memories: null(),
            memory_count: 0,
            cost: null(),
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_options_t {
    const NAME: &'static str = "luma_plan_options_t";
    const INIT: &'static str = "LUMA_PLAN_OPTIONS_INIT";
    const FIRST_SIZE: usize = 64;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            level: 0,
            reorder: 0,
            time_limit_ms: 0,
            work_limit: 0,
            seed: 0,
            threads: 0,
            reserved: 0,
            progress: None,
            user: std::ptr::null_mut(),
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_view_t {
    const NAME: &'static str = "luma_plan_view_t";
    const INIT: &'static str = "LUMA_PLAN_VIEW_INIT";
    const FIRST_SIZE: usize = 144;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            order: null(),
            order_count: 0,
            offsets: null(),
            offset_count: 0,
            spills: null(),
            spill_count: 0,
            allocations: null(),
            allocation_count: 0,
            added_nodes: null(),
            added_node_count: 0,
            peaks: null(),
            peak_count: 0,
            extra_bytes: 0,
            lower_bound: 0,
            spill_cycles: 0,
            makespan: 0,
            proved: 0,
            stopped: 0,
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_plan_report_t {
    const NAME: &'static str = "luma_plan_report_t";
    const INIT: &'static str = "LUMA_PLAN_REPORT_INIT";
    const FIRST_SIZE: usize = 48;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            violation: 0,
            node: 0,
            buffer: 0,
            position: 0,
            extra_bytes: 0,
            spill_cycles: 0,
            makespan: 0,
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_place_options_t {
    const NAME: &'static str = "luma_place_options_t";
    const INIT: &'static str = "LUMA_PLACE_OPTIONS_INIT";
    const FIRST_SIZE: usize = 64;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            capacity: 0,
            time_limit_ms: 0,
            work_limit: 0,
            seed: 0,
            threads: 0,
            reserved: 0,
            progress: None,
            user: std::ptr::null_mut(),
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for luma_placement_t {
    const NAME: &'static str = "luma_placement_t";
    const INIT: &'static str = "LUMA_PLACEMENT_INIT";
    const FIRST_SIZE: usize = 32;
    fn zeroed() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            height: 0,
            lower_bound: 0,
            proved: 0,
            stopped: 0,
        }
    }
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
