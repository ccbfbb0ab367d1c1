//! One memory of a picture, as shapes.

use std::fmt::Write;

use super::{
    Block, DRAWN, GRID, HEIGHT, JOINED, Kind, LEFT, Panel, Picture, RIGHT, STRIP, TITLED, WIDTH,
    escape,
};

/// A panel at its place.
pub(super) struct Drawing<'a> {
    pub picture: &'a Picture,
    pub panel: &'a Panel,
    /// Where the memory's highest address is.
    pub top: f64,
    /// Blocks of the whole picture.
    pub blocks: usize,
}

impl Drawing<'_> {
    fn x(&self, time: u64) -> f64 {
        let span = self.picture.end.saturating_sub(self.picture.start).max(1) as f64;
        let at = time.saturating_sub(self.picture.start) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * (at / span)
    }

    fn y(&self, address: u64) -> f64 {
        self.top + HEIGHT * (1.0 - address as f64 / self.panel.capacity.max(1) as f64)
    }

    pub fn draw(&self) -> String {
        let mut text = self.frame();
        if self.blocks <= TITLED {
            self.titled(&mut text);
        } else if self.blocks <= DRAWN {
            self.paths(&mut text);
        } else {
            self.grid(&mut text);
        }
        self.spills(&mut text);
        if let Some((height, name)) = &self.panel.line {
            let (y, right) = (self.y(*height), WIDTH - RIGHT);
            let _ = write!(
                text,
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#222\" stroke-dasharray=\"6 4\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" stroke=\"#fff\" stroke-width=\"3\" \
                 paint-order=\"stroke\">{}</text>",
                right - 4.0,
                y - 4.0,
                escape(name)
            );
        }
        text
    }

    /// The background, the axes and the title.
    fn frame(&self) -> String {
        let (top, bottom) = (self.top, self.top + HEIGHT);
        let right = WIDTH - RIGHT;
        let mut text = format!(
            "<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"bold\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"#f1f1ef\"/>",
            top - 7.0,
            escape(&self.panel.title),
            right - LEFT
        );
        for part in 0..=4u64 {
            let address = (u128::from(self.panel.capacity) * u128::from(part) / 4) as u64;
            let y = self.y(address);
            let _ = write!(
                text,
                "<path d=\"M{:.1} {y:.1}H{LEFT}\" stroke=\"#888\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{address}</text>",
                LEFT - 5.0,
                LEFT - 8.0,
                y + 4.0
            );
        }
        let (start, end) = (self.picture.start, self.picture.end);
        let step = step(end.saturating_sub(start));
        let axis = bottom + STRIP;
        let mut at = start.div_ceil(step).saturating_mul(step);
        while at <= end {
            let x = self.x(at);
            let _ = write!(
                text,
                "<path d=\"M{x:.1} {axis:.1}v5\" stroke=\"#888\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{at}</text>",
                axis + 17.0
            );
            let Some(next) = at.checked_add(step) else {
                break;
            };
            at = next;
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{}</text>",
            LEFT - 8.0,
            axis + 17.0,
            self.picture.axis
        );
        text
    }

    fn titled(&self, text: &mut String) {
        text.push_str("<g stroke=\"#fff\" stroke-width=\".4\">\n");
        for block in &self.panel.blocks {
            let (x, y, width, height) = self.place(block);
            let _ = writeln!(
                text,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
                 fill=\"{}\"><title>{} {}: {} bytes at {}, from {} to {}{}</title></rect>",
                block.shade(),
                self.picture.block,
                block.id,
                block.size,
                block.offset,
                block.from,
                block.to,
                match block.kind {
                    Kind::Made | Kind::Copied => "",
                    Kind::SpilledMade | Kind::SpilledCopied => ", spilled",
                }
            );
        }
        text.push_str("</g>\n");
    }

    /// One path a colour.
    fn paths(&self, text: &mut String) {
        for kind in Kind::ALL {
            for colour in kind.colours() {
                let mut path = String::new();
                for block in &self.panel.blocks {
                    if block.kind == kind && block.shade() == colour {
                        let (x, y, width, height) = self.place(block);
                        let _ = write!(path, "M{x:.2} {y:.2}h{width:.2}v{height:.2}h-{width:.2}z");
                    }
                }
                if !path.is_empty() {
                    let _ = writeln!(text, "<path fill=\"{colour}\" d=\"{path}\"/>");
                }
            }
        }
    }

    fn place(&self, block: &Block) -> (f64, f64, f64, f64) {
        let (x, y) = (
            self.x(block.from),
            self.y(block.offset.saturating_add(block.size)),
        );
        let width = (self.x(block.to) - x).max(0.3);
        (x, y, width, self.y(block.offset) - y)
    }

    /// Cells in shades of how much of them is taken; equal neighbours are one rectangle.
    fn grid(&self, text: &mut String) {
        const SHADES: [&str; 8] = [
            "#d9ebe0", "#c0dfcc", "#a6d2b8", "#8cc5a2", "#74b68d", "#5fa37b", "#4f8f6d", "#3f7a5c",
        ];
        let levels = levels(self.panel, self.picture.start, self.picture.end);
        let (columns, rows) = GRID;
        let (width, height) = (
            (WIDTH - LEFT - RIGHT) / columns as f64,
            HEIGHT / rows as f64,
        );
        let mut paths = vec![String::new(); SHADES.len()];
        for row in 0..rows {
            let mut column = 0;
            while column < columns {
                let level = levels[row * columns + column];
                let first = column;
                while column < columns && levels[row * columns + column] == level {
                    column += 1;
                }
                if level > 0 {
                    let x = LEFT + width * first as f64;
                    let y = self.top + HEIGHT - height * (row + 1) as f64;
                    let run = width * (column - first) as f64;
                    let _ = write!(
                        paths[level - 1],
                        "M{x:.1} {y:.1}h{run:.1}v{height:.1}h-{run:.1}z"
                    );
                }
            }
        }
        for (path, shade) in paths.iter().zip(SHADES) {
            if !path.is_empty() {
                let _ = writeln!(text, "<path fill=\"{shade}\" d=\"{path}\"/>");
            }
        }
    }

    /// In the memory an edge of a block for each end of a spill, and below it a strip with all of
    /// them, so that they are seen however small the block is.
    fn spills(&self, text: &mut String) {
        let spills = &self.panel.spills;
        let bottom = self.top + HEIGHT;
        let _ = writeln!(
            text,
            "<rect x=\"{LEFT}\" y=\"{bottom:.1}\" width=\"{:.1}\" height=\"{STRIP}\" fill=\"#e4e4e1\"/>",
            WIDTH - LEFT - RIGHT
        );
        if spills.is_empty() {
            return;
        }
        if spills.len() <= JOINED {
            let mut path = String::new();
            for spill in spills {
                let half = spill.size / 2;
                let _ = write!(
                    path,
                    "M{:.2} {:.2}L{:.2} {:.2}",
                    self.x(spill.out),
                    self.y(spill.out_offset + half),
                    self.x(spill.back),
                    self.y(spill.back_offset + half)
                );
            }
            let _ = writeln!(
                text,
                "<path d=\"{path}\" stroke=\"#c1121f\" stroke-opacity=\".45\" stroke-width=\".8\" \
                 stroke-dasharray=\"3 2\" fill=\"none\"/>"
            );
        }
        // Many marks would hide the blocks.
        let (edge, faint) = match spills.len() {
            few if few <= JOINED => (2.0, 1.0),
            few if few <= 10 * JOINED => (0.6, 0.8),
            _ => (0.4, 0.35),
        };
        let outs = spills
            .iter()
            .map(|spill| (spill.out, spill.out_offset, spill.size));
        let backs = spills
            .iter()
            .map(|spill| (spill.back, spill.back_offset, spill.size));
        let half = STRIP / 2.0;
        for (colour, top, ends) in [
            ("#c1121f", bottom, outs.collect::<Vec<_>>()),
            ("#5a189a", bottom + half, backs.collect()),
        ] {
            if self.blocks <= DRAWN {
                let mut edges = String::new();
                for &(time, offset, size) in &ends {
                    let y = self.y(offset.saturating_add(size));
                    let height = self.y(offset) - y;
                    let _ = write!(edges, "M{:.2} {y:.2}v{height:.2}", self.x(time));
                }
                let _ = writeln!(
                    text,
                    "<path d=\"{edges}\" stroke=\"{colour}\" stroke-width=\"{edge}\" \
                     stroke-opacity=\"{faint}\"/>"
                );
            }
            self.strip(text, colour, top, half, ends.iter().map(|(time, ..)| *time));
        }
    }

    /// How many spills there are at each time: columns, the darker the more.
    fn strip(
        &self,
        text: &mut String,
        colour: &str,
        top: f64,
        height: f64,
        times: impl Iterator<Item = u64>,
    ) {
        const COLUMN: f64 = 2.0;
        const LEVELS: usize = 4;
        let mut counts = vec![0usize; ((WIDTH - LEFT - RIGHT) / COLUMN) as usize + 1];
        for time in times {
            counts[((self.x(time) - LEFT) / COLUMN) as usize] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        for level in 1..=LEVELS {
            let mut path = String::new();
            for (at, &count) in counts.iter().enumerate() {
                if (count * LEVELS).div_ceil(most) == level {
                    let x = LEFT + COLUMN * at as f64;
                    let _ = write!(path, "M{x:.0} {top:.1}h{COLUMN}v{height:.1}h-{COLUMN}z");
                }
            }
            if !path.is_empty() {
                let opacity = level as f64 / LEVELS as f64;
                let _ = writeln!(
                    text,
                    "<path d=\"{path}\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>"
                );
            }
        }
    }
}

