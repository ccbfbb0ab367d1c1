#![forbid(unsafe_code)]
//! Messages for people: to the callback that a program set, otherwise to standard error where
//! `LUMA_LOG` asks for it. Never called with a pool's lock held.

use crate::flag::Raised;
use crate::text::Text;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Something failed that no caller will hear of.
    Error = 1,
    /// Something is not as it should be.
    Warning = 2,
    /// What was chosen, and why.
    Info = 3,
    /// Every call to a backend.
    Debug = 4,
}

impl Level {
    /// Its name, as in `LUMA_LOG`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Receives messages.
pub type Sink = Arc<dyn Fn(Level, &str) + Send + Sync>;

static SINK: Mutex<Option<Sink>> = Mutex::new(None);
/// Whether there is a sink; to find out without the lock.
static HAS_SINK: AtomicBool = AtomicBool::new(false);
/// The least grave level that is wanted, 0 for none; `UNSET` before anybody said.
static CHOSEN: AtomicU8 = AtomicU8::new(UNSET);
const UNSET: u8 = u8::MAX;
/// What standard error gets while nobody has chosen, 0 for nothing.
static DEFAULT: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// Set while this thread is inside a sink: what the sink causes is not logged again.
    static IN_SINK: Cell<bool> = const { Cell::new(false) };
}

/// Chooses which messages are wanted; `None`: none at all.
pub fn set_level(level: Option<Level>) {
    CHOSEN.store(level.map_or(0, |level| level as u8), Ordering::Relaxed);
}

/// The least grave level that goes to standard error where no level was chosen.
pub fn set_default(level: Level) {
    DEFAULT.store(level as u8, Ordering::Relaxed);
}

/// Sets where messages go; `None`: to standard error.
pub fn set_sink(sink: Option<Sink>) {
    let mut slot = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    HAS_SINK.store(sink.is_some(), Ordering::Relaxed);
    let before = std::mem::replace(&mut *slot, sink);
    // What the old sink owns may log when it goes.
    drop(slot);
    drop(before);
}

/// Whether a message of this level would go anywhere. A sink gets information and graver unless
/// a level was chosen; standard error gets nothing unless one was, or [`set_default`] says so.
pub fn enabled(level: Level) -> bool {
    let most = match CHOSEN.load(Ordering::Relaxed) {
        UNSET if HAS_SINK.load(Ordering::Relaxed) => Level::Info as u8,
        UNSET => DEFAULT.load(Ordering::Relaxed),
        chosen => chosen,
    };
    level as u8 <= most
}

/// Sends a message.
pub fn log(level: Level, message: impl FnOnce() -> Text) {
    if !enabled(level) || IN_SINK.get() {
        return;
    }
    // The sink is called without the lock, so that it may set another one.
    let sink = SINK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let message = message();
    let _inside = Raised::new(&IN_SINK);
    match sink {
        Some(sink) => sink(level, &message),
        None => {
            use std::io::Write;
            // A closed standard error must not end the program.
            let _ = writeln!(std::io::stderr(), "luma: {}: {message}", level.name());
        }
    }
}

/// Keeps the sink from changing, for a fork.
pub(crate) fn lock_for_fork() -> std::sync::MutexGuard<'static, Option<Sink>> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_hears_what_was_chosen_and_not_itself() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let inner = heard.clone();
        set_sink(Some(Arc::new(move |level, message: &str| {
            inner.lock().unwrap().push((level, message.to_owned()));
            log(Level::Error, || unreachable!("a sink does not hear itself"));
        })));
        log(Level::Info, || "one".into());
        log(Level::Debug, || "two".into());
        set_level(Some(Level::Error));
        log(Level::Info, || "three".into());
        log(Level::Error, || "four".into());
        set_sink(None);
        set_level(None);
        log(Level::Error, || unreachable!("nobody asked for it"));
        // Other tests of this process may log, too.
        let heard: Vec<_> = heard
            .lock()
            .unwrap()
            .iter()
            .map(|(_, text)| text.clone())
            .collect();
        assert!(heard.contains(&"one".into()) && heard.contains(&"four".into()));
        assert!(!heard.contains(&"two".into()) && !heard.contains(&"three".into()));
    }
}
