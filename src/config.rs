#![forbid(unsafe_code)]
//! The environment options: one table, which parsing, documentation and `luma doctor` walk.

use crate::log::{self, Level};
use std::sync::OnceLock;
use std::time::Duration;

/// One environment variable.
#[derive(Clone, Copy, Debug)]
pub struct EnvOption {
    /// The variable's name.
    pub name: &'static str,
    /// What it may be set to.
    pub values: &'static str,
    /// What holds while it is not set.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Takes a value over into the settings.
    parse: fn(&mut Settings, &str) -> Result<(), String>,
}

/// Some thirty years; far more could not be added to the time of day.
const MOST_SECONDS: f64 = 1e9;

/// Every environment variable that luma reads.
pub const OPTIONS: &[EnvOption] = &[
    EnvOption {
        name: "LUMA_BACKEND",
        values: "auto, cuda, host",
        default: "auto",
        doc: "Where the default pools' memory comes from. `auto` is CUDA where there is a driver and a device, otherwise host memory. A driver that is there and fails is an error, with `auto` too.",
        parse: |settings, value| {
            settings.backend = choose(
                value,
                &[
                    ("auto", BackendChoice::Auto),
                    ("cuda", BackendChoice::Cuda),
                    ("host", BackendChoice::Host),
                ],
            )?;
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_MEMORY_LIMIT",
        values: "bytes, with a suffix K, M, G or T (binary); or a percentage of the device, as 80%",
        default: "none",
        doc: "The most that each default pool may hold from its backend.",
        parse: |settings, value| {
            settings.memory_limit = Some(parse_limit(value)?);
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_PRESET",
        values: "default, xla, luma-0.3",
        default: "default",
        doc: "The policies of the default pools: luma's own, those of XLA's BFCAllocator, or those of luma-cuda 0.3.2.",
        parse: |settings, value| {
            settings.preset = choose(
                value,
                &[
                    ("default", PresetChoice::Default),
                    ("xla", PresetChoice::Xla),
                    ("luma-0.3", PresetChoice::Luma03),
                ],
            )?;
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_HOST_CAPACITY",
        values: "bytes, with a suffix K, M, G or T (binary)",
        default: "16G",
        doc: "The size of the device that the host backend simulates. All pools over host memory share it, unless their configuration names a capacity.",
        parse: |settings, value| {
            settings.host_capacity = match parse_size(value)? {
                0 => return Err("a device has at least one byte".into()),
                bytes => bytes,
            };
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_LOG",
        values: "off, error, warn, info, debug",
        default: "off (info, where a log callback is set)",
        doc: "Which messages are written to standard error, or handed to the log callback.",
        parse: |settings, value| {
            settings.log = Some(choose(
                value,
                &[
                    ("off", None),
                    ("error", Some(Level::Error)),
                    ("warn", Some(Level::Warning)),
                    ("info", Some(Level::Info)),
                    ("debug", Some(Level::Debug)),
                ],
            )?);
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_DEBUG",
        values: "0, 1, stacks",
        default: "0",
        doc: "Checked mode (slow): every invariant is checked after every call, freed blocks stay in quarantine for a while, on the host backend they are filled with 0xDF and writes to them are found, bad frees are logged, and blocks that are live at exit are listed. `stacks` also keeps the call stacks of allocations and frees. A broken invariant makes the call fail with LUMA_ERROR_CORRUPTED. Without LUMA_LOG, errors and warnings are written to standard error.",
        parse: |settings, value| {
            let choices = [
                ("0", (false, false)),
                ("1", (true, false)),
                ("stacks", (true, true)),
            ];
            (settings.debug, settings.debug_stacks) = choose(value, &choices)?;
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_QUARANTINE_BYTES",
        values: "bytes, with a suffix K, M, G or T (binary)",
        default: "16M",
        doc: "In checked mode: the most bytes that freed blocks of a pool keep in quarantine. A larger block goes past it; 0: there is none.",
        parse: |settings, value| {
            settings.quarantine_bytes = parse_size(value)?;
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_QUARANTINE_BLOCKS",
        values: "a number",
        default: "1024",
        doc: "In checked mode: the most freed blocks of a pool that are in quarantine at once. 0: there is none.",
        parse: |settings, value| {
            settings.quarantine_blocks = value
                .trim()
                .parse()
                .map_err(|_| "a number of blocks is needed")?;
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_TRACE",
        values: "a file's path; %p in it becomes the process's number",
        default: "none",
        doc: "Records every allocation and free of every pool in a file that `luma replay` reads.",
        parse: |settings, value| {
            if value.is_empty() {
                return Err("a file's path is needed".into());
            }
            settings.trace = Some(value.to_owned());
            Ok(())
        },
    },
    EnvOption {
        name: "LUMA_OOM_WAIT",
        values: "seconds, as 10 or 0.5",
        default: "10",
        doc: "The longest that a request waits, before it fails for want of memory, for what other threads are about to give back and for work of streams to end. 0: it never waits; `luma_alloc_async` then makes its stream wait for another one's work, where that can serve it.",
        parse: |settings, value| {
            settings.oom_wait = value
                .parse()
                .ok()
                .filter(|seconds| (0.0..=MOST_SECONDS).contains(seconds))
                .map(Duration::from_secs_f64)
                .ok_or("a number of seconds up to 1000000000 is needed, as 10 or 0.5")?;
            Ok(())
        },
    },
];

/// A backend as `LUMA_BACKEND` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// CUDA where there is a driver and a device, otherwise host memory.
    Auto,
    /// CUDA device memory.
    Cuda,
    /// Host memory.
    Host,
}

/// A preset as `LUMA_PRESET` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetChoice {
    /// luma's own choice.
    Default,
    /// XLA's `BFCAllocator`.
    Xla,
    /// luma-cuda 0.3.2.
    Luma03,
}

/// A limit on a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many bytes; 0: none.
    Bytes(u64),
    /// This part of the device, above 0 and at most 1.
    Fraction(f64),
}

impl Limit {
    /// The limit in bytes on a device of `total` bytes.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // To the nearest byte: cutting the product off could lose the last byte of an exact
            // half. A limit of 0 would mean none.
            Self::Fraction(fraction) => {
                ((total as f64 * fraction).round() as u64).clamp(1, total.max(1))
            }
        }
    }
}

/// What a pool in checked mode does beside checking its invariants after each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Keeps the call stacks of allocations and frees.
    pub stacks: bool,
    /// The most bytes that freed blocks keep in quarantine; 0: there is none.
    pub quarantine_bytes: u64,
    /// The most blocks in quarantine; 0: there is none.
    pub quarantine_blocks: u64,
}

/// What the environment says.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `LUMA_BACKEND`.
    pub backend: BackendChoice,
    /// `LUMA_MEMORY_LIMIT`.
    pub memory_limit: Option<Limit>,
    /// `LUMA_PRESET`.
    pub preset: PresetChoice,
    /// `LUMA_HOST_CAPACITY`, in bytes.
    pub host_capacity: u64,
    /// `LUMA_LOG`; `None`: not set.
    pub log: Option<Option<Level>>,
    /// `LUMA_DEBUG`: whether it is on.
    pub debug: bool,
    /// `LUMA_DEBUG`: whether call stacks are kept.
    pub debug_stacks: bool,
    /// `LUMA_QUARANTINE_BYTES`.
    pub quarantine_bytes: u64,
    /// `LUMA_QUARANTINE_BLOCKS`.
    pub quarantine_blocks: u64,
    /// `LUMA_TRACE`.
    pub trace: Option<String>,
    /// `LUMA_OOM_WAIT`.
    pub oom_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backend: BackendChoice::Auto,
            memory_limit: None,
            preset: PresetChoice::Default,
            host_capacity: 16 << 30,
            log: None,
            debug: false,
            debug_stacks: false,
            quarantine_bytes: 16 << 20,
            quarantine_blocks: 1024,
            trace: None,
            oom_wait: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// What `LUMA_DEBUG` and the options that go with it ask for; `None`: nothing.
    pub fn checks(&self) -> Option<Checks> {
        self.debug.then_some(Checks {
            stacks: self.debug_stacks,
            quarantine_bytes: self.quarantine_bytes,
            quarantine_blocks: self.quarantine_blocks,
        })
    }

    /// Reads every option by `lookup`. Gives back the settings and a message for each bad value,
    /// which is ignored.
    pub fn read(lookup: impl Fn(&str) -> Option<std::ffi::OsString>) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let mut problems = Vec::new();
        for option in OPTIONS {
            let Some(value) = lookup(option.name) else {
                continue;
            };
            let parsed = value
                .to_str()
                .ok_or_else(|| "not UTF-8".to_owned())
                .and_then(|value| (option.parse)(&mut settings, value));
            if let Err(problem) = parsed {
                problems.push(format!(
                    "{}={} is ignored: {problem}; it may be {}",
                    option.name,
                    value.to_string_lossy(),
                    option.values
                ));
            }
        }
        (settings, problems)
    }
}

