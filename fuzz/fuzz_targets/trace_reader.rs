//! Any bytes as a trace: events or one error at a line that is there, never a panic. What was read
//! is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use luma::trace::{Event, HEADER, Reader};

fn as_text(events: &[Event]) -> String {
    let mut text = String::from(HEADER);
    text.push('\n');
    for event in events {
        let columns = HEADER.split(',').map(|column| match column {
            "op" => event.op.name().to_owned(),
            "id" => event.id.to_string(),
            "size" => event.size.to_string(),
            "stream" => event.stream.to_string(),
            "t_us" => event.time_us.to_string(),
            "addr_off" => "0".to_owned(),
            other => panic!("a column that no event has: {other}"),
        });
        text += &columns.collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
    let mut events: Vec<Event> = Vec::new();
    let mut reader = Reader::new(bytes);
    for result in reader.by_ref() {
        match result {
            Ok(event) => {
                let last = events.last().map_or(0, |event| event.line);
                assert!(last < event.line && event.line <= lines);
                events.push(event);
            }
            Err(error) => assert!((1..=lines + 1).contains(&error.line()), "{error}"),
        }
    }
    assert!(reader.next().is_none());

    let text = as_text(&events);
    let again = Reader::new(text.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .expect("what was read is a trace");
    assert_eq!(again.len(), events.len());
    for (event, mut other) in events.iter().zip(again) {
        other.line = event.line;
        assert_eq!(*event, other);
    }
});
