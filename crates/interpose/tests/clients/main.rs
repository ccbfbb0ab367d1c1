//! Programs that never heard of luma run under it as they run without it: those of the driver double's own
//! tests, unchanged, on the double as it is by itself, and strict with queues that run late. Without luma they
//! run there (`crates/fakecuda/tests`).

#[path = "../../../fakecuda/tests/support/mod.rs"]
mod support;

mod differences;
mod others;
#[path = "../../../fakecuda/tests/runtime/program.rs"]
mod program;
mod runtime;
mod suite;

use std::sync::OnceLock;
use support::tools;

/// The library, for `LD_PRELOAD`.
fn library() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = tools::built_packages(&["luma-interpose"]).join("libluma_interpose.so");
        let path = library.to_str().expect("the folder has a plain name");
        path.to_owned()
    })
}
