//! What programs can tell luma from the driver by, of all that they check: `differences.txt`.

/// Something that does not hold under luma.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// `PROGRAM.RULE` of the suite, or `PROGRAM.cu`.
    pub rule: &'static str,
    /// A part of the answer; of a program in CUDA all of what the check says.
    pub answer: &'static str,
}

/// All of them, in the order of the file.
pub fn differences() -> impl Iterator<Item = Difference> {
    let lines = include_str!("differences.txt").lines();
    let entries = lines.filter(|line| !line.starts_with('#'));
    entries.map(|line| {
        let parts: Vec<&str> = line.split(" | ").collect();
        match parts[..] {
            [rule, answer, why] if !rule.is_empty() && !answer.is_empty() && !why.is_empty() => {
                Difference { rule, answer }
            }
            _ => panic!("differences.txt: not `RULE | ANSWER | WHY`: {line}"),
        }
    })
}
