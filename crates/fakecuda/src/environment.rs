//! What `FAKECUDA_*` variables say, read once. A value that cannot be read is told and ignored.

use crate::faults::Fault;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::OnceLock;

/// The settings of this process.
#[derive(Debug)]
pub struct Environment {
    /// `FAKECUDA_DEVICES`: how many devices there are.
    pub devices: usize,
    /// `FAKECUDA_MEM`: bytes of memory a device has.
    pub memory: u64,
    /// `FAKECUDA_VERSION`: what `cuDriverGetVersion` gives.
    pub version: i32,
    /// `FAKECUDA_CC`: the compute capability.
    pub capability: (i32, i32),
    /// `FAKECUDA_STRICT`: the host may not touch device memory.
    pub strict: bool,
    /// `FAKECUDA_EXEC=lazy`: queued work runs as late as the rules allow.
    pub lazy: bool,
    /// `FAKECUDA_SEED`: for what is left to chance in the lazy mode.
    pub seed: u64,
    /// `FAKECUDA_LOG`: each call is told on standard error.
    pub log: bool,
    /// `FAKECUDA_LOG_STUBS`: each call of a function that is not there is told.
    pub log_stubs: bool,
    /// `FAKECUDA_NO_VMM`: a device without virtual memory management.
    pub no_virtual_memory: bool,
    /// `FAKECUDA_NO_POOLS`: a device without memory pools.
    pub no_pools: bool,
    /// `FAKECUDA_FAIL`: `NAME:SKIP:CODE:COUNT`, separated by commas.
    pub faults: Vec<Fault>,
    /// `FAKECUDA_UNSUPPORTED`: functions that answer NOT_SUPPORTED.
    pub unsupported: Vec<String>,
    /// `FAKECUDA_MISSING`: functions that `cuGetProcAddress` does not find.
    pub missing: Vec<String>,
    /// `FAKECUDA_LATENCY`: `NAME:NANOSECONDS`, separated by commas.
    pub latency: Vec<(String, u64)>,
    /// `FAKECUDA_INIT`: what `cuInit` answers. If it is not set, a machine without a device fails.
    pub init: Option<u32>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_set(name: &str) -> bool {
    variable(name).is_some_and(|value| value != "0")
}

/// Tells something on standard error, as one line. Where that cannot be written to nothing is told:
/// `eprintln!` would panic, and end the program.
pub fn tell(message: fmt::Arguments) {
    let line = format!("fakecuda: {message}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// The value of a variable, or what stands for it.
fn read<T>(name: &str, otherwise: T, parse: impl FnOnce(&str) -> Option<T>) -> T {
    let Some(value) = variable(name) else {
        return otherwise;
    };
    parse(&value).unwrap_or_else(|| {
        tell(format_args!("{name}={value} cannot be read and is ignored"));
        otherwise
    })
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return number(text),
    };
    number::<u64>(&text[..text.len() - 1])?.checked_mul(1 << shift)
}

fn capability(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.split_once('.')?;
    Some((number(major)?, number(minor)?))
}

fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

fn faults(text: &str) -> Option<Vec<Fault>> {
    list(text)
        .iter()
        .map(|part| {
            let mut fields = part.split(':');
            Some(Fault {
                name: fields.next()?.to_owned(),
                skip: fields.next().map_or(Some(0), number)?,
                code: fields.next().map_or(Some(2), number)?,
                count: fields.next().map_or(Some(u64::MAX), number)?,
            })
        })
        .collect()
}

fn latency(text: &str) -> Option<Vec<(String, u64)>> {
    list(text)
        .iter()
        .map(|part| {
            let (name, nanoseconds) = part.split_once(':')?;
            Some((name.to_owned(), number(nanoseconds)?))
        })
        .collect()
}

/// The settings of this process.
pub fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| Environment {
        devices: read("FAKECUDA_DEVICES", 1, |text| {
            number(text).filter(|&devices| devices <= crate::device::MOST)
        }),
        memory: read("FAKECUDA_MEM", 1 << 30, bytes),
        version: read("FAKECUDA_VERSION", 13050, number),
        capability: read("FAKECUDA_CC", (9, 0), capability),
        strict: is_set("FAKECUDA_STRICT"),
        lazy: read("FAKECUDA_EXEC", false, |text| match text {
            "eager" => Some(false),
            "lazy" => Some(true),
            _ => None,
        }),
        seed: read("FAKECUDA_SEED", 0, number),
        log: is_set("FAKECUDA_LOG"),
        log_stubs: is_set("FAKECUDA_LOG_STUBS"),
        no_virtual_memory: is_set("FAKECUDA_NO_VMM"),
        no_pools: is_set("FAKECUDA_NO_POOLS"),
        faults: read("FAKECUDA_FAIL", Vec::new(), faults),
        unsupported: read("FAKECUDA_UNSUPPORTED", Vec::new(), |text| Some(list(text))),
        missing: read("FAKECUDA_MISSING", Vec::new(), |text| Some(list(text))),
        latency: read("FAKECUDA_LATENCY", Vec::new(), latency),
        init: read("FAKECUDA_INIT", None, |text| number(text).map(Some)),
    })
}
