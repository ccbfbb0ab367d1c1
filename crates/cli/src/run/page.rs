//! The report as text.

use crate::headings::Page;
use std::fmt::Write;

use super::document::Document;
use super::figures::{Figures, percent_over};
use super::processes::{Pool, Process};
use crate::size;

/// Lines of processes in full; the others are counted.
const MOST_PROCESSES: usize = 8;

pub fn text(document: &Document<'_>) -> String {
    let mut page = Page::default();
    let (served, others): (Vec<&Process>, Vec<&Process>) = document
        .processes
        .ended
        .iter()
        .partition(|process| process.is_served());
    if document.is_fake {
        page.line(
            "device",
            "the driver double: no kernel ran, and times are none of a board",
        );
    }
    for process in served.iter().take(MOST_PROCESSES) {
        page.line("process", &format!("{} {}", process.pid, process.told()));
        write_process(&mut page, process);
    }
    if let Some(more) = served
        .len()
        .checked_sub(MOST_PROCESSES)
        .filter(|&more| more > 0)
    {
        page.line(
            "more",
            &format!(
                "{} used luma, too: --report FILE tells all",
                counted(more as u64, "process")
            ),
        );
    }
    if !served.is_empty() && !others.is_empty() {
        page.line(
            "others",
            &format!(
                "{} allocated nothing",
                counted(others.len() as u64, "process")
            ),
        );
    }
    if let Some(process) = others.iter().find(|process| process.mode == "off") {
        if served.is_empty() {
            page.line(
                "off",
                &format!("all calls of {} went to the driver", process.told()),
            );
        }
    }
    for reason in document.why {
        page.line(
            if served.is_empty() {
                "not reached"
            } else {
                "missing"
            },
            reason,
        );
    }
    page.text
}

fn write_process(page: &mut Page, process: &Process) {
    // The sum of what is known would be taken for that of all.
    let figures = process.is_known().then(|| Figures::of(process));
    if let Some(figures) = &figures {
        let allocs = counted(figures.alloc_calls, "allocation");
        page.line(
            "calls",
            &format!("{allocs}, {}", counted(figures.free_calls, "free")),
        );
        page.line("driver", &driver(figures));
    }
    let pools: Vec<&Pool> = process.pools.iter().filter(|pool| pool.is_used()).collect();
    for pool in &pools {
        let name = match (pools.len(), pool.primary) {
            (1, _) => String::new(),
            (_, true) => format!("device {}: ", pool.device),
            (_, false) => format!("a context of device {}: ", pool.device),
        };
        page.line("peak", &(name + &peak(pool)));
    }
    if let Some(figures) = &figures {
        page.line(
            "refused",
            &match figures.out_of_memory_count {
                0 => "nothing".to_owned(),
                count => format!("{}: out of memory", counted(count, "request")),
            },
        );
    }
}

fn driver(figures: &Figures) -> String {
    let mut line = format!(
        "{} made, {} saved",
        counted(figures.driver_calls, "call"),
        figures.driver_calls_saved
    );
    let Some(saved) = figures.saved_ns.filter(|&saved| saved > 0.0) else {
        return line;
    };
    let _ = write!(line, ", which would have taken {}", duration(saved));
    let means = [
        ("an allocation", figures.driver_alloc_ns),
        ("a free", figures.driver_free_ns),
    ];
    let means: Vec<String> = means
        .iter()
        .filter_map(|(call, ns)| Some(format!("{call} took {}", duration((*ns)?))))
        .collect();
    let _ = write!(line, " ({})", means.join(", "));
    line
}

fn peak(pool: &Pool) -> String {
    if pool.stats.is_none() {
        return "unknown: the process ended inside a call of luma".into();
    }
    let (allocated, reserved) = (pool.field("peak_bytes"), pool.field("peak_reserved_bytes"));
    format!(
        "{} allocated, {} reserved ({:.1} % more)",
        size::show(allocated),
        size::show(reserved),
        percent_over(reserved, allocated)
    )
}

/// A number of things.
fn counted(count: u64, thing: &str) -> String {
    let ending = match (count, thing.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {thing}{ending}")
}

/// A time in the largest unit of which there is at least one, to three digits.
fn duration(ns: f64) -> String {
    let (unit, name) = match ns {
        1e9.. => (1e9, "s"),
        1e6.. => (1e6, "ms"),
        1e3.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let number = ns / unit;
    let digits = match number {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{number:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_for_people() {
        assert_eq!(counted(1, "process"), "1 process");
        assert_eq!(counted(2, "process"), "2 processes");
        assert_eq!(counted(0, "call"), "0 calls");
        let cases = [
            (0.5, "0.50 ns"),
            (1500.0, "1.50 us"),
            (25e6, "25.0 ms"),
            (3e11, "300 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }
}
