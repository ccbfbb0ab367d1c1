//! Failures, delays and counts that a test asks for. Each test uses functions of its own, since all
//! run in one process.

use crate::library::{driver, initialize};
use crate::support;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::Command;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const OK: c_int = 0;
const INVALID_VALUE: c_int = 1;

fn calls(name: &str) -> u64 {
    let name = CString::new(name).expect("a name has no zero");
    // SAFETY: the type is that of fakecuda.h.
    unsafe {
        driver().function::<unsafe extern "C" fn(*const c_char) -> u64>("fakecuda_calls")(
            name.as_ptr(),
        )
    }
}

fn failed() -> u64 {
    // SAFETY: as above.
    unsafe { driver().function::<unsafe extern "C" fn() -> u64>("fakecuda_failed")() }
}

fn fail(name: &str, skip: u64, code: u32, count: u64) -> c_int {
    type Fail = unsafe extern "C" fn(*const c_char, u64, u32, u64) -> c_int;
    let name = CString::new(name).expect("a name has no zero");
    // SAFETY: as above.
    unsafe { driver().function::<Fail>("fakecuda_fail")(name.as_ptr(), skip, code, count) }
}

fn set_latency(name: &str, nanoseconds: u64) -> c_int {
    type Set = unsafe extern "C" fn(*const c_char, u64) -> c_int;
    let name = CString::new(name).expect("a name has no zero");
    // SAFETY: as above.
    unsafe { driver().function::<Set>("fakecuda_set_latency")(name.as_ptr(), nanoseconds) }
}

/// Calls a function that takes a pointer to a number and nothing else.
fn ask(name: &str) -> u32 {
    let mut number = 0;
    // SAFETY: the functions that are named below are such ones.
    unsafe { driver().function::<unsafe extern "C" fn(*mut c_int) -> u32>(name)(&mut number) }
}

#[test]
fn a_wish_skips_fails_and_ends() {
    initialize();
    let (before, counted) = (failed(), calls("cuDeviceGetCount"));
    assert_eq!(fail("cuDeviceGetCount", 2, 999, 2), OK);
    let answers: Vec<u32> = (0..6).map(|_| ask("cuDeviceGetCount")).collect();
    assert_eq!(answers, [0, 0, 999, 999, 0, 0]);
    assert_eq!(failed() - before, 2);
    assert_eq!(calls("cuDeviceGetCount") - counted, 6);
}

#[test]
fn the_oldest_wish_that_is_due_answers() {
    assert_eq!(fail("cuDriverGetVersion", 1, 802, 1), OK);
    assert_eq!(fail("cuDriverGetVersion", 0, 803, 2), OK);
    let answers: Vec<u32> = (0..4).map(|_| ask("cuDriverGetVersion")).collect();
    assert_eq!(answers, [803, 802, 803, 0]);
}

#[test]
fn a_wish_needs_a_function() {
    for name in ["", "cuNoSuchFunction", "fakecuda_fail"] {
        assert_eq!(fail(name, 0, 1, 1), INVALID_VALUE, "{name}");
        assert_eq!(set_latency(name, 1), INVALID_VALUE, "{name}");
        assert_eq!(calls(name), 0, "{name}");
    }
}

/// A per-thread form fails with the function that it is a form of, whichever was named.
#[test]
fn per_thread_forms_are_meant_too() {
    type Query = unsafe extern "C" fn(*mut std::ffi::c_void) -> u32;
    initialize();
    // SAFETY: the types are those of cuda.h.
    let (own, legacy) = unsafe {
        (
            driver().function::<Query>("cuStreamQuery_ptsz"),
            driver().function::<Query>("cuStreamQuery"),
        )
    };
    let (both, one) = (calls("cuStreamQuery"), calls("cuStreamQuery_ptsz"));
    for named in ["cuStreamQuery", "cuStreamQuery_ptsz"] {
        assert_eq!(fail(named, 0, 46, 2), OK);
        // SAFETY: the null stream is always there.
        let answers = unsafe { (own(std::ptr::null_mut()), legacy(std::ptr::null_mut())) };
        assert_eq!(answers, (46, 46), "{named}");
    }
    assert_eq!(calls("cuStreamQuery") - both, 4);
    assert_eq!(calls("cuStreamQuery_ptsz") - one, 2);
}

