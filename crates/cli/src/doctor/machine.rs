//! What of the machine bears on host memory and on building against luma.

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::size;

/// Memory and its limits, and the header that a compiler would find.
#[derive(Serialize)]
pub struct Machine {
    available_bytes: Option<u64>,
    /// vm.overcommit_memory: 0 heuristic, 1 always, 2 never.
    overcommit: Option<u32>,
    /// `ulimit -v`; `None` is unlimited or unknown.
    address_space_limit_bytes: Option<u64>,
    /// The control group's memory.max; `None` is unlimited or unknown.
    cgroup_limit_bytes: Option<u64>,
    pub header: Header,
}

/// An installed luma.h.
#[derive(Serialize)]
pub struct Header {
    path: Option<PathBuf>,
    version: Option<String>,
}

pub fn look() -> Machine {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    Machine {
        available_bytes: field(&meminfo, "MemAvailable:").map(|kilobytes| kilobytes << 10),
        overcommit: number("/proc/sys/vm/overcommit_memory").and_then(|mode| mode.try_into().ok()),
        address_space_limit_bytes: field(&limits, "Max address space"),
        cgroup_limit_bytes: cgroup_limit(),
        header: installed_header(),
    }
}

/// The number that follows a label at the start of a line.
fn field(text: &str, label: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Of this process's own group; version 2 of control groups.
fn cgroup_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    number(&format!("/sys/fs/cgroup/{group}/memory.max"))
        .or_else(|| number("/sys/fs/cgroup/memory.max"))
}

/// The first luma.h where gcc looks by itself.
fn installed_header() -> Header {
    let folders = ["CPATH", "C_INCLUDE_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let mut folders: Vec<PathBuf> = folders
        .flat_map(|paths| env::split_paths(&paths).collect::<Vec<_>>())
        .collect();
    folders.extend(["/usr/local/include", "/usr/include"].map(PathBuf::from));
    for folder in folders {
        let path = folder.join("luma.h");
        if let Ok(text) = fs::read_to_string(&path) {
            return Header {
                path: Some(path),
                version: header_version(&text),
            };
        }
    }
    Header {
        path: None,
        version: None,
    }
}

fn header_version(text: &str) -> Option<String> {
    let part = |name| field(text, &format!("#define LUMA_VERSION_{name} "));
    Some(format!(
        "{}.{}.{}",
        part("MAJOR")?,
        part("MINOR")?,
        part("PATCH")?
    ))
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, &self.version) {
            (None, _) => f.write_str("no luma.h where gcc looks by itself"),
            (Some(path), None) => write!(f, "{}, which names no version", path.display()),
            (Some(path), Some(version)) => write!(f, "{}, luma {version}", path.display()),
        }
    }
}

impl Machine {
    pub fn lines(&self) -> Vec<String> {
        let shown =
            |bytes: Option<u64>, otherwise: &str| bytes.map_or(otherwise.into(), size::show);
        let overcommit = match self.overcommit {
            Some(0) => "0: refuses what is plainly too much",
            Some(1) => "1: refuses nothing",
            Some(2) => {
                "2: refuses what memory and swap cannot hold, so that a large simulated device may fail"
            }
            _ => "unknown",
        };
        vec![
            format!(
                "{} of memory available",
                shown(self.available_bytes, "unknown size")
            ),
            format!("vm.overcommit_memory is {overcommit}"),
            format!(
                "address space {}",
                shown(self.address_space_limit_bytes, "unlimited")
            ),
            format!(
                "control group's memory {}",
                shown(self.cgroup_limit_bytes, "unlimited")
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_their_labels() {
        let text = "MemTotal:  8 kB\nMemAvailable:    12 kB\nMax address space   unlimited   x\n";
        assert_eq!(field(text, "MemAvailable:"), Some(12));
        assert_eq!(field(text, "Max address space"), None);
        assert_eq!(field(text, "SwapFree:"), None);
    }

    #[test]
    fn a_header_says_its_version() {
        let text = "#define LUMA_VERSION_MAJOR 1\n#define LUMA_VERSION_MINOR 20\n#define LUMA_VERSION_PATCH 3\n";
        assert_eq!(header_version(text).as_deref(), Some("1.20.3"));
        assert_eq!(header_version("int x;\n"), None);
    }
}
