//! Sizes in bytes, as people read them.

const UNITS: [(&str, u64); 7] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// The size in the largest unit of which there is at least one.
pub fn show(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit);
    match unit {
        None | Some((_, 1)) => format!("{bytes} B"),
        Some((name, unit)) if bytes % unit == 0 => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.2} {name}", bytes as f64 / *unit as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_their_unit() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1 << 20, "1 MiB"),
            ((3 << 30) / 2, "1.50 GiB"),
            (80 << 30, "80 GiB"),
            (1 << 40, "1 TiB"),
            (u64::MAX, "16.00 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(show(bytes), text);
        }
    }
}
