//! What a plan comes to, for people and as JSON.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use luma::plan::check::Report;
use luma::plan::{GraphInput, Stopped};
use serde::Serialize;

use super::files::Arrays;
use super::stays::live_peaks;

/// A planned or checked graph.
#[derive(Serialize)]
pub struct Summary {
    luma_version: &'static str,
    graph: String,
    /// Of a plan that was checked only; one that is not valid has no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    nodes: usize,
    edges: usize,
    buffers: usize,
    /// How the plan was made; a plan that was only checked has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    planning: Option<Planning>,
    extra_bytes: u64,
    spills: usize,
    spill_cycles: u64,
    makespan_cycles: u64,
    memories: Vec<Memory>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<PathBuf>,
}

/// How a plan was made.
#[derive(Serialize)]
pub struct Planning {
    pub level: &'static str,
    pub order: String,
    pub order_kept: bool,
    pub seed: u64,
    pub lower_bound_bytes: u64,
    pub proved: bool,
    pub stopped: &'static str,
    pub seconds: f64,
}

/// One memory under a plan.
#[derive(Serialize)]
struct Memory {
    name: String,
    capacity_bytes: u64,
    single: bool,
    buffers: usize,
    /// The most bytes live at once, were nothing spilled.
    live_bytes: u64,
    peak_bytes: u64,
    spills: usize,
}

/// A reason to stop as documents have it.
pub fn stopped(why: Stopped) -> &'static str {
    match why {
        Stopped::Finished => "finished",
        Stopped::TimeLimit => "time_limit",
        Stopped::Caller => "interrupted",
        Stopped::Work => "work",
    }
}

impl Summary {
    /// A summary of a plan that was checked with this result.
    pub fn new(
        graph: &str,
        input: &GraphInput,
        plan: &Arrays,
        report: &Report,
        planning: Option<Planning>,
        files: Vec<PathBuf>,
    ) -> Self {
        let live = live_peaks(input, &plan.order);
        let memory_of = |buffer: u32| input.buffers[buffer as usize].memory as usize;
        let count = |memory: usize, buffers: &mut dyn Iterator<Item = u32>| {
            buffers
                .filter(|&buffer| memory_of(buffer) == memory)
                .count()
        };
        let memories = input.memories.iter().enumerate();
        let memories = memories.map(|(at, memory)| Memory {
            name: memory.name.clone(),
            capacity_bytes: memory.capacity,
            single: memory.single,
            buffers: count(at, &mut (0..input.buffers.len() as u32)),
            live_bytes: u64::try_from(live[at]).unwrap_or(u64::MAX),
            peak_bytes: report.peaks[at],
            spills: count(at, &mut plan.spills.iter().map(|(buffer, _)| *buffer)),
        });
        Self {
            luma_version: env!("CARGO_PKG_VERSION"),
            graph: graph.to_string(),
            valid: planning.is_none().then_some(true),
            nodes: input.nodes.len(),
            edges: input.edges.len(),
            buffers: input.buffers.len(),
            planning,
            extra_bytes: report.extra_bytes,
            spills: plan.spills.len(),
            spill_cycles: report.spill_cycles,
            makespan_cycles: report.makespan,
            memories: memories.filter(|memory| memory.buffers > 0).collect(),
            files,
        }
    }

    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let mut line = |label: &str, words: String| {
            let _ = writeln!(text, "{label:<9} {words}");
        };
        line(
            "graph",
            format!(
                "{}: {} nodes, {} edges, {} buffers",
                self.graph, self.nodes, self.edges, self.buffers
            ),
        );
        if let Some(planning) = &self.planning {
            let order = if planning.order_kept {
                "kept"
            } else {
                "start of the search"
            };
            line(
                "level",
                format!("{}; order {} ({order})", planning.level, planning.order),
            );
        }
        line(
            "traffic",
            format!(
                "{} bytes extra, {} {}",
                self.extra_bytes,
                self.spills,
                if self.spills == 1 { "spill" } else { "spills" }
            ),
        );
        if let Some(planning) = &self.planning {
            line("bound", self.bound(planning));
        }
        line(
            "cycles",
            format!(
                "{} spilling, makespan {}",
                self.spill_cycles, self.makespan_cycles
            ),
        );
        if let Some(planning) = &self.planning {
            let time = Duration::from_secs_f64(planning.seconds);
            line("time", format!("{}, {}", show_time(time), planning.words()));
        }
        if let [first, rest @ ..] = &self.files[..] {
            let rest = rest.iter().map(|path| format!(", {}", path.display()));
            line(
                "written",
                format!("{}{}", first.display(), rest.collect::<String>()),
            );
        }
        text + "\n" + &self.table()
    }

    fn bound(&self, planning: &Planning) -> String {
        let bound = planning.lower_bound_bytes;
        let what = if planning.order_kept {
            "in this order"
        } else {
            "in any order"
        };
        if planning.proved {
            return format!("{bound} bytes: proved optimal {what}");
        }
        let gap = self.extra_bytes.saturating_sub(bound);
        if bound == 0 && planning.level == "heuristic" {
            return "0 bytes: for a graph of this size --level exact looks for a better one".into();
        }
        if bound == 0 {
            return format!("0 bytes {what}: the gap is {gap} bytes");
        }
        let percent = gap as f64 / bound as f64 * 100.0;
        format!("{bound} bytes {what}: the gap is {gap} bytes ({percent:.2} %)")
    }

    fn table(&self) -> String {
        let header = ["memory", "capacity", "live", "peak", "buffers", "spills"];
        let mut rows = vec![header.map(String::from)];
        rows.extend(self.memories.iter().map(|memory| {
            [
                if memory.single {
                    format!("{} (one at a time)", memory.name)
                } else {
                    memory.name.clone()
                },
                memory.capacity_bytes.to_string(),
                memory.live_bytes.to_string(),
                memory.peak_bytes.to_string(),
                memory.buffers.to_string(),
                memory.spills.to_string(),
            ]
        }));
        align(&rows)
    }
}

impl Planning {
    fn words(&self) -> &'static str {
        match self.stopped {
            "finished" => "finished",
            "time_limit" => "until the time limit",
            "interrupted" => "until it was interrupted",
            _ => "until its work was used up",
        }
    }
}

/// Rows with their columns lined up: the first to the left, the others to the right.
pub fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at == 0 {
                write!(text, "{cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        text.push('\n');
    }
    text
}

/// A time in its unit.
pub fn show_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}
