//! The checker of plans.

use super::input;
use super::types::{
    luma_graph_t, luma_plan_report_t, luma_plan_view_t, luma_spill_t, luma_violation_t,
};
use crate::error::{Error, Result, Status};
use crate::ffi::boundary::call;
use crate::ffi::process;
use crate::ffi::types::luma_status_t;
use crate::ffi::versioned;
use crate::plan::check::{Class, Report, Violation, check_plan};
use crate::text::text;

/// No node, buffer or position: `LUMA_NONE`.
const NONE: u32 = u32::MAX;

/// What is wrong, as a report tells it.
fn broken(violation: &Violation) -> luma_plan_report_t {
    luma_plan_report_t {
        struct_size: size_of::<luma_plan_report_t>(),
        violation: violation.class as i32,
        node: violation.node.unwrap_or(NONE),
        buffer: violation.buffer.unwrap_or(NONE),
        position: violation.position.unwrap_or(NONE),
        extra_bytes: 0,
        spill_cycles: 0,
        makespan: 0,
    }
}

fn valid(report: &Report) -> luma_plan_report_t {
    luma_plan_report_t {
        struct_size: size_of::<luma_plan_report_t>(),
        violation: luma_violation_t::LUMA_VIOLATION_NONE as i32,
        node: NONE,
        buffer: NONE,
        position: NONE,
        extra_bytes: report.extra_bytes,
        spill_cycles: report.spill_cycles,
        makespan: report.makespan,
    }
}

/// Sees that the spills' nodes have the numbers that go with the spills'.
fn check_numbers(nodes: usize, spills: &[luma_spill_t]) -> Result<(), Violation> {
    // The checker has seen that all these numbers are small enough.
    let outs = (nodes as u32..).step_by(2);
    for (number, (spill, out)) in spills.iter().zip(outs).enumerate() {
        if (spill.out_node, spill.in_node) != (out, out + 1) {
            let message = format!(
                "the nodes of spill {number} are {} and {}, not {out} and {}",
                spill.out_node,
                spill.in_node,
                out + 1
            );
            let violation = Violation::new(Class::SpillNumber, message);
            return Err(violation.node(spill.out_node).buffer(spill.buffer));
        }
    }
    Ok(())
}

/// # Safety
/// As `luma_check_plan`.
unsafe fn check(
    graph: *const luma_graph_t,
    given_order: *const u32,
    given_count: usize,
    plan: *const luma_plan_view_t,
) -> Result<Result<Report, Violation>> {
    // SAFETY: the caller's contract.
    let (graph, plan) = unsafe { (input::graph(graph)?, versioned::read(plan)?) };
    // SAFETY: the caller's contract, of every array.
    let (given, order, offsets, spills) = unsafe {
        let given = match given_order.is_null() && given_count == 0 {
            true => None,
            false => Some(input::array("given_order", given_order, given_count)?),
        };
        (
            given,
            input::array("order", plan.order, plan.order_count)?,
            input::array("offsets", plan.offsets, plan.offset_count)?,
            input::array("spills", plan.spills, plan.spill_count)?,
        )
    };
    let places = input::converted(spills, |_, spill| Ok((spill.buffer, spill.offset)))?;
    let checked = check_plan(&graph, given, order, offsets, &places);
    Ok(checked.and_then(|report| check_numbers(graph.nodes.len(), spills).map(|()| report)))
}

/// Checks a plan, which shares no code with planning: every rule, in the order of `luma_violation_t`. Of
/// the plan, `order`, `offsets` and `spills` are read. With `given_order` (unless it is NULL with a count
/// of 0) the plan must keep that order of the graph's own nodes.
///
/// A valid plan is `LUMA_SUCCESS`; `report` then has what it costs, and `peaks` the most bytes resident at
/// once in each memory. A plan that breaks a rule is `LUMA_ERROR_CORRUPTED`, and `report` has the rule,
/// node, buffer and position: other than elsewhere it is written with this status, too. Both may be
/// NULL.
///
/// Errors besides: `LUMA_ERROR_INVALID_VALUE` for NULL and bad fields, and then nothing is written.
///
/// # Safety
/// `graph`, `plan` and `report` are NULL or point to structs of their `struct_size`, whose arrays hold as
/// many elements as they say; `given_order` holds `given_count` ids; `peaks` is NULL or has room for a
/// number for each memory.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_check_plan(
    graph: *const luma_graph_t,
    given_order: *const u32,
    given_count: usize,
    plan: *const luma_plan_view_t,
    report: *mut luma_plan_report_t,
    peaks: *mut u64,
) -> luma_status_t {
    call(|| {
        process::start();
        // SAFETY: the caller's contract.
        let checked = unsafe { check(graph, given_order, given_count, plan) }?;
        if !report.is_null() {
            let found = match &checked {
                Ok(costs) => valid(costs),
                Err(violation) => broken(violation),
            };
            // SAFETY: the caller's contract.
            unsafe { versioned::write(report, || Ok(found)) }?;
        }
        let costs =
            checked.map_err(|violation| Error::new(Status::Corrupted, text!("{violation}")))?;
        if !peaks.is_null() {
            for (at, &peak) in costs.peaks.iter().enumerate() {
                // SAFETY: not NULL, and the caller's contract.
                unsafe { peaks.add(at).write(peak) };
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_has_the_number_of_its_class() {
        use luma_violation_t as V;
        let numbers = [
            V::LUMA_VIOLATION_GRAPH,
            V::LUMA_VIOLATION_UNKNOWN_NODE,
            V::LUMA_VIOLATION_DUPLICATE_NODE,
            V::LUMA_VIOLATION_MISSING_NODE,
            V::LUMA_VIOLATION_UNKNOWN_BUFFER,
            V::LUMA_VIOLATION_MISSING_OFFSET,
            V::LUMA_VIOLATION_OFFSET_RANGE,
            V::LUMA_VIOLATION_EDGE_ORDER,
            V::LUMA_VIOLATION_SPILL_EDGE,
            V::LUMA_VIOLATION_NESTED_SPILL,
            V::LUMA_VIOLATION_USE_WHILE_SPILLED,
            V::LUMA_VIOLATION_USE_NOT_RESIDENT,
            V::LUMA_VIOLATION_SINGLE,
            V::LUMA_VIOLATION_OVER_CAPACITY,
            V::LUMA_VIOLATION_OVERLAP,
            V::LUMA_VIOLATION_SPILL_NUMBER,
            V::LUMA_VIOLATION_ORDER_CHANGED,
        ];
        let classes = Class::ALL.map(|class| class as i32);
        assert_eq!(numbers.map(|number| number as i32), classes);
    }
}
