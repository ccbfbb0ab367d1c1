//! Pictures of memories: address over time.
//!
//! The number of shapes is bounded, so that a picture of any size stays a few megabytes: up to
//! [`TITLED`] blocks each has a title that shows under the pointer, up to [`DRAWN`] the blocks of a
//! colour are one path, and beyond that a grid says how full each cell is.

mod drawing;

use std::fmt::Write;

use drawing::Drawing;

/// Blocks of a picture that are drawn with a title each.
const TITLED: usize = 6_000;
/// Blocks of a picture that are drawn at all.
const DRAWN: usize = 100_000;
/// Cells of the grid, across and up.
const GRID: (usize, usize) = (600, 60);
/// Marks beyond which no line joins the two ends of a spill.
const JOINED: usize = 300;

const WIDTH: f64 = 1600.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 106.0;
const HEIGHT: f64 = 190.0;
/// Between two memories: the strip of marks, the axis and a title.
const BETWEEN: f64 = 62.0;
const STRIP: f64 = 14.0;

/// What a block is, which gives it its colour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never spilled, without a copy outside.
    Made,
    /// Never spilled, with a copy outside.
    Copied,
    /// Of a spilled buffer without a copy outside.
    SpilledMade,
    /// Of a spilled buffer with a copy outside.
    SpilledCopied,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::Made,
        Self::Copied,
        Self::SpilledMade,
        Self::SpilledCopied,
    ];

    /// Two shades, so that neighbours can be told apart.
    fn colours(self) -> [&'static str; 2] {
        match self {
            Self::Made => ["#8cc5a2", "#6fb48b"],
            Self::Copied => ["#a3c4e6", "#86b0da"],
            Self::SpilledMade => ["#f08a5d", "#e2744a"],
            Self::SpilledCopied => ["#f5cf6b", "#ebbd4b"],
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Made => "never spilled",
            Self::Copied => "never spilled, has a copy outside",
            Self::SpilledMade => "spilled: moved out and in",
            Self::SpilledCopied => "spilled, has a copy outside: moved in",
        }
    }
}

/// A rectangle: bytes over a stretch of time.
#[derive(Clone, Copy)]
pub struct Block {
    pub id: u64,
    pub from: u64,
    pub to: u64,
    pub offset: u64,
    pub size: u64,
    pub kind: Kind,
}

impl Block {
    fn shade(&self) -> &'static str {
        // Neighbours in number tend to be neighbours in time and place.
        self.kind.colours()[(self.id % 2) as usize]
    }
}

/// A spill: from the end of one block to the start of the next.
#[derive(Clone, Copy)]
pub struct Spill {
    pub out: u64,
    pub out_offset: u64,
    pub back: u64,
    pub back_offset: u64,
    pub size: u64,
}

/// One memory.
pub struct Panel {
    /// Above the picture.
    pub title: String,
    pub capacity: u64,
    pub blocks: Vec<Block>,
    pub spills: Vec<Spill>,
    /// A line across at this height, with its name.
    pub line: Option<(u64, String)>,
}

/// A picture.
pub struct Picture {
    pub title: String,
    pub subtitle: String,
    /// What the axis counts, and where it starts and ends.
    pub axis: &'static str,
    pub start: u64,
    pub end: u64,
    /// What a block is called in its title.
    pub block: &'static str,
    /// Colours mean what [`Kind`] says, and a legend tells; else they only part neighbours.
    pub has_kinds: bool,
    pub panels: Vec<Panel>,
}

impl Picture {
    pub fn draw(&self) -> String {
        let height = TOP + (HEIGHT + BETWEEN) * self.panels.len() as f64 + 10.0;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        let mut put = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        put(format!(
            "<text x=\"{LEFT}\" y=\"26\" font-size=\"18\" font-weight=\"bold\">{}</text>",
            escape(&self.title)
        ));
        put(format!(
            "<text x=\"{LEFT}\" y=\"46\">{}</text>",
            escape(&self.subtitle)
        ));
        let blocks: usize = self.panels.iter().map(|panel| panel.blocks.len()).sum();
        if self.has_kinds || blocks > DRAWN {
            put(self.legend(blocks));
        }
        for (at, panel) in self.panels.iter().enumerate() {
            let top = TOP + (HEIGHT + BETWEEN) * at as f64;
            put(Drawing {
                picture: self,
                panel,
                top,
                blocks,
            }
            .draw());
        }
        text + "</svg>\n"
    }

