#![forbid(unsafe_code)]
//! Reading a trace: one pass over the lines, with every event checked against those before it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufRead, Read};

use super::error::{MAX_LINE_BYTES, Problem, ReadError, is_digits, quote};
use super::format::{Event, Op};

/// Where the known columns stand on a line.
struct Columns {
    count: usize,
    op: usize,
    id: usize,
    size: usize,
    stream: Option<usize>,
    time: Option<usize>,
}

impl Columns {
    fn parse(header: &str) -> Result<Self, Problem> {
        // Spreadsheets begin a file with a byte order mark.
        let header = header.trim_start_matches('\u{feff}');
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let find = |column: &'static str| {
            let mut places = names
                .iter()
                .enumerate()
                .filter(|(_, name)| **name == column);
            let first = places.next().map(|(place, _)| place);
            match places.next() {
                Some(_) => Err(Problem::RepeatedColumn(column)),
                None => Ok(first),
            }
        };
        let need = |column: &'static str| {
            find(column)?.ok_or_else(|| Problem::MissingColumn {
                column,
                header: quote(header),
            })
        };
        Ok(Self {
            count: names.len(),
            op: need("op")?,
            id: need("id")?,
            size: need("size")?,
            stream: find("stream")?,
            time: find("t_us")?,
        })
    }
}

/// A block that is live at this point of the trace.
struct Live {
    size: u64,
    line: u64,
}

/// Yields a trace's events in file order. After an error it yields nothing more.
///
/// Comment lines (`#`) and empty lines are passed over, and lines may end in CR LF.
///
/// ```
/// use luma::trace::{Op, Reader};
///
/// let text = "# two calls\nop,id,size\nalloc,0,4096\nfree,0,4096\n";
/// let events: Vec<_> = Reader::new(text.as_bytes()).collect::<Result<_, _>>()?;
/// assert_eq!(events[0].op, Op::Alloc);
/// assert_eq!(events[1].line, 4);
/// # Ok::<(), luma::trace::ReadError>(())
/// ```
pub struct Reader<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    columns: Option<Columns>,
    live: HashMap<u64, Live>,
    recording: bool,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the start of a file. Nothing is read before the first event is asked for.
    pub fn new(input: R) -> Self {
        Self {
            input,
            text: Vec::new(),
            line: 0,
            columns: None,
            live: HashMap::new(),
            recording: false,
            ended: false,
        }
    }

    /// The next event, or `None` at the end of the file.
    fn advance(&mut self) -> Result<Option<Event>, Problem> {
        loop {
            self.line += 1;
            if !self.read_line()? {
                return if self.columns.is_some() {
                    Ok(None)
                } else {
                    Err(Problem::NoHeader)
                };
            }
            let text = String::from_utf8_lossy(&self.text);
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let Some(columns) = &self.columns else {
                self.columns = Some(Columns::parse(text)?);
                continue;
            };
            let event = parse_event(text, columns, self.line)?;
            self.admit(&event)?;
            return Ok(Some(event));
        }
    }

    /// Reads one line into `text`; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, Problem> {
        self.text.clear();
        let mut bounded = self.input.by_ref().take(MAX_LINE_BYTES + 1);
        let bytes = bounded
            .read_until(b'\n', &mut self.text)
            .map_err(Problem::Io)?;
        if bytes as u64 > MAX_LINE_BYTES {
            return Err(Problem::LongLine);
        }
        Ok(bytes > 0)
    }

    /// Checks an event against those before it.
    fn admit(&mut self, event: &Event) -> Result<(), Problem> {
        let Event {
            op, id, size, line, ..
        } = *event;
        match op {
            Op::Pre | Op::Alloc => {
                if op == Op::Pre && self.recording {
                    return Err(Problem::LatePre);
                }
                match self.live.entry(id) {
                    Entry::Occupied(entry) => {
                        return Err(Problem::AlreadyLive {
                            id,
                            line: entry.get().line,
                        });
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(Live { size, line });
                    }
                }
            }
            Op::FreeRequest | Op::Free => {
                let block = self.live.get(&id).ok_or(Problem::NotLive { op, id })?;
                if block.size != size {
                    let (allocated, line) = (block.size, block.line);
                    return Err(Problem::SizeDiffers {
                        id,
                        freed: size,
                        allocated,
                        line,
                    });
                }
                if op == Op::Free {
                    self.live.remove(&id);
                }
            }
            Op::AllocFailed | Op::SegmentAlloc => {}
        }
        self.recording |= !matches!(op, Op::Pre | Op::SegmentAlloc);
        Ok(())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let result = self.advance().map_err(|problem| ReadError {
            line: self.line,
            problem,
        });
        self.ended = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}

