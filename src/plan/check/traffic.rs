#![forbid(unsafe_code)]
//! What the spills of a plan move, and how long that takes.

use super::model::Model;
use super::violation::{Class, Violation};

pub(super) struct Costs {
    pub extra_bytes: u64,
    pub spill_cycles: u64,
    /// Cycles of the SPILL_OUT and the SPILL_IN of each spill.
    pub cycles: Vec<(u64, u64)>,
}

/// A sum that is beyond what 64 bits hold.
pub(super) fn too_large(what: &str) -> Violation {
    Violation::new(Class::Graph, format!("{what} are more than 64 bits hold"))
}

/// Bytes and cycles of every spill.
///
/// A buffer that some COPY_IN uses has a copy outside, so that only its way back counts; an operation
/// that is known to write the buffer makes the copy stale until the next COPY_IN.
pub(super) fn costs(
    model: &Model<'_>,
    order: &[u32],
    spills: &[(u32, u64)],
) -> Result<Costs, Violation> {
    let mut backed = vec![false; model.buffers as usize];
    for node in 0..model.nodes {
        if model.input.nodes[node as usize].is_copy_in {
            for used in model.uses.of(node) {
                backed[used.buffer as usize] = true;
            }
        }
    }
    let mut stale = vec![false; model.buffers as usize];
    let mut extra_bytes: u64 = 0;
    let mut spill_cycles: u64 = 0;
    let mut cycles = vec![(0, 0); spills.len()];
    for &node in order {
        if node < model.nodes {
            let fresh = model.input.nodes[node as usize].is_copy_in;
            for used in model.uses.of(node) {
                let stale = &mut stale[used.buffer as usize];
                *stale = !fresh && (*stale || used.writes);
            }
            continue;
        }
        let (spill, is_in) = model.spill_of(node);
        if is_in {
            continue;
        }
        let buffer = spills[spill as usize].0;
        let valid = backed[buffer as usize] && !stale[buffer as usize];
        let (bytes, out, back) = cost(model, model.size(buffer), valid)
            .ok_or_else(|| too_large("the bytes or cycles of a spill").buffer(buffer))?;
        extra_bytes = extra_bytes
            .checked_add(bytes)
            .ok_or_else(|| too_large("the extra bytes"))?;
        spill_cycles = out
            .checked_add(back)
            .and_then(|both| spill_cycles.checked_add(both))
            .ok_or_else(|| too_large("the cycles of the spills"))?;
        cycles[spill as usize] = (out, back);
    }
    Ok(Costs {
        extra_bytes,
        spill_cycles,
        cycles,
    })
}

/// Bytes, and cycles out and back, of a spill.
fn cost(model: &Model<'_>, size: u64, valid: bool) -> Option<(u64, u64, u64)> {
    let rule = &model.input.cost;
    let bytes = if valid { size } else { size.checked_mul(2)? };
    let out = if valid && rule.backed_out_is_free {
        0
    } else {
        rule.out_per_byte
            .checked_mul(size)?
            .checked_add(rule.out_fixed)?
    };
    let back = rule
        .in_per_byte
        .checked_mul(size)?
        .checked_add(rule.in_fixed)?;
    Some((bytes, out, back))
}
