//! What a replay found, as a table or as JSON.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use crate::measure::{Ending, Measurement, Refusal};
use crate::pool::{Backend, Preset};
use crate::program::Program;
use crate::{size, smallest};

/// What holds for every row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conditions {
    pub backend: Backend,
    /// Bytes of the device; 0: the library's default.
    #[serde(rename = "capacity_bytes")]
    pub capacity: u64,
    /// The most bytes that a pool may hold; 0: no limit.
    #[serde(rename = "limit_bytes")]
    pub limit: u64,
    pub runs: u32,
    /// Whether smallest devices were looked for.
    #[serde(skip)]
    pub smallest: bool,
}

/// One trace on one preset.
#[derive(Debug, Serialize)]
pub struct Row {
    trace: String,
    preset: Preset,
    /// Calls of one replay, without those before timing starts.
    calls: usize,
    /// The most bytes live at once, as the trace requests them.
    peak_live_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_memory: Option<Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest: Option<Smallest>,
}

/// What a completed replay measured.
#[derive(Debug, Serialize)]
struct Figures {
    ns_per_call: Option<f64>,
    p99_ns: Option<f64>,
    runs_ns_per_call: Vec<f64>,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    /// Peak reserved over peak live, as a percentage above it.
    overhead_percent: f64,
    backend_allocations: u64,
    backend_frees: u64,
    segments: u64,
    free_blocks: u64,
    alloc_retries: u64,
}

/// The smallest device, where there is one.
#[derive(Debug, Serialize)]
struct Smallest {
    resolution_bytes: u64,
    capacity_bytes: Option<u64>,
    over_peak_live_percent: Option<f64>,
}

/// By how many percent `bytes` is above `base`.
fn percent_over(bytes: u64, base: u64) -> f64 {
    if base == 0 {
        0.0
    } else {
        (bytes as f64 / base as f64 - 1.0) * 100.0
    }
}

impl Row {
    pub fn new(program: &Program, preset: Preset, ending: &Ending) -> Self {
        let (result, out_of_memory) = match ending {
            Ending::Completed(measurement) => (Some(Figures::new(program, measurement)), None),
            Ending::Refused(refusal) => (None, Some(refusal.clone())),
        };
        Self {
            trace: program.name.clone(),
            preset,
            calls: program.timed_calls(),
            peak_live_bytes: program.peak_live,
            result,
            out_of_memory,
            smallest: None,
        }
    }

    pub fn set_smallest(&mut self, capacity: Option<u64>) {
        self.smallest = Some(Smallest {
            resolution_bytes: smallest::RESOLUTION,
            capacity_bytes: capacity,
            over_peak_live_percent: capacity.map(|bytes| percent_over(bytes, self.peak_live_bytes)),
        });
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![
            self.trace.clone(),
            self.preset.name().into(),
            self.calls.to_string(),
        ];
        let live = size::show(self.peak_live_bytes);
        cells.extend(match &self.result {
            Some(figures) => [
                figures
                    .ns_per_call
                    .map_or("-".into(), |ns| format!("{ns:.1}")),
                figures.p99_ns.map_or("-".into(), |ns| format!("{ns:.0}")),
                live,
                size::show(figures.peak_allocated_bytes),
                size::show(figures.peak_reserved_bytes),
                format!("{:.1} %", figures.overhead_percent),
                (figures.backend_allocations + figures.backend_frees).to_string(),
                figures.segments.to_string(),
            ],
            None => ["-", "-", &live, "-", "-", "-", "-", "-"].map(String::from),
        });
        if let Some(smallest) = &self.smallest {
            cells.push(smallest.capacity_bytes.map_or("none".into(), size::show));
            cells.push(
                smallest
                    .over_peak_live_percent
                    .map_or("-".into(), |over| format!("{over:.2} %")),
            );
        }
        cells
    }
}

