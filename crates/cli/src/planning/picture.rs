//! A plan as a picture.

use std::path::Path;

use luma::plan::check::Report;

use super::files::Arrays;
use super::kernel::Kernel;
use super::stays::{backed, stays};
use super::svg::{Block, Kind, Panel, Picture, Spill};

/// Each memory that has buffers, as address over position in the schedule.
pub fn of_plan(kernel: &Kernel, plan: &Arrays, report: &Report) -> String {
    let input = &kernel.input;
    let stays = stays(input, plan);
    let backed = backed(input);
    let mut spilled = vec![false; input.buffers.len()];
    for (buffer, _) in &plan.spills {
        spilled[*buffer as usize] = true;
    }
    let memories = input.memories.iter().zip(&report.peaks);
    let mut panels: Vec<Panel> = memories
        .map(|(memory, peak)| Panel {
            title: format!(
                "{}: at most {peak} of {} bytes",
                memory.name, memory.capacity
            ),
            capacity: memory.capacity,
            blocks: Vec::new(),
            spills: Vec::new(),
            line: None,
        })
        .collect();
    // Of each buffer that is away: where from, and since when.
    let mut away: Vec<Option<(u32, u64)>> = vec![None; input.buffers.len()];
    for stay in &stays {
        let at = stay.buffer as usize;
        let buffer = &input.buffers[at];
        let panel = &mut panels[buffer.memory as usize];
        panel.blocks.push(Block {
            id: u64::from(stay.buffer),
            from: u64::from(stay.from),
            to: u64::from(stay.to),
            offset: stay.offset,
            size: buffer.size,
            kind: match (spilled[at], backed[at]) {
                (false, false) => Kind::Made,
                (false, true) => Kind::Copied,
                (true, false) => Kind::SpilledMade,
                (true, true) => Kind::SpilledCopied,
            },
        });
        if let (true, Some((out, offset))) = (stay.reloaded, away[at]) {
            panel.spills.push(Spill {
                out: u64::from(out),
                out_offset: offset,
                back: u64::from(stay.from),
                back_offset: stay.offset,
                size: buffer.size,
            });
        }
        away[at] = stay.spilled.then_some((stay.to, stay.offset));
    }
    for panel in &mut panels {
        if !panel.spills.is_empty() {
            panel.title += &match panel.spills.len() {
                1 => ", 1 spill".to_string(),
                count => format!(", {count} spills"),
            };
        }
    }
    panels.retain(|panel| !panel.blocks.is_empty());
    Picture {
        title: file_name(&kernel.name),
        subtitle: format!(
            "{} nodes, {} buffers; {} bytes extra in {} spills; makespan {} cycles",
            input.nodes.len(),
            input.buffers.len(),
            report.extra_bytes,
            plan.spills.len(),
            report.makespan
        ),
        axis: "position",
        start: 0,
        end: plan.order.len() as u64,
        block: "buffer",
        has_kinds: true,
        panels,
    }
    .draw()
}

/// The last part of a path.
pub fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or(path.into(), |name| name.to_string_lossy().into_owned())
}
