//! Static placement: against brute force, against published answers, and on the data sets.

#![cfg(not(miri))]

mod support;

use std::fs;
use std::path::Path;

use luma::Status;
use luma::plan::place::{Lifetime, Placement, peak_load, place};
use luma::plan::{Control, PlanErrorKind, Progress, Stopped};
use support::shared;

/// The lifetimes of a table with the columns lower, upper and size.
fn read(path: &Path) -> Vec<Lifetime> {
    let text = fs::read_to_string(path).expect("a table of lifetimes can be read");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .expect(name)
    };
    let columns = [column("lower"), column("upper"), column("size")];
    let number = |line: &str, at: usize| -> u64 {
        let field = line.split(',').nth(at).expect("a field a column");
        field.parse().expect("a number")
    };
    let lifetime = |line: &str| Lifetime {
        lower: number(line, columns[0]),
        upper: number(line, columns[1]),
        size: number(line, columns[2]),
    };
    lines.map(lifetime).collect()
}

/// Asserts that nothing live together shares a byte, by a sweep over time: what starts is compared
/// with its neighbours by offset among what is live.
fn check(lifetimes: &[Lifetime], placement: &Placement) {
    assert_eq!(placement.offsets.len(), lifetimes.len());
    let needs = |id: &usize| lifetimes[*id].size > 0 && lifetimes[*id].lower < lifetimes[*id].upper;
    let ids: Vec<usize> = (0..lifetimes.len()).filter(needs).collect();
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    let mut height = 0;
    for &id in &ids {
        events.push((lifetimes[id].lower, true, id));
        events.push((lifetimes[id].upper, false, id));
        height = height.max(placement.offsets[id] + lifetimes[id].size);
    }
    // At equal times what ends goes first.
    events.sort_unstable();
    let mut live = std::collections::BTreeMap::new();
    for (time, starts, id) in events {
        let (offset, top) = (
            placement.offsets[id],
            placement.offsets[id] + lifetimes[id].size,
        );
        if !starts {
            assert_eq!(live.remove(&offset), Some(top));
            continue;
        }
        let below = live.range(..=offset).next_back();
        assert!(
            below.is_none_or(|(_, &end)| end <= offset),
            "{id} at {time} on what is below"
        );
        let above = live.range(offset..).next();
        assert!(
            above.is_none_or(|(&start, _)| start >= top),
            "{id} at {time} under what is above"
        );
        live.insert(offset, top);
    }
    assert_eq!(placement.height, height);
    assert!(placement.lower_bound <= height);
    assert!(placement.lower_bound >= peak_load(lifetimes).expect("a peak"));
    assert_eq!(placement.proved, placement.lower_bound == height);
}

fn work(budget: u64) -> Control<'static> {
    Control {
        work: Some(budget),
        ..Control::default()
    }
}

fn lowest(lifetimes: &[Lifetime], budget: u64) -> Placement {
    let placement = place(lifetimes, None, &work(budget)).expect("a placement");
    check(lifetimes, &placement);
    placement
}

/// A small generator (splitmix64), for instances only.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }

    /// Lifetimes whose sizes sum up to `load` at each of `steps` times.
    fn full(&mut self, load: u64, steps: u64, longest: u64) -> Vec<Lifetime> {
        let mut lifetimes: Vec<Lifetime> = Vec::new();
        for time in 0..steps {
            let live = lifetimes.iter().filter(|lifetime| lifetime.upper > time);
            let mut left = load - live.map(|lifetime| lifetime.size).sum::<u64>();
            while left > 0 {
                let size = 1 + self.below(left.min(load / 2));
                let upper = (time + 1 + self.below(longest)).min(steps);
                lifetimes.push(Lifetime {
                    lower: time,
                    upper,
                    size,
                });
                left -= size;
            }
        }
        lifetimes
    }

    fn lifetimes(&mut self, count: u64, times: u64, sizes: u64) -> Vec<Lifetime> {
        let mut lifetime = || {
            let (a, b) = (self.below(times), self.below(times));
            Lifetime {
                lower: a.min(b),
                upper: a.max(b) + 1,
                size: 1 + self.below(sizes),
            }
        };
        (0..count).map(|_| lifetime()).collect()
    }
}

