//! What a process' figures come to.

use serde::Serialize;

use super::processes::{Pool, Process};

/// The calls of a process, and those of the driver behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    pub alloc_calls: u64,
    pub free_calls: u64,
    /// Calls that the pool made for them: for memory, and to give it back.
    pub driver_calls: u64,
    pub driver_calls_saved: u64,
    /// Nanoseconds that a call of the driver took which brought memory, in this process; none: there was none.
    pub driver_alloc_ns: Option<f64>,
    /// The same for one that gave memory back.
    pub driver_free_ns: Option<f64>,
    /// Nanoseconds that the saved calls would have taken, by these. Stream-ordered calls, which the driver
    /// serves from a pool of its own, are left out, and so are frees where none was measured.
    pub saved_ns: Option<f64>,
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    /// By how many percent the second is above the first.
    pub overhead_percent: f64,
    pub out_of_memory_count: u64,
}

impl Figures {
    pub fn of(process: &Process) -> Self {
        let field = |name: &str| sum(process, |pool| pool.field(name));
        let (grants, returns) = (
            sum(process, |pool| pool.grants),
            sum(process, |pool| pool.returns),
        );
        let (allocs, frees) = (field("alloc_calls"), field("free_calls"));
        let (allocated, reserved) = (field("peak_bytes"), field("peak_reserved_bytes"));
        let driver_alloc_ns = mean(sum(process, |pool| pool.grant_ns), grants);
        let driver_free_ns = mean(sum(process, |pool| pool.return_ns), returns);
        let plain = |calls: u64, ordered: u64, made: u64| {
            calls.saturating_sub(ordered).saturating_sub(made) as f64
        };
        let saved_ns = driver_alloc_ns.map(|ns| {
            ns * plain(allocs, process.ordered_alloc_calls, grants)
                + driver_free_ns.unwrap_or(0.0) * plain(frees, process.ordered_free_calls, returns)
        });
        Self {
            alloc_calls: allocs,
            free_calls: frees,
            driver_calls: grants + returns,
            driver_calls_saved: allocs.saturating_sub(grants) + frees.saturating_sub(returns),
            driver_alloc_ns,
            driver_free_ns,
            saved_ns,
            peak_allocated_bytes: allocated,
            peak_reserved_bytes: reserved,
            overhead_percent: percent_over(reserved, allocated),
            out_of_memory_count: field("out_of_memory_count"),
        }
    }
}

fn sum(process: &Process, of: impl Fn(&Pool) -> u64) -> u64 {
    process.pools.iter().map(of).fold(0, u64::saturating_add)
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// By how many percent `bytes` is above `base`.
pub fn percent_over(bytes: u64, base: u64) -> f64 {
    if base == 0 {
        0.0
    } else {
        (bytes as f64 / base as f64 - 1.0) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn process(ordered: [u64; 2], pools: &[[u64; 8]]) -> Process {
        let pools: Vec<_> = pools
            .iter()
            .map(
                |[
                    allocs,
                    frees,
                    grants,
                    grant_ns,
                    returns,
                    return_ns,
                    peak,
                    reserved,
                ]| {
                    json!({
                        "device": 0, "primary": true, "grants": grants, "grant_ns": grant_ns,
                        "returns": returns, "return_ns": return_ns,
                        "stats": {"alloc_calls": allocs, "free_calls": frees, "peak_bytes": peak,
                            "peak_reserved_bytes": reserved, "out_of_memory_count": 1},
                    })
                },
            )
            .collect();
        serde_json::from_value(json!({
            "pid": 1, "parent": 1, "executable": "", "arguments": [], "arguments_complete": true, "mode": "on", "driver": null,
            "driver_asked": false, "looked_up": true, "reached": true,
            "ordered_alloc_calls": ordered[0], "ordered_free_calls": ordered[1], "deepbind": [],
            "pools": pools,
        }))
        .unwrap()
    }

    #[test]
    fn saved_calls_take_what_the_driver_s_own_took() {
        let pools = [
            [100, 90, 2, 2000, 1, 300, 1000, 1500],
            [50, 50, 3, 8000, 0, 0, 1000, 1000],
        ];
        let figures = Figures::of(&process([0, 0], &pools));
        assert_eq!(
            (figures.driver_calls, figures.driver_calls_saved),
            (6, 145 + 139)
        );
        assert_eq!(figures.driver_alloc_ns, Some(2000.0));
        assert_eq!(figures.driver_free_ns, Some(300.0));
        assert_eq!(figures.saved_ns, Some(145.0 * 2000.0 + 139.0 * 300.0));
        assert_eq!(figures.overhead_percent, 25.0);
        assert_eq!(figures.out_of_memory_count, 2);
    }

    #[test]
    fn stream_ordered_calls_have_no_known_time() {
        let pool = [100, 100, 2, 2000, 0, 0, 1000, 1000];
        let figures = Figures::of(&process([60, 70], &[pool]));
        assert_eq!(figures.driver_calls_saved, 198);
        assert_eq!(figures.saved_ns, Some(38.0 * 1000.0));
        assert_eq!(figures.driver_free_ns, None);
        let ordered = Figures::of(&process([100, 100], &[pool]));
        assert_eq!(ordered.saved_ns, Some(0.0));
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        assert_eq!(Figures::of(&process([0, 0], &[])), Figures::default());
        let unmeasured = [5, 5, 0, 0, 0, 0, 10, 10];
        assert_eq!(Figures::of(&process([0, 0], &[unmeasured])).saved_ns, None);
    }
}
