//! The LUMA_ variables of the environment.

use std::env;
use std::fmt;

use luma::config::OPTIONS;
use serde::Serialize;

const PREFIX: &str = "LUMA_";
/// What the project's own tests and scripts heed, and the library does not.
const OF_TESTS: &[&str] = &[
    "LUMA_BLESS",
    "LUMA_CUDA_CLIENTS",
    "LUMA_CUDA_TOOLKIT",
    "LUMA_FRAMEWORKS",
    "LUMA_TEST_REQUIRE_TOOLS",
];
/// What libluma_interpose.so heeds beside the library's options (docs/interposition.md).
const OF_INTERPOSER: &[(&str, &str)] = &[
    (
        "LUMA_INTERPOSE",
        "For programs under luma run: on, off, or wait, with which each free waits for the device.",
    ),
    (
        "LUMA_INTERPOSE_DEEPBIND",
        "For programs under luma run: strip leaves RTLD_DEEPBIND out when they open libraries.",
    ),
    (
        "LUMA_INTERPOSE_IPC",
        "For programs under luma run: own gives each allocation a segment of its own.",
    ),
    (
        "LUMA_INTERPOSE_REPORT",
        "For programs under luma run: the folder in which each process says at its end what its pools did.",
    ),
];
/// A name is taken for a misspelling of another that it becomes by at most so many edits.
const MAX_EDITS: usize = 3;

/// A variable that is set.
#[derive(Serialize)]
pub struct Variable {
    name: String,
    value: String,
    #[serde(flatten)]
    effect: Effect,
}

/// What becomes of it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
enum Effect {
    /// The library follows it.
    Used { meaning: &'static str },
    /// The library refused its value.
    Bad { message: String },
    /// The library knows no such variable.
    Unknown { similar: Option<&'static str> },
}

/// Every LUMA_ variable, by name. `ignored` is what the library says of bad values, each message
/// with its variable in front.
pub fn look(ignored: &[String]) -> Vec<Variable> {
    let set = env::vars_os().filter_map(|(name, value)| {
        let name = name
            .into_string()
            .ok()
            .filter(|name| name.starts_with(PREFIX) && !OF_TESTS.contains(&name.as_str()))?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let mut variables: Vec<_> = set
        .map(|(name, value)| judge(name, value, ignored))
        .collect();
    variables.sort_by(|one, other| one.name.cmp(&other.name));
    variables
}

fn judge(name: String, value: String, ignored: &[String]) -> Variable {
    let of_interposer = OF_INTERPOSER.iter().find(|option| option.0 == name);
    let effect = match OPTIONS.iter().find(|option| option.name == name) {
        None => match of_interposer {
            Some(&(_, meaning)) => Effect::Used { meaning },
            None => Effect::Unknown {
                similar: similar(&name),
            },
        },
        Some(option) => match ignored
            .iter()
            .find(|message| message.starts_with(&format!("{name}=")))
        {
            Some(message) => Effect::Bad {
                message: message.clone(),
            },
            None => Effect::Used {
                meaning: option.doc,
            },
        },
    };
    Variable {
        name,
        value,
        effect,
    }
}

impl Variable {
    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<String> {
        match &self.effect {
            Effect::Used { .. } => None,
            Effect::Bad { message } => Some(message.clone()),
            Effect::Unknown {
                similar: Some(similar),
            } => Some(format!(
                "{} is not an option of luma; {similar} is",
                self.name
            )),
            Effect::Unknown { similar: None } => Some(format!(
                "{} is not an option of luma, and has no effect",
                self.name
            )),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: ", self.name, self.value)?;
        match &self.effect {
            Effect::Used { meaning } => f.write_str(meaning),
            Effect::Bad { .. } => f.write_str("bad value, ignored"),
            Effect::Unknown { .. } => f.write_str("unknown"),
        }
    }
}

/// The option that a misspelled name most likely means.
fn similar(name: &str) -> Option<&'static str> {
    let near = OPTIONS
        .iter()
        .map(|option| (edits(name, option.name), option.name));
    near.filter(|(edits, _)| *edits <= MAX_EDITS)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance: insertions, removals and replacements that turn one into the other.
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, have) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, want) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(have != want);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (from, to, distance) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("LUMA_LOG", "LUMA_LOG", 0),
        ] {
            assert_eq!(edits(from, to), distance, "{from} {to}");
            assert_eq!(edits(to, from), distance, "{to} {from}");
        }
    }

    #[test]
    fn misspellings_are_recognised_and_others_are_not() {
        assert_eq!(similar("LUMA_BAKEND"), Some("LUMA_BACKEND"));
        assert_eq!(similar("LUMA_MEMORY_LIMITS"), Some("LUMA_MEMORY_LIMIT"));
        assert_eq!(similar("LUMA_COLOUR_SCHEME"), None);
    }

    #[test]
    fn variables_are_judged_by_the_table_and_the_librarys_warnings() {
        let warnings = ["LUMA_PRESET=fast is ignored: not a preset".to_string()];
        let judge = |name: &str| judge(name.into(), "fast".into(), &warnings);
        assert!(matches!(judge("LUMA_PRESET").effect, Effect::Bad { .. }));
        assert!(
            judge("LUMA_PRESET")
                .problem()
                .unwrap()
                .contains("not a preset")
        );
        assert!(matches!(judge("LUMA_LOG").effect, Effect::Used { .. }));
        assert_eq!(judge("LUMA_LOG").problem(), None);
        assert!(
            judge("LUMA_PRESETS")
                .problem()
                .unwrap()
                .ends_with("LUMA_PRESET is")
        );
    }
}
