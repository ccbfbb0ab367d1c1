//! Failures and delays that a test asked for.

use crate::environment::{environment, tell};
use crate::lookup;
use crate::process;
use crate::status::{Code, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Means every function.
pub const ANY: &str = "*";

/// Calls that fail: after `skip` calls that go on, `count` calls end with `code`.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The exported name of the function, or [`ANY`].
    pub name: String,
    pub skip: u64,
    pub code: u32,
    pub count: u64,
}

/// The function that a wish is about: [`ANY`], or an exported one; for a per-thread form the function
/// that it is a form of.
pub fn target(name: &str) -> Option<&str> {
    if name == ANY {
        return Some(name);
    }
    let entry = lookup::entry(name)?;
    if lookup::is_stub(entry) {
        return Some(name);
    }
    let base = ["_ptsz", "_ptds"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    Some(base.unwrap_or(name))
}

/// The target of a wish in the environment; one that can never come true is told and ignored.
fn wished(variable: &str, name: &str) -> Option<String> {
    let found = target(name);
    if found.is_none() {
        tell(format_args!(
            "{variable}: {name} is not an exported function and is ignored"
        ));
    } else if let Some(newer) = lookup::supported_form(name) {
        tell(format_args!(
            "{variable}: {name} is not supported here; is {newer} meant?"
        ));
    }
    found.map(str::to_owned)
}

#[derive(Default)]
struct Wishes {
    faults: Vec<Fault>,
    latency: Vec<(String, u64)>,
}

/// Whether there are wishes, so that a call without any takes no lock.
static ANY_WISH: AtomicBool = AtomicBool::new(false);
static FAILED: AtomicU64 = AtomicU64::new(0);

fn wishes() -> MutexGuard<'static, Wishes> {
    static WISHES: OnceLock<Mutex<Wishes>> = OnceLock::new();
    let wishes = WISHES.get_or_init(|| {
        let environment = environment();
        let faults = environment.faults.iter().filter_map(|fault| {
            let name = wished("FAKECUDA_FAIL", &fault.name)?;
            Some(Fault {
                name,
                ..fault.clone()
            })
        });
        let unsupported = environment.unsupported.iter().filter_map(|name| {
            Some(Fault {
                name: wished("FAKECUDA_UNSUPPORTED", name)?,
                skip: 0,
                code: Code::NOT_SUPPORTED.0,
                count: u64::MAX,
            })
        });
        let latency = environment
            .latency
            .iter()
            .filter_map(|(name, nanoseconds)| {
                Some((wished("FAKECUDA_LATENCY", name)?, *nanoseconds))
            });
        Mutex::new(Wishes {
            faults: faults.chain(unsupported).collect(),
            latency: latency.collect(),
        })
    });
    wishes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the environment's wishes.
fn begin() {
    static BEGUN: OnceLock<()> = OnceLock::new();
    BEGUN.get_or_init(|| {
        let wishes = wishes();
        if !wishes.faults.is_empty() || !wishes.latency.is_empty() {
            ANY_WISH.store(true, Ordering::Release);
        }
    });
}

/// Delays a call, or lets it fail, as somebody wished.
pub fn apply(name: &str) -> Result {
    // In a forked child another thread of the parent may hold the lock for ever.
    if process::is_forked() {
        return Ok(());
    }
    begin();
    if !ANY_WISH.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut wishes = wishes();
    let is_meant = |wished: &str| wished == ANY || wished == name;
    let delay: u64 = wishes
        .latency
        .iter()
        .filter(|(wished, _)| is_meant(wished))
        .fold(0, |sum, (_, nanoseconds)| sum.saturating_add(*nanoseconds));
    let mut outcome = Ok(());
    for fault in wishes
        .faults
        .iter_mut()
        .filter(|fault| is_meant(&fault.name))
    {
        if fault.skip > 0 {
            fault.skip -= 1;
        } else if fault.count > 0 && outcome.is_ok() {
            fault.count -= 1;
            outcome = Err(Code(fault.code));
        }
    }
    drop(wishes);
    if delay > 0 {
        std::thread::sleep(Duration::from_nanos(delay));
    }
    if outcome.is_err() {
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
    outcome
}

/// Adds failures.
pub fn add(fault: Fault) {
    begin();
    wishes().faults.push(fault);
    ANY_WISH.store(true, Ordering::Release);
}

/// Forgets all failures.
pub fn clear() {
    begin();
    wishes().faults.clear();
}

/// Sets how long calls of a function take at least.
pub fn set_latency(name: &str, nanoseconds: u64) {
    begin();
    let mut wishes = wishes();
    wishes.latency.retain(|(wished, _)| wished != name);
    if nanoseconds > 0 {
        wishes.latency.push((name.to_owned(), nanoseconds));
    }
    ANY_WISH.store(true, Ordering::Release);
}

/// How many calls were made to fail.
pub fn failed() -> u64 {
    FAILED.load(Ordering::Relaxed)
}
