//! The double's own suite under luma. A program learns the same of the driver, but for what `differences.txt`
//! lists.

use crate::differences::{Difference, differences};
use crate::library;
use crate::runtime;
use crate::support::suite::{LAZY, Program, SEEDS, STRICT, WAYS, folder, for_each_program};
use std::collections::BTreeSet;

/// The difference that is listed for a rule.
fn listed(rule: &str) -> Option<Difference> {
    differences().find(|difference| difference.rule == rule)
}

/// Runs every rule. Those that are listed fail, as it says there; no other does.
fn check(program: &Program, way: &str, mode: &[(&str, &str)], skips: &[&str]) {
    let mut env = mode.to_vec();
    env.extend([("LD_PRELOAD", library()), ("LUMA_OOM_WAIT", "0.5")]);
    let answers = program.run(way, &[], &env);
    let told = &answers.told;
    let mut rules = BTreeSet::new();
    for line in &answers.lines {
        let mut words = line.split([' ', ':']);
        let (word, rule) = (words.next(), words.next().unwrap_or_default());
        let is_first = rules.insert(rule);
        let is_known = match (word, listed(rule)) {
            (Some("ok"), None) => true,
            (Some("ok"), Some(difference)) => difference.is_chance,
            (Some("skip"), None) => skips.iter().any(|why| line.contains(why)),
            (Some("FAIL"), Some(difference)) if is_first => line.contains(difference.answer),
            // Where a rule has two processes, one waits in vain for the other.
            (Some("FAIL"), Some(_)) => true,
            _ => false,
        };
        assert!(is_known, "{line}\nlisted: {:?}\n{told}", listed(rule));
    }
    assert_eq!(
        rules.len(),
        program.rules,
        "rules of {}\n{told}",
        program.name
    );
    let has_failed = answers.lines.iter().any(|line| line.starts_with("FAIL"));
    assert_eq!(answers.status.success(), !has_failed, "{told}");
}

fn check_in_every_mode(program: &Program) {
    let (eager, mild) = ("not in the lazy mode", "not in the strict mode");
    for (way, seed) in WAYS.iter().zip(SEEDS) {
        check(program, way, &[], &[eager, mild]);
        check(program, way, &[STRICT, LAZY, ("FAKECUDA_SEED", seed)], &[]);
    }
}

macro_rules! tests {
    ($($name:ident[$($flag:literal)*])*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            if let Some(program) = Program::compiled(stringify!($name), &[$($flag)*]) {
                check_in_every_mode(&program);
            }
        })*
    };
}

for_each_program!(tests);

/// A rule that is listed exists: a typing error would excuse nothing, and nobody would notice a rule that was
/// taken away.
#[test]
fn what_is_listed_exists() {
    let mut seen = BTreeSet::new();
    for Difference { rule, .. } in differences() {
        let (program, name) = rule.split_once('.').expect("a program and a rule of it");
        if name == "cu" {
            assert!(runtime::PROGRAMS.contains(&program), "{rule}");
            continue;
        }
        assert!(PROGRAMS.contains(&program), "{rule}");
        let source = folder().join(program).with_extension("c");
        let source = std::fs::read_to_string(source).expect("the program's source is there");
        assert!(source.contains(&format!("RULE({name})")), "{rule}");
        assert!(seen.insert(rule), "{rule} is listed twice");
    }
}