impl Figures {
    fn new(program: &Program, measurement: &Measurement) -> Self {
        let stats = &measurement.stats;
        Self {
            ns_per_call: (program.timed_calls() > 0).then(|| measurement.ns_per_call()),
            p99_ns: (program.timed_calls() > 0).then_some(measurement.p99),
            runs_ns_per_call: measurement.runs.clone(),
            peak_allocated_bytes: stats.peak_bytes,
            peak_reserved_bytes: stats.peak_reserved_bytes,
            overhead_percent: percent_over(stats.peak_reserved_bytes, program.peak_live),
            backend_allocations: stats.cuda_malloc_calls,
            backend_frees: stats.cuda_free_calls,
            segments: stats.segments,
            free_blocks: stats.free_blocks,
            alloc_retries: stats.alloc_retries,
        }
    }
}

/// All rows, and what holds for them.
#[derive(Debug, Serialize)]
pub struct Report {
    luma_version: &'static str,
    #[serde(flatten)]
    conditions: Conditions,
    rows: Vec<Row>,
}

impl Report {
    pub fn new(conditions: Conditions) -> Self {
        Self {
            luma_version: env!("CARGO_PKG_VERSION"),
            conditions,
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether every trace completed on every preset.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| row.out_of_memory.is_none())
    }

    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn table(&self) -> String {
        let mut header = vec![
            "trace",
            "preset",
            "calls",
            "ns/call",
            "p99 ns",
            "live",
            "allocated",
            "reserved",
            "overhead",
            "backend",
            "segments",
        ];
        if self.conditions.smallest {
            header.extend(["smallest", "over live"]);
        }
        let header: Vec<String> = header.into_iter().map(String::from).collect();
        let rows: Vec<_> = self.rows.iter().map(Row::cells).collect();
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                let cells = rows
                    .iter()
                    .chain([&header])
                    .map(|row| row[column].chars().count());
                cells.max().unwrap_or(0)
            })
            .collect();

        let mut text = self.legend();
        push_line(&mut text, &header, &widths);
        for (row, cells) in self.rows.iter().zip(&rows) {
            push_line(&mut text, cells, &widths);
            if let Some(refusal) = &row.out_of_memory {
                // The library's message begins with the same words. Writing into a string cannot
                // fail.
                let message = &refusal.message;
                let _ = writeln!(
                    text,
                    "  out of memory at event {}, line {}: {}",
                    refusal.event,
                    refusal.line,
                    message.strip_prefix("out of memory: ").unwrap_or(message)
                );
            }
        }
        text
    }

    /// Above the table: what its columns are measured with.
    fn legend(&self) -> String {
        let Conditions {
            backend,
            capacity,
            limit,
            runs,
            smallest,
        } = self.conditions;
        let mut text = match backend {
            Backend::Simulated => "simulated device".to_string(),
            Backend::Host => "host memory".into(),
            Backend::Callbacks => "host memory through callbacks".into(),
            Backend::Cuda => "CUDA device 0".into(),
        };
        if capacity != 0 {
            let _ = write!(text, " of {}", size::show(capacity));
        }
        if limit != 0 {
            let _ = write!(text, ", limit {}", size::show(limit));
        }
        let _ = write!(
            text,
            ", median of {runs} {}",
            if runs == 1 { "run" } else { "runs" }
        );
        if smallest {
            let _ = write!(
                text,
                ", smallest device to {}",
                size::show(smallest::RESOLUTION)
            );
        }
        text + "\n\n"
    }
}

/// Text to the left in the first two columns, numbers to the right in the others.
fn push_line(text: &mut String, cells: &[String], widths: &[usize]) {
    let mut line = String::new();
    for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let gap = if column == 0 { "" } else { "  " };
        let _ = if column < 2 {
            write!(line, "{gap}{cell:<width$}")
        } else {
            write!(line, "{gap}{cell:>width$}")
        };
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_above_the_base() {
        assert_eq!(percent_over(150, 100), 50.0);
        assert_eq!(percent_over(100, 100), 0.0);
        assert_eq!(percent_over(5, 0), 0.0);
    }

    #[test]
    fn columns_line_up() {
        let mut text = String::new();
        for cells in [["trace", "preset", "calls"], ["a", "b", "7"]] {
            push_line(&mut text, &cells.map(String::from), &[5, 6, 5]);
        }
        assert_eq!(text, "trace  preset  calls\na      b           7\n");
    }
}
