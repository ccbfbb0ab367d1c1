//! Tables in text files: comma-separated, columns found by their names.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

/// A file with a header line, split into fields.
pub struct Table {
    /// The file, as it was named on the command line.
    pub name: String,
    header: Vec<String>,
    rows: Vec<Row>,
}

/// A line of a table.
pub struct Row {
    /// Its number in the file, from 1.
    pub line: u64,
    fields: Vec<String>,
}

impl Table {
    /// Reads a file whose header has at least these columns. Empty lines and lines that begin with
    /// `#` are passed over.
    pub fn load(path: &Path, needed: &[&str]) -> Result<Self> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        Self::read(name, &text, needed)
    }

    fn read(name: String, text: &str, needed: &[&str]) -> Result<Self> {
        let lines = text.trim_start_matches('\u{feff}').lines();
        let mut lines = (1..)
            .zip(lines)
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let Some((line, header)) = lines.next() else {
            bail!("{name}: no header line; it needs {}", needed.join(","));
        };
        let header = split(header).map_err(|problem| anyhow!("{name}:{line}: {problem}"))?;
        for column in needed {
            if !header.iter().any(|name| name.eq_ignore_ascii_case(column)) {
                bail!(
                    "{name}:{line}: no column {column}; the header needs {}",
                    needed.join(",")
                );
            }
        }
        let mut rows = Vec::new();
        for (line, text) in lines {
            let fields = split(text).map_err(|problem| anyhow!("{name}:{line}: {problem}"))?;
            if fields.len() != header.len() {
                bail!(
                    "{name}:{line}: {} fields where the header has {}",
                    fields.len(),
                    header.len()
                );
            }
            rows.push(Row { line, fields });
        }
        Ok(Self { name, header, rows })
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The place of a column, whatever its case.
    pub fn column(&self, name: &str) -> Option<usize> {
        let mut names = self.header.iter();
        names.position(|column| column.eq_ignore_ascii_case(name))
    }

    /// The place of a column that `load` was told is needed.
    pub fn needed(&self, name: &str) -> usize {
        self.column(name)
            .expect("load was told that it must be there")
    }

    /// An error at a line of this file.
    pub fn error(&self, row: &Row, problem: &str) -> anyhow::Error {
        anyhow!("{}:{}: {problem}", self.name, row.line)
    }

    /// A field as a whole number; `None` if it is empty.
    pub fn number(&self, row: &Row, column: usize) -> Result<Option<u64>> {
        let field = row.field(column);
        if field.is_empty() {
            return Ok(None);
        }
        let title = &self.header[column];
        (field.parse().map(Some))
            .map_err(|_| self.error(row, &format!("{title} is not a whole number: {field:?}")))
    }

    /// A field that must have a whole number.
    pub fn required(&self, row: &Row, column: usize) -> Result<u64> {
        let title = &self.header[column];
        self.number(row, column)?
            .ok_or_else(|| self.error(row, &format!("{title} is empty")))
    }
}

impl Row {
    /// A field without the blanks around it.
    pub fn field(&self, column: usize) -> &str {
        &self.fields[column]
    }
}

/// The fields of a line. A field in double quotes may hold commas, and a double quote as two.
fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.trim_start();
        if let Some(mut quoted) = start.strip_prefix('"') {
            let mut field = String::new();
            loop {
                let (part, after) = quoted.split_once('"').ok_or("a quote is not closed")?;
                field.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        quoted = more;
                    }
                    None => {
                        rest = after.trim_start();
                        break;
                    }
                }
            }
            fields.push(field);
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None if rest.is_empty() => return Ok(fields),
                None => return Err("text after a closing quote"),
            }
        } else if let Some((field, more)) = rest.split_once(',') {
            fields.push(field.trim().to_string());
            rest = more;
        } else {
            fields.push(rest.trim().to_string());
            return Ok(fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_commas_outside_quotes() {
        let cases: [(&str, &[&str]); 6] = [
            ("1,ALLOC,,", &["1", "ALLOC", "", ""]),
            ("7,MOVE,\"3,1\"", &["7", "MOVE", "3,1"]),
            ("\"a\"\"b\" , c", &["a\"b", "c"]),
            ("\"\",x", &["", "x"]),
            ("\"x\",", &["x", ""]),
            ("", &[""]),
        ];
        for (line, fields) in cases {
            assert_eq!(split(line).unwrap(), fields, "{line}");
        }
        assert_eq!(split("\"a"), Err("a quote is not closed"));
        assert_eq!(split("\"a\"b"), Err("text after a closing quote"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = |text: &str| match Table::read("t.csv".into(), text, &["id", "size"]) {
            Ok(table) => {
                let column = table.needed("size");
                let rows = table.rows().iter();
                rows.map(|row| table.required(row, column))
                    .find_map(Result::err)
                    .map_or(String::new(), |error| error.to_string())
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(told("# made\nID,Size\n\n1,2\n"), "");
        assert_eq!(told(""), "t.csv: no header line; it needs id,size");
        assert_eq!(
            told("#\nid\n"),
            "t.csv:2: no column size; the header needs id,size"
        );
        assert_eq!(
            told("id,size\n1,2,3\n"),
            "t.csv:2: 3 fields where the header has 2"
        );
        assert_eq!(
            told("id,size\n1,-2\n"),
            "t.csv:2: size is not a whole number: \"-2\""
        );
        assert_eq!(told("id,size\n1,\n"), "t.csv:2: size is empty");
    }
}
