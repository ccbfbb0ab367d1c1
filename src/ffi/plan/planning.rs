//! Planning, what a plan holds, and what a spill costs.

use super::control::{self, ProgressCallback};
use super::types::{
    luma_edge_set_t, luma_edge_t, luma_graph_t, luma_level_t, luma_plan_options_t, luma_plan_t,
    luma_plan_view_t,
};
use super::{input, store};
use crate::error::Result;
use crate::ffi::boundary::{call, null};
use crate::ffi::process;
use crate::ffi::types::luma_status_t;
use crate::ffi::versioned;
use crate::plan::{self, Control, Graph, Level, Options, Plan, Progress};
use crate::text::text;
use core::ffi::c_int;

fn level(value: i32) -> Result<Level> {
    const HEURISTIC: i32 = luma_level_t::LUMA_LEVEL_HEURISTIC as i32;
    const EXACT: i32 = luma_level_t::LUMA_LEVEL_EXACT as i32;
    const SEARCH: i32 = luma_level_t::LUMA_LEVEL_SEARCH as i32;
    match value {
        HEURISTIC => Ok(Level::Heuristic),
        EXACT => Ok(Level::Exact),
        SEARCH => Ok(Level::Search),
        _ => Err(input::invalid(text!(
            "level is {value}, which is no luma_level_t"
        ))),
    }
}

/// # Safety
/// As `luma_plan_spills`.
unsafe fn make(
    graph: *const luma_graph_t,
    order: *const u32,
    order_count: usize,
    options: *const luma_plan_options_t,
) -> Result<(Graph, Plan)> {
    // SAFETY: the caller's contract.
    let (input, order) = unsafe {
        let order = match order.is_null() && order_count == 0 {
            true => None,
            false => Some(input::array("order", order, order_count)?),
        };
        (input::graph(graph)?, order)
    };
    // SAFETY: the caller's contract.
    let options = unsafe { versioned::read_or_zeroed(options) }?;
    input::unused("reserved of luma_plan_options_t", options.reserved.into())?;
    let wanted = Options {
        level: level(options.level)?,
        reorder: input::flag("reorder", options.reorder)?,
    };
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
    let graph = Graph::new(&input)?;
    drop(input);
    let greedy;
    let order = match order {
        Some(order) => order,
        None => {
            greedy = plan::greedy_order(&graph)?;
            &greedy
        }
    };
    let plan = plan::plan_spills(&graph, order, &wanted, &control)?;
    Ok((graph, plan))
}

