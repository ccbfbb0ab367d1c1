//! Files in the repository that are made from the source, and compared with it.

use std::fs;
use std::path::Path;

/// Compares a file of the package with what it should be. With `LUMA_BLESS=1` writes it instead.
pub fn compare_or_bless(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("LUMA_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, expected).expect("the file can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let difference = found
        .lines()
        .map(Some)
        .chain(std::iter::repeat(None))
        .zip(expected.lines().map(Some).chain(std::iter::repeat(None)))
        .take(found.lines().count().max(expected.lines().count()))
        .enumerate()
        .find(|(_, (found, expected))| found != expected);
    if let Some((at, (found, expected))) = difference {
        panic!(
            "{} is not what the source makes it (LUMA_BLESS=1 writes it anew); first at line {}:\n  found    {}\n  expected {}",
            path.display(),
            at + 1,
            found.unwrap_or("(nothing)"),
            expected.unwrap_or("(nothing)")
        );
    }
}