#[test]
fn a_stand_in_has_no_more_parameters_than_a_kernel() {
    type StandIn = extern "C" fn(*const c_void, *mut c_void);
    type Register = unsafe extern "C" fn(
        *const c_char,
        Option<StandIn>,
        *mut c_void,
        usize,
        *const usize,
    ) -> c_int;
    extern "C" fn nothing(_: *const c_void, _: *mut c_void) {}
    let register = |name: &CStr, sizes: &[usize]| {
        let (count, sizes) = (sizes.len(), sizes.as_ptr());
        // SAFETY: the type is that of fakecuda.h.
        unsafe {
            let register: Register = driver().function("fakecuda_register_kernel");
            register(name.as_ptr(), Some(nothing), null_mut(), count, sizes)
        }
    };
    assert_eq!(register(c"a_kernel", &[8, 32_756]), OK);
    assert_eq!(register(c"a_kernel", &[8, 32_757]), INVALID_VALUE);
    assert_eq!(register(c"a_kernel", &[usize::MAX, 1]), INVALID_VALUE);
    assert_eq!(register(c"", &[8]), INVALID_VALUE);
}

#[test]
fn a_call_takes_as_long_as_was_wished() {
    initialize();
    let took = || {
        let begin = Instant::now();
        ask("cuCtxGetFlags");
        begin.elapsed()
    };
    let wished = Duration::from_millis(50);
    assert_eq!(set_latency("cuCtxGetFlags", wished.as_nanos() as u64), OK);
    assert!(took() >= wished);
    assert_eq!(set_latency("cuCtxGetFlags", 0), OK);
    // A machine may be slow, but not in every one of many calls.
    assert!((0..100).any(|_| took() < wished));
}

#[test]
#[ignore = "run by the_environment_is_heard, with the variables that it needs"]
fn with_an_environment() {
    initialize();
    let answers: Vec<u32> = (0..3).map(|_| ask("cuDeviceGetCount")).collect();
    assert_eq!(answers, [0, 2, 0]);
    assert_eq!(ask("cuCtxGetFlags"), 801);
    assert_eq!(failed(), 2);
    let mut count = 0;
    // SAFETY: the type is that of cuda.h.
    unsafe {
        driver().function::<unsafe extern "C" fn(*mut c_int) -> u32>("cuDeviceGetCount")(&mut count)
    };
    assert_eq!(count, 3);
    // SAFETY: the type is that of fakecuda.h.
    let capacity =
        unsafe { driver().function::<unsafe extern "C" fn(c_int) -> u64>("fakecuda_capacity")(2) };
    assert_eq!(capacity, 96 << 20);
}

#[test]
fn the_environment_is_heard() {
    let test = std::env::current_exe().expect("a test knows its own path");
    let output = support::succeed(
        Command::new(test)
            .args(["control::with_an_environment", "--exact", "--ignored"])
            .env("FAKECUDA_DEVICES", "3")
            .env("FAKECUDA_MEM", "96M")
            .env("FAKECUDA_FAIL", "cuDeviceGetCount:1:2:1,cuNoSuchFunction")
            .env("FAKECUDA_UNSUPPORTED", "cuCtxGetFlags")
            .env("FAKECUDA_STRICT", "1"),
    );
    assert!(output.contains("1 passed"), "{output}");
}

/// What `cuInit` and, after it, `cuDeviceGetCount` give, and how many devices there are.
fn start() -> (u32, u32, c_int) {
    let mut count = -1;
    // SAFETY: the types are those of cuda.h.
    unsafe {
        let init = driver().function::<unsafe extern "C" fn(u32) -> u32>("cuInit")(0);
        let get: unsafe extern "C" fn(*mut c_int) -> u32 = driver().function("cuDeviceGetCount");
        (init, get(&mut count), count)
    }
}

#[test]
#[ignore = "run by machines_without_a_device_say_so, with the variables that it needs"]
fn on_another_machine() {
    let wanted = std::env::var("WANTED").expect("what should come");
    assert_eq!(format!("{:?}", start()), wanted);
}

#[test]
fn machines_without_a_device_say_so() {
    // NO_DEVICE, NOT_INITIALIZED, UNKNOWN.
    let machines: [(&[(&str, &str)], &str); 4] = [
        (&[("FAKECUDA_DEVICES", "0")], "(100, 3, -1)"),
        (
            &[("FAKECUDA_DEVICES", "0"), ("FAKECUDA_INIT", "0")],
            "(0, 0, 0)",
        ),
        (&[("FAKECUDA_INIT", "999")], "(999, 3, -1)"),
        (&[("FAKECUDA_DEVICES", "2")], "(0, 0, 2)"),
    ];
    let test = std::env::current_exe().expect("a test knows its own path");
    for (variables, wanted) in machines {
        let output = support::succeed(
            Command::new(&test)
                .args(["control::on_another_machine", "--exact", "--ignored"])
                .envs(variables.iter().copied())
                .env("WANTED", wanted),
        );
        assert!(output.contains("1 passed"), "{output}");
    }
}