/// Gives every buffer of a graph a place in its memory, and spills where they do not all fit. Writes
/// the plan to `out`; it lives until `luma_plan_free`.
///
/// `order` has the ids of all nodes, each after those that it depends on; NULL with a count of 0 means
/// the greedy one: of the nodes that wait for nothing a FREE first, then an operation, then an ALLOC,
/// and of these the least id. The plan keeps the order, unless the options let it choose another.
/// `options` may be NULL: every option is the default.
///
/// Bytes moved by a spill: the buffer's size if some COPY_IN uses it, for it then has a copy outside,
/// and twice its size if not. An operation that is known to write the buffer makes the copy stale
/// until the next COPY_IN; one whose access is unknown does not.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, bad fields, a graph that is none (unknown nodes, buffers
/// or memories; an ALLOC or a FREE that is missing or there twice; a use outside of its buffer's life; a
/// cycle; sums that overflow), and an order that is incomplete, has repeats or is not topological;
/// `LUMA_ERROR_INFEASIBLE` for a buffer larger than its memory, and an operation whose buffers cannot be
/// resident together. The message names the node, the buffer and the sizes.
///
/// # Safety
/// `graph` and `options` are NULL or point to structs of their `struct_size`, whose arrays hold as many
/// elements as they say; `order` holds `order_count` ids; `out` is NULL or valid for writing.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_plan_spills(
    graph: *const luma_graph_t,
    order: *const u32,
    order_count: usize,
    options: *const luma_plan_options_t,
    out: *mut *mut luma_plan_t,
) -> luma_status_t {
    call(|| {
        if out.is_null() {
            return Err(null("out"));
        }
        process::start();
        // SAFETY: the caller's contract.
        let (graph, plan) = unsafe { make(graph, order, order_count, options) }?;
        let handle = store::keep(graph, plan)?;
        // SAFETY: not NULL, and the caller's contract.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// `luma_plan_spills` by another name.
///
/// # Safety
/// As `luma_plan_spills`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn plan_spills(
    graph: *const luma_graph_t,
    order: *const u32,
    order_count: usize,
    options: *const luma_plan_options_t,
    out: *mut *mut luma_plan_t,
) -> luma_status_t {
    // SAFETY: the caller's contract.
    unsafe { luma_plan_spills(graph, order, order_count, options, out) }
}

/// Writes what a plan holds. The arrays belong to the plan, do not change, and stay valid until
/// `luma_plan_free`.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, `LUMA_ERROR_INVALID_POINTER` if it is no plan.
///
/// # Safety
/// `out` is NULL or points to a `luma_plan_view_t` of `out->struct_size` bytes.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_plan_view(
    plan: *const luma_plan_t,
    out: *mut luma_plan_view_t,
) -> luma_status_t {
    // SAFETY: the caller's contract.
    call(|| unsafe { versioned::write(out, || Ok(store::find(plan)?.view())) })
}

/// Writes the dependencies that a plan's spills add to those of the graph: the `luma_edge_set_t` says
/// which, in the order of the spills (all) or of the plan (direct). They are made at the first call and
/// stay valid until `luma_plan_free`.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL and a number that means nothing,
/// `LUMA_ERROR_INVALID_POINTER` if it is no plan, `LUMA_ERROR_OUT_OF_MEMORY`.
///
/// # Safety
/// `edges` and `count` are NULL or valid for writing.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_plan_edges(
    plan: *const luma_plan_t,
    edge_set: c_int,
    edges: *mut *const luma_edge_t,
    count: *mut usize,
) -> luma_status_t {
    const ALL: c_int = luma_edge_set_t::LUMA_EDGES_ALL as c_int;
    const DIRECT: c_int = luma_edge_set_t::LUMA_EDGES_DIRECT as c_int;
    call(|| {
        if edges.is_null() {
            return Err(null("edges"));
        }
        if count.is_null() {
            return Err(null("count"));
        }
        let set = match edge_set {
            ALL => luma_edge_set_t::LUMA_EDGES_ALL,
            DIRECT => luma_edge_set_t::LUMA_EDGES_DIRECT,
            _ => {
                return Err(input::invalid(text!(
                    "edge_set is {edge_set}, which is no luma_edge_set_t"
                )));
            }
        };
        let stored = store::find(plan)?;
        let made = stored.edges(set)?;
        // SAFETY: not NULL, and the caller's contract.
        unsafe {
            edges.write(made.as_ptr());
            count.write(made.len());
        }
        Ok(())
    })
}

/// Ends a plan and the arrays that it gave out. NULL does nothing and succeeds.
///
/// Errors: `LUMA_ERROR_INVALID_POINTER` if it is no plan, or was freed already.
#[unsafe(no_mangle)]
pub extern "C" fn luma_plan_free(plan: *mut luma_plan_t) -> luma_status_t {
    call(|| match plan.is_null() {
        true => Ok(()),
        false => store::drop_plan(plan),
    })
}

/// Cycles of moving `size` bytes one way: `size * cycles_per_byte + fixed_latency`, or `UINT64_MAX` where
/// that is more. The contest charges 2 and 150, and nothing for the SPILL_OUT of a buffer that has a
/// copy outside.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_spill_cycles(size: u64, cycles_per_byte: u64, fixed_latency: u64) -> u64 {
    size.saturating_mul(cycles_per_byte)
        .saturating_add(fixed_latency)
}

/// Bytes moved by a spill of a buffer of `size` bytes: `size` if it has a copy outside
/// (`has_copy` is not 0), otherwise twice that, or `UINT64_MAX` where that is more.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_spill_extra_bytes(size: u64, has_copy: c_int) -> u64 {
    size.saturating_mul(if has_copy == 0 { 2 } else { 1 })
}