static ENVIRONMENT: OnceLock<Settings> = OnceLock::new();

/// What the environment of this process says; read at the first call, and bad values reported then.
pub fn environment() -> &'static Settings {
    if let Some(settings) = ENVIRONMENT.get() {
        return settings;
    }
    let (settings, problems) = Settings::read(|name| std::env::var_os(name));
    let mut first = false;
    let settings = ENVIRONMENT.get_or_init(|| {
        first = true;
        settings
    });
    if first {
        if let Some(level) = settings.log {
            log::set_level(level);
        }
        if settings.debug {
            // Findings are to be seen where nobody chose what is logged.
            log::set_default(Level::Warning);
        }
        for problem in problems {
            log::log(Level::Warning, || problem.into());
        }
    }
    settings
}

fn choose<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(value))
        .map(|&(_, choice)| choice)
        .ok_or_else(|| "unknown value".to_owned())
}

/// Reads a size: digits and an optional binary suffix K, M, G or T (also as KB or KiB, in either
/// case).
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| {
        if digits == 0 {
            "a number of bytes is needed"
        } else {
            "more than 2^64 bytes"
        }
    })?;
    let suffix = text[digits..].trim_start().to_ascii_lowercase();
    let shift = match suffix.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("unknown suffix {:?}", &text[digits..])),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "more than 2^64 bytes".to_owned())
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return parse_size(text).map(Limit::Bytes);
    };
    match percent.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Limit::Fraction(percent / 100.0)),
        _ => Err("a percentage is above 0 and at most 100".to_owned()),
    }
}