fn parse_event(text: &str, columns: &Columns, line: u64) -> Result<Event, Problem> {
    let found = text.split(',').count();
    if found != columns.count {
        return Err(Problem::FieldCount {
            found,
            expected: columns.count,
            text: quote(text),
        });
    }
    let field = |place: usize| text.split(',').nth(place).unwrap_or_default().trim();
    let number = |column: &'static str, place: Option<usize>| match place {
        None => Ok(0),
        Some(place) => parse_number(column, field(place)),
    };

    let word = field(columns.op);
    let op = Op::from_name(word).ok_or_else(|| Problem::UnknownOp(quote(word)))?;
    Ok(Event {
        op,
        id: if op.has_block() {
            number("id", Some(columns.id))?
        } else {
            0
        },
        size: number("size", Some(columns.size))?,
        stream: number("stream", columns.stream)?,
        time_us: number("t_us", columns.time)?,
        line,
    })
}

/// `u64::from_str` but for the leading `+` that it takes.
fn parse_number(column: &'static str, text: &str) -> Result<u64, Problem> {
    let number = if is_digits(text) {
        text.parse().ok()
    } else {
        None
    };
    number.ok_or_else(|| Problem::BadNumber {
        column,
        text: quote(text),
    })
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io;

    use super::*;

    fn events(text: &str) -> Vec<Event> {
        Reader::new(text.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap()
    }

    /// The message of the first error.
    fn error(text: &str) -> String {
        let failure = Reader::new(text.as_bytes()).find_map(Result::err);
        failure.expect("the text should be refused").to_string()
    }

    #[test]
    fn every_operation_is_read() {
        let events = events(
            "# origin: a test\nop,id,size,stream,addr_off,t_us\nsegment_alloc,-1,2097152,0,0,0\n\
             pre,7,100,0,0,0\nalloc,8,200,3,512,5\nalloc_failed,-1,900,0,0,6\n\
             free_req,8,200,3,512,7\nfree,8,200,3,512,9\nalloc,8,1,0,0,10\n",
        );
        let ops: Vec<_> = events.iter().map(|event| event.op).collect();
        assert_eq!(
            ops,
            [
                Op::SegmentAlloc,
                Op::Pre,
                Op::Alloc,
                Op::AllocFailed,
                Op::FreeRequest,
                Op::Free,
                Op::Alloc
            ]
        );
        assert_eq!(
            events[2],
            Event {
                op: Op::Alloc,
                id: 8,
                size: 200,
                stream: 3,
                time_us: 5,
                line: 5
            }
        );
        assert_eq!(events[3].id, 0);
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let events = events("thread,size,op,id\n9,64,alloc,1\nx,64,free,1\n");
        assert_eq!(
            events[0],
            Event {
                op: Op::Alloc,
                id: 1,
                size: 64,
                stream: 0,
                time_us: 0,
                line: 2
            }
        );
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn crlf_spaces_blank_and_comment_lines_and_a_missing_last_newline_are_taken() {
        let events = events("#c\r\n\r\nop, id, size\r\nalloc, 1, 2\r\n# between\r\n\r\nfree,1,2");
        assert_eq!(events.len(), 2);
        assert_eq!(events[1].line, 7);
    }

    #[test]
    fn the_largest_number_is_taken_and_the_next_refused() {
        assert_eq!(
            events("op,id,size\nalloc,0,18446744073709551615\n")[0].size,
            u64::MAX
        );
        assert_eq!(
            error("op,id,size\nalloc,0,18446744073709551616\n"),
            "line 2: size is above 2^64 - 1: \"18446744073709551616\""
        );
    }

    #[test]
    fn bad_numbers_name_their_column_and_text() {
        let cases = [
            ("alloc,0,-5,0", "size is negative: \"-5\""),
            ("alloc,x1,5,0", "id is not a whole number: \"x1\""),
            ("alloc,,5,0", "id is empty: \"\""),
            ("alloc,-1,5,0", "id is negative: \"-1\""),
            ("alloc,0,+5,0", "size is not a whole number: \"+5\""),
            ("alloc,0,5.5,0", "size is not a whole number: \"5.5\""),
            ("alloc,0,5,main", "stream is not a whole number: \"main\""),
        ];
        for (row, message) in cases {
            assert_eq!(
                error(&format!("op,id,size,stream\n{row}\n")),
                format!("line 2: {message}")
            );
        }
    }

    #[test]
    fn unknown_operations_are_refused_with_the_known_ones() {
        assert_eq!(
            error("op,id,size\nrealloc,0,5\n"),
            "line 2: \"realloc\" is not an operation \
             (pre, alloc, alloc_failed, free_req, free, segment_alloc)"
        );
    }

    #[test]
    fn headers_must_be_there_and_whole() {
        let missing = "ends without a header line";
        assert!(error("").contains(missing));
        assert!(error("# only comments\n\n").contains(missing));
        assert_eq!(
            error("op,id,bytes\n"),
            "line 1: the header has no column \"size\": \"op,id,bytes\""
        );
        assert_eq!(
            error("#\nalloc,0,5\n"),
            "line 2: the header has no column \"op\": \"alloc,0,5\""
        );
        assert_eq!(
            error("op,id,size,id\n"),
            "line 1: the header names the column \"id\" twice"
        );
    }

    #[test]
    fn rows_must_have_the_headers_columns() {
        assert_eq!(
            error("op,id,size\nalloc,0\n"),
            "line 2: 2 fields where the header has 3 columns: \"alloc,0\""
        );
        assert!(error("op,id,size\nalloc,0,1,2\n").starts_with("line 2: 4 fields"));
    }

    #[test]
    fn blocks_live_once() {
        assert_eq!(
            error("op,id,size\nalloc,4,1\n\nalloc,4,2\n"),
            "line 4: block 4 is allocated while it is live (allocated on line 2)"
        );
        assert_eq!(
            error("op,id,size\nfree,4,1\n"),
            "line 2: free of block 4, which is not live"
        );
        assert_eq!(
            error("op,id,size\nalloc,4,1\nfree,4,1\nfree_req,4,1\n"),
            "line 4: free_req of block 4, which is not live"
        );
        assert_eq!(
            error("op,id,size\nalloc,4,1\nfree,4,2\n"),
            "line 3: block 4 is freed with size 2, but line 2 allocated it with 1"
        );
    }

    #[test]
    fn pre_comes_first() {
        assert!(error("op,id,size\nalloc,0,1\npre,1,1\n").starts_with("line 3: \"pre\" after"));
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_early() {
        let bytes = vec![0xff; 200_000];
        let failure = Reader::new(&bytes[..]).next().unwrap().unwrap_err();
        assert!(matches!(failure.problem(), Problem::LongLine));
        let failure = Reader::new(&b"\xff\xfe\x00\n"[..])
            .next()
            .unwrap()
            .unwrap_err();
        assert!(matches!(
            failure.problem(),
            Problem::MissingColumn { column: "op", .. }
        ));
    }

    #[test]
    fn nothing_follows_an_error() {
        let mut reader = Reader::new(&b"op,id,size\nfree,0,1\nalloc,0,1\n"[..]);
        assert!(reader.next().unwrap().is_err());
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_read_failure_is_told_with_its_line() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let input = io::BufReader::new((&b"op,id,size\nalloc,0,1\n"[..]).chain(Broken));
        let failure = Reader::new(input).find_map(Result::err).unwrap();
        assert_eq!(
            failure.to_string(),
            "line 3: cannot be read: the disk is gone"
        );
        assert!(failure.source().is_some());
    }
}
