//! The table of hooks, read from its source.

use super::package;
use std::fs;

/// A line of the table.
pub struct Row {
    pub symbol: String,
    /// The types of the arguments, as Rust has them.
    pub types: Vec<String>,
    /// The names for `cuGetProcAddress`.
    pub names: Vec<String>,
}

/// All lines.
pub fn rows() -> Vec<Row> {
    let path = package().join("src/table.rs");
    let text = fs::read_to_string(path).expect("the source is there");
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    assert!(rows.len() > 60, "the table is written in another way");
    rows
}

fn row(line: &str) -> Option<Row> {
    let (head, names) = line.trim().strip_suffix(';')?.split_once(") as \"")?;
    let (_, signature) = head.split_once(": ")?;
    let (symbol, arguments) = signature.split_once('(')?;
    let types = arguments
        .split(", ")
        .filter_map(|argument| Some(argument.split_once(": ")?.1.to_owned()))
        .collect();
    let names = format!("\"{names}");
    let names = names.split('"').skip(1).step_by(2).map(str::to_owned);
    Some(Row {
        symbol: symbol.to_owned(),
        types,
        names: names.collect(),
    })
}
