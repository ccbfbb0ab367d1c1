#![forbid(unsafe_code)]
//! Recording a trace while the program runs.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Instant;

use super::format::{HEADER, Op};

/// Records are kept in memory up to this many bytes, then written.
const BUFFER_BYTES: usize = 64 * 1024;
/// No record is longer: the longest word, five numbers of at most 20 digits, separators.
const MAX_RECORD_BYTES: usize = 128;

/// A recorded block that is live.
struct Block {
    id: u64,
    size: u64,
}

/// Records allocations and frees as a trace.
///
/// The trace is always one that [`super::Reader`] takes: blocks get running numbers, a free of an
/// address that was never recorded is left out, and an address that is handed out again while its
/// block is still recorded as live frees that block first. Once buffer and table have reached
/// their size, a record allocates nothing. A failed write ends the recording and is told by
/// [`Writer::flush`]; it never disturbs the program.
///
/// Dropping the writer flushes it.
pub struct Writer {
    out: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    /// By pool and address: a block of one pool may be the memory of another.
    live: HashMap<(u64, u64), Block>,
    next_id: u64,
    start: Instant,
    failure: Option<io::Error>,
}

impl Writer {
    /// Begins a trace with `origin_comment` (any number of lines) and the header line.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, origin_comment: &str) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + MAX_RECORD_BYTES);
        for line in origin_comment.lines() {
            buffer.extend_from_slice(b"# ");
            buffer.extend_from_slice(line.as_bytes());
            buffer.push(b'\n');
        }
        buffer.extend_from_slice(HEADER.as_bytes());
        buffer.push(b'\n');
        Self {
            out,
            buffer,
            live: HashMap::new(),
            next_id: 0,
            start: Instant::now(),
            failure: None,
        }
    }

    /// Records that a pool handed out `requested` bytes at `addr`. Pools have numbers of the
    /// caller's choice.
    pub fn alloc(&mut self, pool: u64, addr: u64, requested: u64, stream: u64) {
        self.free(pool, addr, stream);
        if self.failure.is_some() {
            return;
        }
        if self.live.try_reserve(1).is_err() {
            self.failure = Some(io::ErrorKind::OutOfMemory.into());
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.live.insert(
            (pool, addr),
            Block {
                id,
                size: requested,
            },
        );
        self.record(Op::Alloc, Some(id), requested, stream, addr);
    }

    /// Records that the block of a pool at `addr` was given back.
    pub fn free(&mut self, pool: u64, addr: u64, stream: u64) {
        if let Some(Block { id, size }) = self.live.remove(&(pool, addr)) {
            self.record(Op::Free, Some(id), size, stream, addr);
        }
    }

    /// Records that `requested` bytes were refused for want of memory.
    pub fn record_failed_alloc(&mut self, requested: u64, stream: u64) {
        self.record(Op::AllocFailed, None, requested, stream, 0);
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// The first failure since the recording began. Nothing is recorded after it, and every later
    /// call tells it again.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            let result = self
                .out
                .write_all(&self.buffer)
                .and_then(|()| self.out.flush());
            self.failure = result.err();
            self.buffer.clear();
        }
        match &self.failure {
            None => Ok(()),
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    fn record(&mut self, op: Op, id: Option<u64>, size: u64, stream: u64, addr: u64) {
        if self.failure.is_some() {
            return;
        }
        let time_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let buffer = &mut self.buffer;
        buffer.extend_from_slice(op.name().as_bytes());
        buffer.push(b',');
        match id {
            Some(id) => push_number(buffer, id),
            None => buffer.extend_from_slice(b"-1"),
        }
        for number in [size, stream, addr, time_us] {
            buffer.push(b',');
            push_number(buffer, number);
        }
        buffer.push(b'\n');
        if buffer.len() >= BUFFER_BYTES {
            // The failure is kept and told by the next call of `flush` that somebody looks at.
            let _ = self.flush();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nobody is left to tell; a caller who cares has called `flush`.
        let _ = self.flush();
    }
}

fn push_number(buffer: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::super::{Event, Reader};
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A file in memory that the test can look into while the writer has it.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        fn events(&self) -> Vec<Event> {
            Reader::new(self.text().as_bytes())
                .collect::<Result<_, _>>()
                .unwrap()
        }
    }

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(comment: &str) -> (Writer, Shared) {
        let file = Shared::default();
        (Writer::new(Box::new(file.clone()), comment), file)
    }

    fn shape(events: &[Event]) -> Vec<(Op, u64, u64, u64)> {
        events
            .iter()
            .map(|event| (event.op, event.id, event.size, event.stream))
            .collect()
    }

    #[test]
    fn what_is_recorded_is_read_back() {
        let (mut writer, file) = writer("origin: a test\nof two lines");
        writer.alloc(0, 0x1000, 100, 0);
        writer.alloc(0, 0x2000, u64::MAX, 7);
        writer.free(0, 0x1000, 0);
        writer.record_failed_alloc(1 << 40, 3);
        writer.alloc(0, 0x1000, 300, 0);
        writer.free(0, 0x2000, 7);
        writer.flush().unwrap();

        assert!(
            file.text()
                .starts_with("# origin: a test\n# of two lines\nop,id,size,")
        );
        let events = file.events();
        assert_eq!(
            shape(&events),
            [
                (Op::Alloc, 0, 100, 0),
                (Op::Alloc, 1, u64::MAX, 7),
                (Op::Free, 0, 100, 0),
                (Op::AllocFailed, 0, 1 << 40, 3),
                (Op::Alloc, 2, 300, 0),
                (Op::Free, 1, u64::MAX, 7),
            ]
        );
        assert!(events.is_sorted_by_key(|event| event.time_us));
    }

    #[test]
    fn addresses_are_written() {
        let (mut writer, file) = writer("");
        writer.alloc(0, 4096, 1, 2);
        drop(writer);
        let text = file.text();
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .starts_with("alloc,0,1,2,4096,"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_address_is_not_freed() {
        let (mut writer, file) = writer("");
        writer.free(0, 0x1000, 0);
        writer.alloc(0, 0x1000, 5, 0);
        writer.free(0, 0x1000, 0);
        writer.free(0, 0x1000, 0);
        drop(writer);
        assert_eq!(
            shape(&file.events()),
            [(Op::Alloc, 0, 5, 0), (Op::Free, 0, 5, 0)]
        );
    }

    #[test]
    fn an_address_handed_out_twice_frees_its_first_block() {
        let (mut writer, file) = writer("");
        writer.alloc(0, 0x1000, 5, 0);
        writer.alloc(0, 0x1000, 6, 0);
        drop(writer);
        assert_eq!(
            shape(&file.events()),
            [
                (Op::Alloc, 0, 5, 0),
                (Op::Free, 0, 5, 0),
                (Op::Alloc, 1, 6, 0)
            ]
        );
    }

    #[test]
    fn records_reach_the_file_in_whole_lines_without_a_flush() {
        let (mut writer, file) = writer("");
        for _ in 0..10_000 {
            writer.alloc(0, u64::MAX, u64::MAX, u64::MAX);
            writer.free(0, u64::MAX, u64::MAX);
        }
        let text = file.text();
        assert!(text.len() >= BUFFER_BYTES && text.ends_with('\n'));
        assert!(file.events().len() < 20_000);
        drop(writer);
        assert_eq!(file.events().len(), 20_000);
    }

    #[test]
    fn steady_recording_keeps_its_buffer() {
        let (mut writer, _file) = writer("");
        let capacity = writer.buffer.capacity();
        for address in 0..100_000 {
            writer.alloc(0, u64::MAX - address % 100, u64::MAX, u64::MAX);
        }
        assert_eq!(writer.buffer.capacity(), capacity);
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let powers = (0..64).map(|bit| 1 << bit);
        for number in powers.chain([0, 9, 10, 99, 100, u64::MAX]) {
            let mut buffer = Vec::new();
            push_number(&mut buffer, number);
            assert_eq!(buffer, number.to_string().into_bytes());
        }
    }

    #[test]
    fn a_failed_write_ends_the_recording_and_is_told() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    "the disk is full",
                ))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = Writer::new(Box::new(Full), "");
        for address in 0..10_000 {
            writer.alloc(0, address, 1, 0);
        }
        assert!(writer.buffer.is_empty());
        for _ in 0..2 {
            let error = writer.flush().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(error.to_string(), "the disk is full");
        }
    }
}