/// The least height there is, by every order of placing from the bottom up, each box as low as it
/// goes. One of these gives it: push a lowest placement down, and take its boxes by offset.
fn least_height(lifetimes: &[Lifetime]) -> u64 {
    fn go(
        lifetimes: &[Lifetime],
        placed: &mut Vec<(usize, u64)>,
        (height, peak): (u64, u64),
        best: &mut u64,
    ) {
        if height >= *best || *best == peak {
            return;
        }
        if placed.len() == lifetimes.len() {
            *best = height;
            return;
        }
        let last = placed.last().map_or(0, |&(_, offset)| offset);
        for id in 0..lifetimes.len() {
            if placed.iter().any(|&(other, _)| other == id) {
                continue;
            }
            let own = lifetimes[id];
            let shares = |other: &Lifetime| own.lower < other.upper && other.lower < own.upper;
            let below = placed
                .iter()
                .filter(|(other, _)| shares(&lifetimes[*other]));
            let tops = below.map(|&(other, offset)| offset + lifetimes[other].size);
            let offset = tops.max().unwrap_or(0);
            if offset >= last {
                placed.push((id, offset));
                go(
                    lifetimes,
                    placed,
                    (height.max(offset + own.size), peak),
                    best,
                );
                placed.pop();
            }
        }
    }
    let mut best = u64::MAX;
    let peak = peak_load(lifetimes).expect("a peak");
    go(lifetimes, &mut Vec::new(), (0, peak), &mut best);
    best
}

#[test]
fn small_instances_get_the_least_height_with_proof() {
    let mut dice = Dice(1);
    for round in 0..600 {
        let times = 3 + dice.below(8);
        let sizes = 1 + dice.below(9);
        let count = 1 + dice.below(7);
        let lifetimes = match round % 2 {
            0 => dice.lifetimes(count, times, sizes),
            _ => dice.full(2 + sizes % 5, 2 + times % 3, 3),
        };
        let least = least_height(&lifetimes);
        let placement = place(&lifetimes, None, &Control::default()).expect("a placement");
        check(&lifetimes, &placement);
        assert!(placement.proved, "round {round}: {lifetimes:?}");
        assert_eq!(placement.height, least, "round {round}: {lifetimes:?}");
        let within = place(&lifetimes, Some(least), &Control::default()).expect("it fits");
        check(&lifetimes, &within);
        let error =
            place(&lifetimes, Some(least - 1), &Control::default()).expect_err("it does not fit");
        assert_eq!(error.kind, PlanErrorKind::NoPlacement);
        assert_eq!(error.status(), Status::Infeasible);
    }
}

#[test]
fn larger_random_instances_are_valid() {
    let mut dice = Dice(2);
    for round in 0..60 {
        let times = 2 + dice.below(300);
        let sizes = 1 << dice.below(40);
        let count = 1 + dice.below(400);
        let lifetimes = dice.lifetimes(count, times, sizes);
        let placement = lowest(&lifetimes, 20_000);
        let room =
            placement.lower_bound + (placement.height - placement.lower_bound) / (1 + round % 3);
        if let Ok(within) = place(&lifetimes, Some(room), &work(20_000)) {
            check(&lifetimes, &within);
            assert!(within.height <= room);
        }
    }
}

