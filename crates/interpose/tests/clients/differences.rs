//! What programs can tell luma from the driver by, of all that they check: `differences.txt`.

/// Something that does not hold under luma.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// `PROGRAM.RULE` of the suite, or `PROGRAM.cu`.
    pub rule: &'static str,
    /// A part of the answer; of a program in CUDA all of what the check says.
    pub answer: &'static str,
    /// Whether it holds in some runs: how soon work is done is a matter of time.
    pub is_chance: bool,
}

/// All of them, in the order of the file.
pub fn differences() -> impl Iterator<Item = Difference> {
    let lines = include_str!("differences.txt").lines();
    let entries = lines.filter(|line| !line.starts_with('#'));
    entries.map(|line| {
        let parts: Vec<&str> = line.split(" | ").collect();
        match parts[..] {
            [rule, answer, why] if !rule.is_empty() && !answer.is_empty() && !why.is_empty() => {
                let by_chance = rule.strip_suffix(" (by chance)");
                Difference {
                    rule: by_chance.unwrap_or(rule),
                    answer,
                    is_chance: by_chance.is_some(),
                }
            }
            _ => panic!("differences.txt: not `RULE | ANSWER | WHY`: {line}"),
        }
    })
}