/// The options as a table in Markdown, for `docs/configuration.md`.
pub fn options_table() -> String {
    let mut table =
        String::from("| variable | values | default | what it does |\n| --- | --- | --- | --- |\n");
    for option in OPTIONS {
        let EnvOption {
            name,
            values,
            default,
            doc,
            ..
        } = option;
        table += &format!("| `{name}` | {values} | {default} | {doc} |\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> (Settings, Vec<String>) {
        Settings::read(|asked| (asked == name).then(|| value.into()))
    }

    #[test]
    fn sizes_have_binary_suffixes() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("1K", 1 << 10),
            ("2m", 2 << 20),
            ("3GiB", 3 << 30),
            ("4 TB", 4 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "1.5G",
            "1X",
            "1i",
            "1ib",
            "1Kbb",
            "18446744073709551616",
            "16777216T",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_may_be_percentages() {
        assert_eq!(parse_limit("50%"), Ok(Limit::Fraction(0.5)));
        assert_eq!(Limit::Fraction(0.5).bytes(3 << 30), 3 << 29);
        assert_eq!(Limit::Fraction(1.0).bytes(12_345), 12_345);
        assert_eq!(Limit::Fraction(1e-9).bytes(100), 1);
        for text in ["0%", "101%", "-5%", "x%", "NaN%", "inf%"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_option_takes_its_values_and_names_a_bad_one() {
        let bad = [
            ("LUMA_BACKEND", "rocm"),
            ("LUMA_MEMORY_LIMIT", "much"),
            ("LUMA_PRESET", "best"),
            ("LUMA_HOST_CAPACITY", "0"),
            ("LUMA_LOG", "loud"),
            ("LUMA_DEBUG", "yes"),
            ("LUMA_QUARANTINE_BYTES", "some"),
            ("LUMA_QUARANTINE_BLOCKS", "1K"),
            ("LUMA_TRACE", ""),
            ("LUMA_OOM_WAIT", "1e19"),
        ];
        assert_eq!(
            bad.map(|(name, _)| name).as_slice(),
            OPTIONS.iter().map(|o| o.name).collect::<Vec<_>>()
        );
        for (name, value) in bad {
            let (settings, problems) = read(name, value);
            assert_eq!(settings, Settings::default(), "{name}");
            assert!(
                problems.len() == 1 && problems[0].contains(name),
                "{problems:?}"
            );
        }
        assert_eq!(read("LUMA_BACKEND", "HOST").0.backend, BackendChoice::Host);
        assert_eq!(read("LUMA_PRESET", "xla").0.preset, PresetChoice::Xla);
        assert_eq!(
            read("LUMA_MEMORY_LIMIT", "1G").0.memory_limit,
            Some(Limit::Bytes(1 << 30))
        );
        assert_eq!(read("LUMA_HOST_CAPACITY", "1T").0.host_capacity, 1 << 40);
        assert_eq!(read("LUMA_LOG", "off").0.log, Some(None));
        assert!(read("LUMA_DEBUG", "1").0.debug && !read("LUMA_DEBUG", "1").0.debug_stacks);
        assert!(
            read("LUMA_DEBUG", "stacks")
                .0
                .checks()
                .is_some_and(|checks| checks.stacks)
        );
        assert_eq!(
            read("LUMA_QUARANTINE_BYTES", "1M").0.quarantine_bytes,
            1 << 20
        );
        assert_eq!(read("LUMA_QUARANTINE_BLOCKS", "7").0.quarantine_blocks, 7);
        assert_eq!(
            read("LUMA_TRACE", "t.csv").0.trace.as_deref(),
            Some("t.csv")
        );
        assert_eq!(
            read("LUMA_OOM_WAIT", "0.5").0.oom_wait,
            Duration::from_millis(500)
        );
    }
}
