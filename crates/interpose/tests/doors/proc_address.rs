//! `cuGetProcAddress`.

use crate::support::{Run, compiled, tools};

/// A case of `proc_address.c` under the library, on a double with this environment.
fn passes(name: &str, env: &[(&str, &str)]) {
    if !tools::available(&["cc"]) {
        return;
    }
    let run = Run::new(compiled("proc_address.c", &[])).arg(name);
    let run = env
        .iter()
        .fold(run, |run, (name, value)| run.env(name, *value));
    assert_eq!(run.with_driver().hooked().run(), "");
}

// pitfall 6
// pitfall 9
#[test]
fn both_forms_give_hooks() {
    passes("both_forms", &[]);
}

// pitfall 6
#[test]
fn it_gives_itself() {
    passes("itself", &[]);
}

// pitfall 10
#[test]
fn an_old_driver_is_an_old_driver() {
    passes("old_driver", &[("FAKECUDA_VERSION", "11020")]);
}

// pitfall 10
#[test]
fn a_missing_function_is_missing() {
    passes("missing", &[("FAKECUDA_MISSING", "cuMemAllocAsync")]);
}

// pitfall 17
#[test]
fn a_failed_look_up_fails() {
    passes(
        "failing",
        &[("FAKECUDA_FAIL", "cuGetProcAddress_v2:0:999:1")],
    );
}

// pitfall 17
#[test]
fn bad_arguments_are_the_drivers_to_refuse() {
    passes("bad_arguments", &[]);
}
