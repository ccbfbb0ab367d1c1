#![forbid(unsafe_code)]
//! The record of every call that `LUMA_TRACE` asks for.
//!
//! Calls are recorded under the lock of their pool, so that the record has them in the order in
//! which they happened; a full buffer is written there, too.

use crate::config::environment;
use crate::log::{self, Level};
use crate::trace::Writer;
use std::fs::File;
use std::sync::{Mutex, OnceLock, PoisonError};

struct Recorder {
    /// `None` in a forked child, whose calls are not the parent's.
    writer: Option<Writer>,
    /// Whether the process is exiting, so that each record is written at once.
    exiting: bool,
}

static RECORDER: OnceLock<Option<Mutex<Recorder>>> = OnceLock::new();

/// The file's path with `%p` replaced by the process's number.
fn path_for_process(pattern: &str) -> String {
    pattern.replace("%p", &std::process::id().to_string())
}

/// Whether calls are recorded. The first call opens the file.
pub fn is_on() -> bool {
    let Some(pattern) = environment().trace.as_deref() else {
        return false;
    };
    // Told after the cell is set: whoever hears of it may call luma again.
    let mut problem = None;
    let recorder = RECORDER.get_or_init(|| {
        let path = path_for_process(pattern);
        match File::create(&path) {
            Ok(file) => {
                let origin = format!("recorded by luma {}", env!("CARGO_PKG_VERSION"));
                Some(Mutex::new(Recorder {
                    writer: Some(Writer::new(Box::new(file), &origin)),
                    exiting: false,
                }))
            }
            Err(error) => {
                problem = Some(format!("LUMA_TRACE={path}: {error}; nothing is recorded"));
                None
            }
        }
    });
    if let Some(problem) = problem {
        log::log(Level::Error, || problem.into());
    }
    recorder.is_some()
}

/// Whether a file is open for the record.
pub fn is_recording() -> bool {
    matches!(RECORDER.get(), Some(Some(_)))
}

fn with_recorder(action: impl FnOnce(&mut Recorder)) {
    if let Some(recorder) = RECORDER.get().and_then(Option::as_ref) {
        action(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn with_writer(action: impl FnOnce(&mut Writer)) {
    with_recorder(|recorder| {
        if let Some(writer) = &mut recorder.writer {
            action(writer);
            if recorder.exiting {
                // Nobody is left to be told of a failure.
                let _ = writer.flush();
            }
        }
    });
}

/// Records an allocation.
pub(super) fn allocated(pool: u64, addr: u64, requested: u64) {
    with_writer(|writer| writer.alloc(pool, addr, requested, 0));
}

/// Records a request that was refused.
pub(super) fn refused(requested: u64) {
    with_writer(|writer| writer.record_failed_alloc(requested, 0));
}

/// Records a free.
pub(super) fn freed(pool: u64, addr: u64) {
    with_writer(|writer| writer.free(pool, addr, 0));
}

/// The process begins to exit: writes what is buffered, and each later record at once. Gives back
/// why the record is incomplete, if it is.
pub fn begin_exit() -> Option<String> {
    let mut problem = None;
    with_recorder(|recorder| {
        recorder.exiting = true;
        if let Some(writer) = &mut recorder.writer {
            problem = writer.flush().err().map(|error| error.to_string());
        }
    });
    problem
}

/// Keeps the record from changing, for a fork.
pub(super) fn lock_for_fork() -> Option<ForkGuard> {
    RECORDER
        .get()
        .and_then(Option::as_ref)
        .map(|recorder| ForkGuard(recorder.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Holds the record still while the process forks.
pub(crate) struct ForkGuard(std::sync::MutexGuard<'static, Recorder>);

impl ForkGuard {
    /// In the child: the record is the parent's. What it had buffered is the parent's to write.
    pub(super) fn forget_in_child(&mut self) {
        if let Some(writer) = self.0.writer.take() {
            std::mem::forget(writer);
        }
    }
}
