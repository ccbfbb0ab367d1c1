//! A search that people can watch and stop.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::summary::show_time;

/// A span of time such as `10s`, `500ms` or `2m`; a number alone is seconds.
pub fn parse_time(text: &str) -> Result<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(anyhow!("not a time, such as 10s, 500ms or 2m")),
    };
    (number.parse::<f64>().ok())
        .and_then(|number| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or_else(|| anyhow!("not a time, such as 10s, 500ms or 2m"))
}

/// A bar that fills with the time limit, on a terminal only.
pub fn bar(limit: Duration) -> ProgressBar {
    const WIDTH: usize = 30;
    let part = move |state: &ProgressState, to: &mut dyn fmt::Write| {
        let part = state.elapsed().as_secs_f64() / limit.as_secs_f64().max(1e-9);
        let full = ((part * WIDTH as f64) as usize).min(WIDTH);
        let _ = write!(to, "{:█<full$}{:░<rest$}", "", "", rest = WIDTH - full);
    };
    let template = format!("{{part}} {{elapsed}}/{}  {{msg}}", show_time(limit));
    let style = ProgressStyle::with_template(&template).expect("the template is valid");
    let bar = ProgressBar::new_spinner().with_style(style.with_key("part", part));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes the first Ctrl-C stop the search, which then gives the best that it has; the second ends
/// the program.
pub fn stop_on_interrupt() {
    extern "C" fn interrupt(signal: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
        // SAFETY: `signal` may be called in a handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let handler: extern "C" fn(libc::c_int) = interrupt;
    // SAFETY: the handler does only what a handler may.
    unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) };
}

/// Whether Ctrl-C was pressed.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("10s", 10.0), ("500ms", 0.5), ("2m", 120.0), ("1.5", 1.5)] {
            let time = parse_time(text).unwrap();
            assert!((time.as_secs_f64() - seconds).abs() < 1e-9, "{text}");
        }
        for text in ["", "s", "10 parsecs", "-1s", "1e9999h", "1.2.3s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
