//! The content of a report.

use super::end::Room;
use super::json::Writer;
use super::notes::{self, Notes};
use super::process;
use crate::switch::{self, Mode};
use luma::ffi::luma_stats_t;
use luma::pool::{Snapshot, defaults};
use std::ffi::c_int;

/// How often, a millisecond apart, a pool is asked that is in use.
const MOST_LOOKS: u32 = 20;

/// Writes it. Whether all was written.
pub fn write(fd: c_int, room: &mut Room) -> bool {
    let Room { buffer, text } = room;
    let mut json = Writer::new(fd, buffer);
    json.object(|json| {
        json.name("luma_version")
            .string(env!("CARGO_PKG_VERSION").as_bytes());
        json.name("pid").number(process::number().into());
        json.name("parent").number(process::parent().into());
        json.name("executable").string(process::executable(text));
        let (arguments, complete) = process::command_line(text);
        json.name("arguments").array(|json| {
            let arguments = arguments.strip_suffix(b"\0").unwrap_or(arguments);
            for argument in arguments.split(|&byte| byte == 0) {
                json.string(argument);
            }
        });
        json.name("arguments_complete").truth(complete);
        json.name("mode").string(match switch::mode() {
            Mode::On => b"on",
            Mode::Off => b"off",
            Mode::Wait => b"wait",
        });
        write_driver(json);
        write_pools(json);
    });
    json.finish()
}

fn write_driver(json: &mut Writer<'_>) {
    let Notes {
        reached,
        looked_up,
        driver_asked,
        ordered_allocs,
        ordered_frees,
    } = notes::notes();
    json.name("driver");
    let mut found = false;
    process::driver(&mut |file| {
        found = true;
        json.string(file);
    });
    if !found {
        json.null();
    }
    json.name("driver_asked").truth(driver_asked);
    json.name("looked_up").truth(looked_up);
    json.name("reached").truth(reached);
    json.name("ordered_alloc_calls").number(ordered_allocs);
    json.name("ordered_free_calls").number(ordered_frees);
    json.name("deepbind").array(|json| {
        for library in notes::deepbinds() {
            json.string(library);
        }
    });
}

fn write_pools(json: &mut Writer<'_>) {
    json.name("pools").array(|json| {
        for described in defaults::all() {
            json.object(|json| {
                json.name("device").number(described.device.max(0) as u64);
                json.name("primary").truth(described.is_primary);
                match patiently(|| described.pool.peek()) {
                    Some(snapshot) => write_figures(json, &snapshot),
                    None => json.name("stats").null(),
                }
            });
        }
    });
}

fn write_figures(json: &mut Writer<'_>, snapshot: &Snapshot) {
    let Snapshot {
        backend,
        stats,
        time,
    } = snapshot;
    json.name("backend").string(backend.as_bytes());
    json.name("grants").number(time.grants);
    json.name("grant_ns").number(time.grant_ns);
    json.name("returns").number(time.returns);
    json.name("return_ns").number(time.return_ns);
    json.name("stats")
        .object(|json| write_stats(json, &luma_stats_t::from(stats)));
}

/// The fields under their names in C. One that is not listed here does not compile.
fn write_stats(json: &mut Writer<'_>, stats: &luma_stats_t) {
    macro_rules! fields {
        ($($field:ident),* $(,)?) => {
            let luma_stats_t { struct_size: _, $($field),* } = *stats;
            $(json.name(stringify!($field)).number($field);)*
        };
    }
    fields!(
        allocated_bytes,
        reserved_bytes,
        peak_bytes,
        live_blocks,
        free_blocks,
        segments,
        cuda_malloc_calls,
        cuda_free_calls,
        requested_bytes,
        peak_reserved_bytes,
        largest_free_block,
        memory_limit,
        alloc_calls,
        free_calls,
        alloc_retries,
        out_of_memory_count,
        pending_bytes,
        handler_calls,
        event_records,
        event_queries,
        stream_waits,
        oom_waits,
        oom_wait_ns,
    );
}

/// Asks a few times: a thread may be in the middle of a call. One that a signal has interrupted will not end it.
fn patiently<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    (0..MOST_LOOKS).find_map(|look| {
        if look > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        ask()
    })
}
