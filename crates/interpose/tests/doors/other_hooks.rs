//! Other libraries that are preloaded.

use crate::support::{Run, compiled, library, linked_with_driver, shared, tools};
use std::path::PathBuf;

/// `others.c` under these libraries; gives what it wrote.
fn under(libraries: &[PathBuf]) -> String {
    libraries
        .iter()
        .fold(
            Run::new(compiled("others.c", &[])).with_driver(),
            Run::preload,
        )
        .run()
}

// pitfall 3
#[test]
fn a_wrapper_finds_what_it_wraps() {
    if tools::available(&["cc"]) {
        let wrapper = || shared("wrap_puts.c", &[]);
        assert_eq!(under(&[library(), wrapper()]), "wrapped text\n");
        assert_eq!(under(&[wrapper(), library()]), "wrapped text\n");
    }
}

/// It hands look-ups on by a jump, as this library does: at this level the compiler makes one.
fn another_dlsym() -> PathBuf {
    shared("wrap_dlsym.c", &["-O2"])
}

// pitfall 15
#[test]
fn another_dlsym_works_on_either_side() {
    if tools::available(&["cc"]) {
        assert_eq!(under(&[library(), another_dlsym()]), "text\n");
        assert_eq!(under(&[another_dlsym(), library()]), "text\n");
    }
}

// pitfall 3
// pitfall 15
#[test]
fn several_others_work_at_once() {
    if tools::available(&["cc"]) {
        let all = [shared("wrap_puts.c", &[]), another_dlsym(), library()];
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            assert_eq!(under(&order.map(|at| all[at].clone())), "wrapped text\n");
        }
    }
}

// pitfall 15
#[test]
fn a_wrapper_of_the_drivers_symbol_works_on_either_side() {
    if !tools::available(&["cc"]) {
        return;
    }
    let flags = linked_with_driver();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let run = |place: &str| {
        Run::new(compiled("wrapped_alloc.c", &flags))
            .arg(place)
            .with_driver()
    };
    let wrapper = shared("wrap_alloc.c", &[]);
    assert_eq!(run("first").preload(&wrapper).hooked().run(), "");
    assert_eq!(run("behind").hooked().preload(&wrapper).run(), "");
}
