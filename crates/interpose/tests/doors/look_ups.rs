//! `dlsym` and `dlvsym`.

use crate::support::{Run, built, compiled, shared};
use crate::support::{package, tools};

/// A case of `look_ups.c` under the library, with the double in reach.
fn case(name: &str) -> Run {
    Run::new(compiled("look_ups.c", &[]))
        .arg(name)
        .with_driver()
        .hooked()
}

fn passes(run: &Run) {
    assert_eq!(run.run(), "");
}

// pitfall 2
#[test]
fn the_drivers_handle_gives_hooks_and_its_own_functions() {
    if tools::available(&["cc"]) {
        passes(&case("hooks_of_the_driver"));
    }
}

// pitfall 2
#[test]
fn a_library_without_the_name_does_not_get_it() {
    if tools::available(&["cc"]) {
        passes(&case("foreign_handles"));
    }
}

// pitfall 2
#[test]
fn without_a_driver_in_scope_there_is_none_by_our_names() {
    if tools::available(&["cc"]) {
        passes(&case("no_driver_in_scope"));
        passes(&case("driver_in_scope"));
    }
}

#[test]
fn versions_are_looked_at() {
    if !tools::available(&["cc"]) {
        return;
    }
    let map = package().join("tests/programs/versioned.map");
    let script = format!("-Wl,--version-script={}", map.display());
    let versioned = shared("versioned.c", &[&script]);
    passes(&case("hooks_by_version").env("VERSIONED", versioned));
}

// pitfall 3
#[test]
fn eight_threads_look_up_at_once() {
    if tools::available(&["cc"]) {
        passes(&case("threads"));
    }
}

// pitfall 3
#[test]
fn next_is_what_is_behind_the_caller() {
    if tools::available(&["cc"]) {
        passes(&case("next_of_the_caller").preload(shared("behind.c", &[])));
    }
}

// pitfall 4
#[test]
fn the_text_of_a_miss_stays() {
    if tools::available(&["cc"]) {
        passes(&case("error_text"));
    }
}

// pitfall 4
#[test]
fn look_ups_allocate_nothing() {
    if tools::available(&["cc"]) {
        passes(
            &Run::new(compiled("allocations.c", &["-fno-builtin"]))
                .with_driver()
                .hooked(),
        );
    }
}

// pitfall 5
#[test]
fn similar_names_are_left_alone() {
    if tools::available(&["cc"]) {
        passes(&case("similar_names").env("OTHER", shared("other_names.c", &[])));
    }
}

// pitfall 8
#[test]
fn names_of_32_bits_are_the_drivers() {
    if tools::available(&["cc"]) {
        passes(&case("names_of_32_bits"));
    }
}

#[test]
fn another_copy_of_luma_gives_way() {
    if tools::available(&["cc"]) {
        passes(&case("one_luma").env("LUMA", built().join("libluma.so")));
    }
}

// pitfall 48
#[test]
fn off_leaves_everything_alone() {
    if !tools::available(&["cc"]) {
        return;
    }
    for value in ["off", "0"] {
        passes(&case("off").env("LUMA_INTERPOSE", value));
    }
    for value in ["", "on", "1", "wait", "OFF", "no"] {
        passes(&case("hooks_of_the_driver").env("LUMA_INTERPOSE", value));
    }
}

/// A program under the library, on a driver of its own.
fn on_driver(program: &str, driver: &str) {
    if !tools::available(&["cc"]) {
        return;
    }
    let folder = tools::Folder::new("driver");
    let driver = shared(driver, &["-Wl,-soname,libcuda.so.1"]);
    std::fs::copy(driver, folder.path().join("libcuda.so.1")).expect("a library can be copied");
    passes(
        &Run::new(compiled(program, &[]))
            .search(folder.path())
            .hooked(),
    );
}

// pitfall 10
#[test]
fn what_the_driver_lacks_is_missing() {
    on_driver("on_small_driver.c", "small_driver.c");
}

// pitfall 15
#[test]
fn a_hook_never_takes_itself_for_the_drivers() {
    on_driver("on_open_driver.c", "open_driver.c");
}

// pitfall 13
#[test]
fn with_no_driver_at_all_a_hook_says_so() {
    if tools::available(&["cc"]) {
        passes(&Run::new(compiled("weak.c", &["-Wl,-z,lazy"])).hooked());
    }
}
