//! Libraries that a program opens: plug-ins, Python's modules, those opened with `RTLD_DEEPBIND`.

use crate::support::{
    Run, compiled, linked_with_driver, package, python_clients, shared, toolkit, tools,
};
use std::path::PathBuf;

fn host(plug_in: PathBuf, how: &str) -> Run {
    Run::new(compiled("host.c", &[]))
        .arg(plug_in)
        .arg(how)
        .with_driver()
        .hooked()
}

// pitfall 11
#[test]
fn a_plug_in_outside_the_programs_scope_is_served() {
    if !tools::available(&["cc"]) {
        return;
    }
    let mut flags = vec!["-DLINKED".to_owned()];
    flags.extend(linked_with_driver());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert_eq!(host(shared("plug_in.c", &flags), "local").run(), "");
    assert_eq!(host(shared("plug_in.c", &[]), "local").run(), "luma\n");
}

// pitfall 12
#[test]
fn deep_binding_passes_by_unless_it_is_left_out() {
    if !tools::available(&["cc"]) {
        return;
    }
    let deep = || host(shared("plug_in.c", &[]), "deep");
    assert_eq!(deep().run(), "driver\n");
    let set = |value: &str| deep().env("LUMA_INTERPOSE_DEEPBIND", value);
    assert_eq!(set("keep").run(), "driver\n");
    assert_eq!(set("strip").run(), "luma\n");
    assert_eq!(set("strip").env("LUMA_INTERPOSE", "off").run(), "driver\n");
}

// pitfall 11
#[test]
fn ctypes_is_served() {
    if tools::available(&["python3"]) {
        let script = package().join("tests/programs/look_up.py");
        let run = || {
            Run::new("python3")
                .arg("-B")
                .arg(&script)
                .with_driver()
                .hooked()
        };
        assert_eq!(run().run(), "luma\n");
        assert_eq!(run().env("LUMA_INTERPOSE", "off").run(), "driver\n");
    }
}

// pitfall 11
#[test]
fn a_python_module_is_served() {
    let Some(python) = python_clients() else {
        return;
    };
    let Some(toolkit) = toolkit() else {
        return;
    };
    let run = Run::new(python)
        .args(["-W", "ignore", "-B"])
        .arg(package().join("../fakecuda/clients/python/use_bindings.py"))
        .with_driver()
        .search(&toolkit.join("lib"))
        .env("CUDA_HOME", toolkit)
        .hooked();
    let written = run.run();
    assert_eq!(written.lines().last(), Some("cuda-bindings: ok"));
}
