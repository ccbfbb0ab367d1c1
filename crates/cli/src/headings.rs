//! Text for people: lines under headings.

use std::fmt::Write as _;

/// Lines under headings that are not repeated.
#[derive(Default)]
pub struct Page {
    pub text: String,
    heading: &'static str,
}

impl Page {
    pub fn line(&mut self, heading: &'static str, line: &str) {
        let shown = if self.heading == heading { "" } else { heading };
        self.heading = heading;
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "{shown:<12} {line}");
    }
}