    fn legend(&self, blocks: usize) -> String {
        let mut text = String::new();
        let mut x = LEFT;
        // Writing into a string cannot fail.
        let mut entry = |shape: String, words: &str| {
            let _ = write!(
                text,
                "<g transform=\"translate({x:.0},58)\">{shape}<text x=\"18\" y=\"10\">{words}</text></g>"
            );
            x += 36.0 + 6.2 * words.len() as f64;
        };
        if blocks > DRAWN {
            entry(
                "<rect width=\"12\" height=\"12\" fill=\"#4f8f6d\"/>".into(),
                "how full (too many buffers to draw each)",
            );
        } else {
            for kind in Kind::ALL {
                let mut all = self.panels.iter().flat_map(|panel| &panel.blocks);
                if all.any(|block| block.kind == kind) {
                    let colour = kind.colours()[0];
                    entry(
                        format!("<rect width=\"12\" height=\"12\" fill=\"{colour}\"/>"),
                        kind.words(),
                    );
                }
            }
        }
        if self.panels.iter().any(|panel| !panel.spills.is_empty()) {
            entry(
                "<path d=\"M6 0v12\" stroke=\"#c1121f\" stroke-width=\"2.5\"/>".into(),
                "SPILL_OUT",
            );
            entry(
                "<path d=\"M6 0v12\" stroke=\"#5a189a\" stroke-width=\"2.5\"/>".into(),
                "SPILL_IN",
            );
        }
        text
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::drawing::{levels, step};
    use super::*;

    fn picture(blocks: u64, spills: bool) -> String {
        let block = |id: u64| Block {
            id,
            from: id,
            to: id + 3,
            offset: id % 4 * 16,
            size: 16,
            kind: Kind::ALL[(id % 4) as usize],
        };
        let spill = |id: u64| Spill {
            out: id,
            out_offset: id % 4 * 16,
            back: id + 1,
            back_offset: 0,
            size: 16,
        };
        Picture {
            title: "a < b & c".into(),
            subtitle: String::new(),
            axis: "position",
            start: 0,
            end: blocks + 3,
            block: "buffer",
            has_kinds: true,
            panels: vec![Panel {
                title: "L1".into(),
                capacity: 64,
                blocks: (0..blocks).map(block).collect(),
                spills: (0..if spills { blocks } else { 0 }).map(spill).collect(),
                line: Some((48, "bound".into())),
            }],
        }
        .draw()
    }

    #[test]
    fn pictures_of_any_size_are_a_few_megabytes() {
        for blocks in [0, 1, TITLED as u64, TITLED as u64 + 1, 100_000, 1_000_000] {
            let text = picture(blocks, true);
            assert!(text.ends_with("</svg>\n"));
            assert!(text.len() < 12 << 20, "{blocks}: {}", text.len());
            assert_eq!(
                text.matches("<title>").count() as u64,
                match blocks {
                    few if few <= TITLED as u64 => few,
                    _ => 0,
                }
            );
        }
        assert!(picture(1, false).contains("a &lt; b &amp; c"));
    }

    #[test]
    fn extremes_are_drawn() {
        let panel = Panel {
            title: String::new(),
            capacity: u64::MAX,
            blocks: vec![Block {
                id: 0,
                from: 0,
                to: u64::MAX,
                offset: 1,
                size: u64::MAX - 1,
                kind: Kind::Made,
            }],
            spills: Vec::new(),
            line: None,
        };
        let picture = Picture {
            title: String::new(),
            subtitle: String::new(),
            axis: "time",
            start: 0,
            end: u64::MAX,
            block: "block",
            has_kinds: false,
            panels: vec![panel],
        };
        assert!(!picture.draw().contains("NaN"));
        assert_eq!(levels(&picture.panels[0], 0, u64::MAX)[0], 8);
    }

    #[test]
    fn ticks_are_round() {
        for (span, expected) in [
            (0, 1),
            (12, 1),
            (100, 10),
            (31_000, 5000),
            (u64::MAX, 2 * 10u64.pow(18)),
        ] {
            assert_eq!(step(span), expected, "{span}");
        }
    }
}