/// What is live has 8 bytes at all times, and 8 bytes are not enough.
#[test]
fn a_height_above_the_peak_is_proved() {
    let sizes = [2, 2, 4, 1, 1, 2, 3, 4, 1, 3, 3, 2];
    let times = "0-1 0-3 0-2 1-5 1-2 2-4 2-3 3-4 3-5 4-6 4-6 5-6";
    let lifetime = |(times, size): (&str, u64)| {
        let (lower, upper) = times.split_once('-').expect("a span");
        let time = |text: &str| text.parse().expect("a time");
        Lifetime {
            lower: time(lower),
            upper: time(upper),
            size,
        }
    };
    let lifetimes: Vec<Lifetime> = times.split(' ').zip(sizes).map(lifetime).collect();
    assert_eq!(peak_load(&lifetimes), Ok(8));
    assert_eq!(least_height(&lifetimes), 9);
    let placement = lowest(&lifetimes, 100_000);
    assert_eq!((placement.height, placement.proved), (9, true));
    assert_eq!(placement.stopped, Stopped::Finished);
    let error = place(&lifetimes, Some(8), &Control::default()).expect_err("8 are not enough");
    assert_eq!(error.kind, PlanErrorKind::NoPlacement);
    assert_eq!((error.needed, error.limit), (Some(9), Some(8)));
}

#[test]
fn nothing_to_place_is_placed() {
    let placement = lowest(&[], 0);
    assert_eq!((placement.height, placement.proved), (0, true));
    let idle = [
        Lifetime {
            lower: 3,
            upper: 3,
            size: 9,
        },
        Lifetime {
            lower: 0,
            upper: 9,
            size: 0,
        },
    ];
    let placement = place(&idle, Some(0), &Control::default()).expect("a placement");
    assert_eq!((placement.offsets, placement.height), (vec![0, 0], 0));
}

#[test]
fn lifetimes_out_of_range_are_refused() {
    let whole = |lower, upper, size| Lifetime { lower, upper, size };
    let backwards = [whole(0, 1, 1), whole(2, 1, 1)];
    let error = place(&backwards, None, &Control::default()).expect_err("it ends before it starts");
    assert_eq!(
        (error.kind, error.buffer),
        (PlanErrorKind::BadLifetime, Some(1))
    );
    assert_eq!(error.status(), Status::InvalidValue);
    let huge = [whole(0, 2, u64::MAX), whole(1, 3, 1)];
    let error = place(&huge, None, &Control::default()).expect_err("more than 2^64 bytes");
    assert_eq!(error.kind, PlanErrorKind::Overflow);
    // One after the other they fit.
    let turns = [
        whole(0, 2, 1 << 63),
        whole(2, 3, 1 << 63),
        whole(0, 3, (1 << 63) - 2),
    ];
    assert_eq!(lowest(&turns, 1_000).height, u64::MAX - 1);
    let large = [whole(0, u64::MAX, u64::MAX)];
    assert_eq!(lowest(&large, 1_000).height, u64::MAX);
    let error = place(&large, Some(7), &Control::default()).expect_err("too large");
    assert_eq!((error.needed, error.limit), (Some(u64::MAX), Some(7)));
}

/// Lifetimes that the fast rules do not place within the bound, nor a short search.
fn hard() -> Vec<Lifetime> {
    Dice(7).full(1_000, 40, 8)
}

#[test]
fn equal_seeds_and_budgets_give_equal_placements() {
    let lifetimes = hard();
    for seed in 0..3 {
        let control = Control {
            seed,
            ..work(30_000)
        };
        let first = place(&lifetimes, None, &control).expect("a placement");
        let second = place(&lifetimes, None, &control).expect("a placement");
        assert_eq!(first, second);
        // More work is never worse.
        let more = place(
            &lifetimes,
            None,
            &Control {
                seed,
                ..work(60_000)
            },
        )
        .expect("a placement");
        assert!(more.height <= first.height);
        assert!(more.lower_bound >= first.lower_bound);
    }
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let lifetimes = hard();
    assert_eq!(lowest(&lifetimes, 5_000).stopped, Stopped::Work);
    let stop = |_: Progress| false;
    let control = Control {
        progress: Some(&stop),
        ..Control::default()
    };
    let placement = place(&lifetimes, None, &control).expect("a placement");
    check(&lifetimes, &placement);
    assert_eq!(placement.stopped, Stopped::Caller);
    let late = Control {
        deadline: Some(std::time::Instant::now()),
        ..Control::default()
    };
    let placement = place(&lifetimes, None, &late).expect("a placement");
    check(&lifetimes, &placement);
    assert_eq!(placement.stopped, Stopped::TimeLimit);
    let error = place(&lifetimes, Some(placement.lower_bound), &late).expect_err("no time");
    assert_eq!(error.kind, PlanErrorKind::PlacementNotFound);
    assert_eq!(error.status(), Status::Infeasible);
}

