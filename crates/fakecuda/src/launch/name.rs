//! The names of kernels.

/// The plain name inside a mangled one (Itanium C++ ABI): `fill` for `_Z4fillPii`,
/// `_ZL4fillPii`, `_Z4fillIiEvPT_i` and `_ZN5space4fillEPii`. `None`: it is not mangled so.
pub fn plain(mangled: &str) -> Option<&str> {
    let mut rest = mangled.strip_prefix("_Z")?;
    let is_nested = rest.starts_with('N');
    if is_nested {
        // Qualifiers of a member function stand first.
        rest = rest[1..].trim_start_matches(['r', 'V', 'K']);
    }
    let mut name = None;
    loop {
        // Internal linkage.
        rest = rest.strip_prefix('L').unwrap_or(rest);
        let digits = rest
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(rest.len());
        let Some(length) = rest[..digits].parse::<usize>().ok() else {
            break;
        };
        let end = digits.checked_add(length)?;
        name = Some(rest.get(digits..end)?);
        rest = &rest[end..];
        if !is_nested {
            break;
        }
        if let Some(arguments) = rest.strip_prefix('I') {
            // The function's own arguments end the name; a class's are followed by a member.
            let Some(after) = skip_arguments(arguments) else {
                break;
            };
            rest = after;
        }
    }
    name
}

/// What follows template arguments; `None`: they hold what is not told apart here.
fn skip_arguments(arguments: &str) -> Option<&str> {
    let mut rest = arguments;
    loop {
        let first = rest.chars().next()?;
        match first {
            'E' => return Some(&rest[1..]),
            '0'..='9' => {
                let digits = rest.find(|character: char| !character.is_ascii_digit())?;
                rest = rest.get(digits + rest[..digits].parse::<usize>().ok()?..)?;
            }
            // A literal: its type, its digits, an end.
            'L' => rest = &rest[rest.find('E')? + 1..],
            'T' => rest = &rest[rest.find('_')? + 1..],
            'I' | 'N' | 'J' => rest = skip_arguments(&rest[1..])?,
            'S' => {
                let after = &rest[1..];
                rest = match after.chars().next()? {
                    '0'..='9' | 'A'..='Z' | '_' => &after[after.find('_')? + 1..],
                    _ => after.get(1..)?,
                };
            }
            _ if first.is_ascii_lowercase() || "PROKVCG".contains(first) => rest = &rest[1..],
            _ => return None,
        }
    }
}
