#![forbid(unsafe_code)]
//! What can be wrong with a trace, and how it is told.

use std::error::Error;
use std::{fmt, io};

use super::format::Op;

/// Longer lines are refused, so that a file that is no text cannot fill the memory.
pub(super) const MAX_LINE_BYTES: u64 = 64 * 1024;
/// An error quotes at most this much of a line.
const MAX_QUOTE_CHARS: usize = 80;

/// What is wrong with a line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The file could not be read.
    Io(io::Error),
    /// The file ended before its header line.
    NoHeader,
    /// The header line lacks a column that every trace needs.
    MissingColumn {
        /// The name that was looked for.
        column: &'static str,
        /// The header line.
        header: String,
    },
    /// The header line names a column twice.
    RepeatedColumn(&'static str),
    /// The line has more bytes than any trace needs.
    LongLine,
    /// The line does not have one field for each column of the header.
    FieldCount {
        /// Fields on the line.
        found: usize,
        /// Columns in the header.
        expected: usize,
        /// The line.
        text: String,
    },
    /// The operation is not one of [`Op::ALL`].
    UnknownOp(String),
    /// A field that should hold a whole number from 0 to 2^64 - 1 does not.
    BadNumber {
        /// The field's column.
        column: &'static str,
        /// The field.
        text: String,
    },
    /// `pre` after another event: a block that is live before the recording comes first.
    LatePre,
    /// An allocation under the id of a live block.
    AlreadyLive {
        /// The id.
        id: u64,
        /// The line that allocated the live block.
        line: u64,
    },
    /// A free of an id that no live block has.
    NotLive {
        /// The operation, `free` or `free_req`.
        op: Op,
        /// The id.
        id: u64,
    },
    /// A free whose size is not that of the allocation.
    SizeDiffers {
        /// The id.
        id: u64,
        /// The size that the free gives.
        freed: u64,
        /// The size that the allocation gave.
        allocated: u64,
        /// The allocation's line.
        line: u64,
    },
}

/// A line of a trace that cannot be used, and why.
#[derive(Debug)]
pub struct ReadError {
    pub(super) line: u64,
    pub(super) problem: Problem,
}

impl ReadError {
    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// What is wrong with it. Its text does not repeat the line number.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::NoHeader => {
                f.write_str("the file ends without a header line such as \"op,id,size,stream\"")
            }
            Problem::MissingColumn { column, header } => {
                write!(f, "the header has no column \"{column}\": {header:?}")
            }
            Problem::RepeatedColumn(column) => {
                write!(f, "the header names the column \"{column}\" twice")
            }
            Problem::LongLine => {
                write!(
                    f,
                    "longer than {MAX_LINE_BYTES} bytes, so this is not a trace"
                )
            }
            Problem::FieldCount {
                found,
                expected,
                text,
            } => write!(
                f,
                "{found} fields where the header has {expected} columns: {text:?}"
            ),
            Problem::UnknownOp(text) => {
                write!(f, "{text:?} is not an operation (")?;
                for (index, op) in Op::ALL.into_iter().enumerate() {
                    write!(f, "{}{}", if index == 0 { "" } else { ", " }, op.name())?;
                }
                f.write_str(")")
            }
            Problem::BadNumber { column, text } => {
                let is_negative = text.strip_prefix('-').is_some_and(is_digits);
                let what = if text.is_empty() {
                    "is empty"
                } else if is_negative {
                    "is negative"
                } else if is_digits(text) {
                    "is above 2^64 - 1"
                } else {
                    "is not a whole number"
                };
                write!(f, "{column} {what}: {text:?}")
            }
            Problem::LatePre => f.write_str(
                "\"pre\" after another event; blocks that are live from the start come first",
            ),
            Problem::AlreadyLive { id, line } => write!(
                f,
                "block {id} is allocated while it is live (allocated on line {line})"
            ),
            Problem::NotLive { op, id } => {
                write!(f, "{} of block {id}, which is not live", op.name())
            }
            Problem::SizeDiffers {
                id,
                freed,
                allocated,
                line,
            } => write!(
                f,
                "block {id} is freed with size {freed}, but line {line} allocated it with {allocated}"
            ),
        }
    }
}

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// As much of a line as a message shows.
pub(super) fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTE_CHARS).collect()
}