#[test]
fn a_million_lifetimes_are_placed() {
    let mut dice = Dice(5);
    let count = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    let lifetimes: Vec<Lifetime> = (0..count)
        .map(|start| Lifetime {
            lower: start,
            upper: start + 1 + dice.below(100),
            size: 1 + dice.below(4096),
        })
        .collect();
    let placement = lowest(&lifetimes, 0);
    assert!(placement.height < placement.lower_bound * 3 / 2);
    // A chain: each overlaps the next.
    let chain: Vec<Lifetime> = (0..count)
        .map(|at| Lifetime {
            lower: at,
            upper: at + 2,
            size: 1 + at % 7,
        })
        .collect();
    lowest(&chain, 0);
}

#[test]
fn published_answers_are_reached() {
    let Some(folder) = shared::data("lifetimes/published") else {
        return;
    };
    // The lowest that the publishing planners give.
    let answers = [
        ("usmp_linear", 140),
        ("usmp_resnet_subgraph", 7_200_256),
        ("tflm_greedy_medium_test", 90),
        ("tflm_person_detection_test", 241_027),
    ];
    for (name, published) in answers {
        let lifetimes = read(&folder.join(name).with_extension("csv"));
        let placement = lowest(&lifetimes, 100_000);
        assert!(placement.proved, "{name}");
        assert!(
            placement.height <= published,
            "{name}: {}",
            placement.height
        );
    }
}

#[test]
fn minimalloc_cases_fit() {
    let Some(folder) = shared::data("lifetimes/minimalloc") else {
        return;
    };
    for name in ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"] {
        let lifetimes = read(&folder.join(name).with_extension("1048576.csv"));
        let placement = place(&lifetimes, Some(1_048_576), &work(400_000)).expect(name);
        check(&lifetimes, &placement);
    }
    let lifetimes = read(&folder.join("input.12.csv"));
    let placement = place(&lifetimes, Some(12), &work(1_000)).expect("the example");
    check(&lifetimes, &placement);
    let error = place(&lifetimes, Some(11), &work(1_000)).expect_err("its load is 12");
    assert_eq!(error.kind, PlanErrorKind::NoPlacement);
}

/// Real inputs of up to 6,000 lifetimes get the peak live load as height.
#[test]
fn real_inputs_get_their_peak() {
    for folder in ["xla", "onnx_light", "tflm", "idealloc"] {
        let Some(folder) = shared::data(&format!("lifetimes/{folder}")) else {
            return;
        };
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        for path in paths {
            let name = path.to_string_lossy().into_owned();
            if !name.ends_with(".csv") || name.contains(".uses.") || name.contains(".nodes.") {
                continue;
            }
            let lifetimes = read(&path);
            if lifetimes.len() > 6_000 {
                continue;
            }
            let placement = lowest(&lifetimes, 2_000_000);
            assert_eq!(
                placement.height,
                peak_load(&lifetimes).expect("a peak"),
                "{name}"
            );
        }
    }
}

/// The large inputs of idealloc, by the fast rules: hundredths of a per cent above the peak.
#[test]
fn large_inputs_are_close_to_their_peak() {
    let Some(folder) = shared::data("lifetimes/idealloc") else {
        return;
    };
    for (name, most) in [("S_1", 25), ("Y_1", 0), ("pangu_2.6B", 80)] {
        let lifetimes = read(&folder.join(format!("{name}.csv")));
        let placement = lowest(&lifetimes, 300_000);
        let peak = peak_load(&lifetimes).expect("a peak");
        let above = u128::from(placement.height - peak) * 10_000 / u128::from(peak);
        assert!(above <= most, "{name}: {above}");
    }
}