/// Of each cell of [`GRID`], rows from address 0 up: 0 for empty, 8 for full.
pub(super) fn levels(panel: &Panel, start: u64, end: u64) -> Vec<usize> {
    let (columns, rows) = GRID;
    let mut taken = vec![0.0f64; columns * rows];
    let across = columns as f64 / end.saturating_sub(start).max(1) as f64;
    let up = rows as f64 / panel.capacity.max(1) as f64;
    for block in &panel.blocks {
        let left = block.from.saturating_sub(start) as f64 * across;
        let right = block.to.saturating_sub(start) as f64 * across;
        let low = block.offset as f64 * up;
        let high = block.offset.saturating_add(block.size) as f64 * up;
        for row in low as usize..(high.ceil() as usize).min(rows) {
            let share = high.min(row as f64 + 1.0) - low.max(row as f64);
            for column in left as usize..(right.ceil() as usize).min(columns) {
                let width = right.min(column as f64 + 1.0) - left.max(column as f64);
                taken[row * columns + column] += share * width;
            }
        }
    }
    taken
        .into_iter()
        .map(|part| (part * 8.0 - 0.02).ceil().clamp(0.0, 8.0) as usize)
        .collect()
}

/// A round step that gives about ten ticks.
pub(super) fn step(span: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if span / step <= 12 {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}
