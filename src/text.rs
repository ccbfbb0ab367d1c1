#![forbid(unsafe_code)]
//! Messages that are made even when the host has no memory left for them.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// A message: fixed, or made for the occasion.
pub type Text = Cow<'static, str>;

/// Formats as `format!` does. Where the host has no memory for the message, a fixed one says so,
/// instead of the process ending.
macro_rules! text {
    ($($arguments:tt)*) => {
        $crate::text::format(format_args!($($arguments)*))
    };
}
pub(crate) use text;

/// What `text!` calls.
pub fn format(arguments: fmt::Arguments<'_>) -> Text {
    if let Some(fixed) = arguments.as_str() {
        return Cow::Borrowed(fixed);
    }
    let mut text = Fallible(String::new());
    match text.write_fmt(arguments) {
        Ok(()) => Cow::Owned(text.0),
        Err(fmt::Error) => Cow::Borrowed("the host has no memory left for this message"),
    }
}

/// A string that answers want of memory with an error.
struct Fallible(String);

impl Write for Fallible {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(part);
        Ok(())
    }
}
