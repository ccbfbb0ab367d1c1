//! Streams, events and captures over the CUDA driver double: what a stream is, what an event stands for,
//! and that nothing that luma asks of the driver breaks a capture or is left behind when it fails.

#![cfg(not(miri))]

mod driver;
#[path = "../support/mod.rs"]
mod support;

use driver::*;

use luma::Status;
use luma::backend::cuda::{CudaBackend, Kind};
use luma::backend::streams::{Capture, Place, Stream, StreamKey};
use luma::backend::{Backend, BackendError};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::double::{self, Double};

const MIB: u64 = 1 << 20;
const NON_BLOCKING: u32 = 1;
const LIVE_EVENTS: c_int = 5;
const RELAXED: u32 = 2;
const CAPTURE_MODES: [u32; 3] = [0, 1, RELAXED];

extern "C" fn nothing(_: *mut c_void) {}

/// Waits for all work of a backend's context.
fn synchronize(backend: &dyn Backend) -> luma::backend::BackendResult<()> {
    streams().synchronize(backend.domain()?, true)
}

#[test]
#[ignore = "on_the_double runs it, on a driver of its own"]
fn case_streams_have_keys() {
    let (double, first) = (double::load(), use_primary());
    let one = stream(0);
    let calls = |names: [&str; 2]| names.map(|name| double.calls(name));
    let names = ["cuStreamGetCaptureInfo_v2", "cuStreamGetId"];
    let before = calls(names);
    let key = place(one).key;
    assert_eq!(calls(names), before.map(|count| count + 1));
    for handle in [0, 1] {
        assert_eq!(place(Stream(handle)), Place::DEFAULT);
    }
    assert_eq!(calls(names), before.map(|count| count + 1));
    assert_eq!(place(one), Place { key, capture: None });
    assert_ne!(key, StreamKey::DEFAULT);

    destroy(one);
    let again = stream(0);
    assert_eq!(again, one, "the double gives the handle again");
    assert_ne!(place(again).key, key);
    destroy(again);
    assert!(streams().place(again).is_err());
    assert!(streams().domain(again).is_err());

    // Threads' streams, in two contexts.
    let second = create_context();
    let mut keys = BTreeSet::new();
    let mut ask = || {
        for context in [first, second] {
            ok(driver().cuCtxSetCurrent(context));
            let key = place(Stream::PER_THREAD).key;
            assert_eq!(place(Stream::PER_THREAD).key, key);
            assert!(keys.insert(key));
        }
    };
    ask();
    for _ in 0..20 {
        std::thread::scope(|scope| scope.spawn(&mut ask).join().expect("it passes"));
    }
    ok(driver().cuCtxSetCurrent(0));
    assert!(streams().place(Stream::PER_THREAD).is_err());
    ok(driver().cuCtxDestroy_v2(second));
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_a_stream_in_a_capture_is_not_asked_for_its_number() {
    let (double, driver) = (double::load(), driver());
    use_primary();
    let (one, two) = (stream(NON_BLOCKING), stream(0));
    let before = double.calls("cuStreamGetId");
    let mut ids = BTreeSet::new();
    for mode in CAPTURE_MODES {
        for stream in [one, two] {
            ok(driver.cuStreamBeginCapture_v2(stream.0, mode));
            let capture = place(stream).capture.expect("it is in a capture");
            assert!(capture.id != 0 && ids.insert(capture.id));
            let graph = made(|graph| driver.cuStreamEndCapture(stream.0, graph));
            assert_eq!(graph, capture.graph);
            ok(driver.cuGraphDestroy(graph));
        }
    }
    ok(driver.cuStreamBeginCapture_v2(one.0, RELAXED));
    ok(driver.cuStreamBeginCapture_v2(two.0, RELAXED));
    assert_ne!(place(one).key, place(two).key);
    // Asking for a stream that is in a capture breaks it.
    assert_ne!(driver.cuStreamSynchronize(one.0), 0);
    let broken = Capture { id: 0, graph: 0 };
    assert_eq!(place(one).capture, Some(broken));
    let retained = streams().retain(broken, Arc::default()).unwrap_err();
    assert_eq!(retained.status(), Status::Unsupported);
    for stream in [one, two] {
        driver.cuStreamEndCapture(stream.0, &mut 0);
    }
    assert_eq!(double.calls("cuStreamGetId"), before);
}

#[test]
#[ignore = "runs_on_old_drivers runs it, on drivers of its own"]
fn old_drivers_have_places() {
    let driver = driver();
    use_primary();
    let unsupported = std::env::var("FAKECUDA_UNSUPPORTED").expect("it says what is missing");
    let lacks = |name: &str| unsupported.split(',').any(|other| other == name);
    let (one, two) = (stream(0), stream(NON_BLOCKING));
    let mut keys = BTreeSet::from([StreamKey::DEFAULT]);
    for stream in [one, two, Stream::PER_THREAD] {
        let place = place(stream);
        assert_eq!(place.capture, None);
        assert!(keys.insert(place.key));
    }
    std::thread::spawn(move || {
        use_primary();
        assert!(keys.insert(place(Stream::PER_THREAD).key));
    })
    .join()
    .expect("it passes");
    ok(driver.cuStreamBeginCapture_v2(one.0, RELAXED));
    match place(one).capture {
        Some(capture) => {
            assert_eq!(capture.graph == 0, lacks("cuStreamGetCaptureInfo_v2"));
            assert_eq!(capture.id == 0, lacks("cuStreamGetCaptureInfo"));
            let error = streams().retain(capture, Arc::default()).unwrap_err();
            assert_eq!(error.status(), Status::Unsupported);
        }
        None => assert!(lacks("cuStreamIsCapturing")),
    }
    let graph = made(|graph| driver.cuStreamEndCapture(one.0, graph));
    ok(driver.cuGraphDestroy(graph));
    // Events need nothing new.
    let backend = backend(Kind::Device);
    let event = event_in(streams().domain(two).expect("a stream"));
    streams().record(event, two).expect("an event");
    assert!(soon(|| is_done(event)));
    backend.record_default(event).expect("an event");
    assert_eq!(
        streams().record_all(event).unwrap_err().status(),
        Status::Unsupported
    );
    backend.trim();
    let addr = backend.allocate(MIB).expect("memory");
    backend.release(addr, MIB).expect("it was allocated");
    streams().destroy_event(event);
}

#[test]
fn runs_on_old_drivers() {
    let missing = [
        "cuStreamGetId",
        "cuStreamGetCaptureInfo_v2",
        "cuStreamGetCaptureInfo",
        "cuStreamIsCapturing",
        "cuCtxGetId",
    ];
    let always =
        "cuUserObjectCreate,cuCtxRecordEvent,cuMemPoolTrimTo,cuThreadExchangeStreamCaptureMode";
    for count in 0..=missing.len() {
        let unsupported = [&missing[..count], &[always]].concat().join(",");
        let variables = [("FAKECUDA_UNSUPPORTED", unsupported.as_str())];
        assert_eq!(
            double::run_ignored("old_drivers_have_places", &variables),
            1
        );
    }
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_events_stand_for_work() {
    let (driver, first) = (driver(), use_primary());
    let backend = backend(Kind::Device);
    let one = stream(NON_BLOCKING);
    let domain = streams().domain(one).expect("a stream");
    assert_eq!(streams().domain(Stream::DEFAULT), Ok(domain));
    assert_eq!(backend.domain(), Ok(domain));
    let second = create_context();
    let other = stream(NON_BLOCKING);
    let other_domain = streams().domain(other).expect("a stream");
    assert_ne!(other_domain, domain);

    for context in [0, first, second] {
        ok(driver.cuCtxSetCurrent(context));
        let gate = Gate::new();
        let (event, all) = (event_in(domain), event_in(domain));
        let later = event_in(other_domain);
        assert!(is_done(event), "it was never recorded");
        gate.close(one);
        streams().record(event, one).expect("of its context");
        streams().record_all(all).expect("of its context");
        streams().wait(other, event).expect("of any context");
        streams().record(later, other).expect("of its context");
        assert!(![event, all, later].map(is_done).contains(&true));
        assert!(backend.is_default_idle().expect("a context"));
        // Other work of the stream changes nothing.
        gate.open();
        assert!(soon(|| [event, all, later].map(is_done) == [true; 3]));
        assert!(
            streams().record(event, other).is_err(),
            "of another context"
        );
        for event in [event, all, later] {
            streams().destroy_event(event);
        }
        assert_eq!(current(), context);
    }

    // The default stream.
    ok(driver.cuCtxSetCurrent(first));
    let gate = Gate::new();
    gate.close(Stream::DEFAULT);
    let event = event_in(domain);
    assert!(!backend.is_default_idle().expect("a context"));
    backend.record_default(event).expect("of its context");
    assert!(!is_done(event));
    gate.open();
    synchronize(&backend).expect("a context");
    assert!(is_done(event) && backend.is_default_idle().expect("a context"));
    streams().destroy_event(event);
    assert_eq!(double::load().live_raw(LIVE_EVENTS), 0);
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_a_context_goes_with_its_events() {
    let driver = driver();
    use_primary();
    let context = create_context();
    let backend = CudaBackend::of_current_context(true).expect("a context is current");
    let one = stream(NON_BLOCKING);
    let domain = streams().domain(one).expect("a stream");
    let event = event_in(domain);
    streams().record(event, one).expect("of its context");
    ok(driver.cuCtxDestroy_v2(context));
    assert!(is_done(event));
    assert!(streams().create_event(domain).is_err());
    assert_eq!(synchronize(&backend), Ok(()));
    assert_eq!(backend.is_default_idle(), Ok(true));

    // The handles mean others now.
    let next = create_context();
    assert_eq!(next, context, "the double gives the handle again");
    let foreign: usize = made(|event| driver.cuEventCreate(event, 0));
    assert_eq!(foreign, event.handle, "the double gives the handle again");
    let again = stream(NON_BLOCKING);
    assert_ne!(streams().domain(again), Ok(domain));
    assert!(is_done(event));
    streams().wait(again, event).expect("its work is done");
    streams().destroy_event(event);
    ok(driver.cuEventDestroy_v2(foreign));
    ok(driver.cuCtxDestroy_v2(next));
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_a_graph_says_when_it_has_ended() {
    let driver = driver();
    use_primary();
    let one = stream(NON_BLOCKING);
    let capture = || {
        ok(driver.cuStreamBeginCapture_v2(one.0, RELAXED));
        ok(driver.cuLaunchHostFunc(one.0, nothing, std::ptr::null_mut()));
        let ended = Arc::new(AtomicBool::new(false));
        let capture = place(one).capture.expect("it is in a capture");
        streams().retain(capture, ended.clone()).expect("a graph");
        ended
    };
    let end = || made(|graph| driver.cuStreamEndCapture(one.0, graph));
    let has_ended = |ended: &Arc<AtomicBool>| ended.load(Ordering::Acquire);
    // Every order in which a graph, its clone, its executable and a launch go.
    for order in 0..6 {
        let ended = capture();
        let graph = end();
        let clone = made(|clone| driver.cuGraphClone(clone, graph));
        let executable = made(|it| driver.cuGraphInstantiateWithFlags(it, graph, 0));
        for _ in 0..3 {
            ok(driver.cuGraphLaunch(executable, one.0));
        }
        let (gate, runs) = (Gate::new(), stream(NON_BLOCKING));
        gate.close(runs);
        ok(driver.cuGraphLaunch(executable, runs.0));
        let mut steps: Vec<u32> = vec![0, 1, 2];
        let first = steps.remove(order / 2);
        let second = steps.remove(order % 2);
        for step in [first, second, steps[0]] {
            assert!(!has_ended(&ended));
            ok(match step {
                0 => driver.cuGraphDestroy(graph),
                1 => driver.cuGraphDestroy(clone),
                _ => driver.cuGraphExecDestroy(executable),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
        assert!(!has_ended(&ended), "a launch is in flight");
        gate.open();
        assert!(soon(|| has_ended(&ended) && Arc::strong_count(&ended) == 1));
        destroy(runs);
    }
    // A capture that fails has no graph.
    let ended = capture();
    assert_ne!(driver.cuStreamSynchronize(one.0), 0);
    assert_ne!(driver.cuStreamEndCapture(one.0, &mut 0), 0);
    assert!(soon(|| has_ended(&ended) && Arc::strong_count(&ended) == 1));
    destroy(one);
}

/// All that a pool asks of a backend while it grows and gives back.
fn use_memory(kind: Kind) -> Result<(), BackendError> {
    let backend = backend(kind);
    let addr = backend.allocate(4 * MIB)?;
    backend.release(addr, 4 * MIB)?;
    backend.memory()?;
    if let Some(pages) = backend.pages() {
        let (addr, span) = backend.reserve(64 * MIB)?;
        backend.map(addr, 48 * MIB)?;
        backend.unmap(addr, pages.unmap)?;
        backend.unreserve(addr, span, 48 * MIB - pages.unmap)?;
    }
    backend.trim();
    Ok(())
}

/// All that a pool asks about another stream.
fn use_streams(other: Stream) -> Result<(), BackendError> {
    let domain = streams().domain(other)?;
    let event = streams().create_event(domain)?;
    let used = (|| {
        streams().place(other)?;
        streams().record(event, other)?;
        streams().is_done(event)?;
        streams().wait(other, event)
    })();
    streams().destroy_event(event);
    used
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_captures_stay_whole() {
    let driver = driver();
    use_primary();
    for (kind, flags, mode) in [Kind::Device, Kind::Pinned, Kind::Managed]
        .into_iter()
        .flat_map(|kind| [NON_BLOCKING, 0].map(|flags| (kind, flags)))
        .flat_map(|(kind, flags)| CAPTURE_MODES.map(|mode| (kind, flags, mode)))
    {
        for is_same_thread in [true, false] {
            let at = format!("{kind:?}, flags {flags}, mode {mode}, {is_same_thread}");
            let (one, other) = (stream(flags), stream(NON_BLOCKING));
            let before = capture_mode();
            ok(driver.cuStreamBeginCapture_v2(one.0, mode));
            let work = || {
                let memory = use_memory(kind);
                assert_eq!(memory, Ok(()), "{at}");
                assert_eq!(use_streams(other), Ok(()), "{at}");
                let backend = backend(kind);
                let event = event_in(backend.domain().expect("a context"));
                let is_blocked = flags != NON_BLOCKING;
                assert_eq!(backend.is_default_idle().is_err(), is_blocked, "{at}");
                assert_eq!(backend.record_default(event).is_err(), is_blocked, "{at}");
                let by_itself = streams().record(event, Stream::DEFAULT);
                assert_eq!(by_itself.is_err(), is_blocked, "{at}");
                let by_itself = streams().wait(Stream::DEFAULT, event);
                assert_eq!(by_itself.is_err(), is_blocked, "{at}");
                if is_blocked {
                    assert!(streams().record_all(event).is_err(), "{at}");
                }
                assert_eq!(synchronize(&backend), Ok(()), "{at}");
                streams().destroy_event(event);
            };
            if is_same_thread {
                work();
            } else {
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| {
                        use_primary();
                        work();
                        assert_eq!(capture_mode(), 0, "{at}");
                    });
                    other.join().expect("it passes");
                });
            }
            ok(driver.cuLaunchHostFunc(one.0, nothing, std::ptr::null_mut()));
            let mut graph = 0;
            let code = driver.cuStreamEndCapture(one.0, &raw mut graph);
            assert_eq!(code, 0, "{at}: the capture is broken");
            ok(driver.cuGraphDestroy(graph));
            assert_eq!(capture_mode(), before, "{at}");
            destroy(one);
            destroy(other);
        }
    }
    assert_eq!(double::load().live_raw(LIVE_EVENTS), 0);
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_trimming_gives_back_what_the_driver_keeps() {
    const RELEASE_THRESHOLD: u32 = 4;
    let (double, driver) = (double::load(), driver());
    use_primary();
    let pool = made(|pool| driver.cuDeviceGetDefaultMemPool(pool, 0));
    ok(driver.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &u64::MAX));
    let addr = made(|addr| driver.cuMemAllocAsync(addr, 32 << 20, 0));
    ok(driver.cuMemFreeAsync(addr, 0));
    ok(driver.cuStreamSynchronize(0));
    backend(Kind::Pinned).trim();
    assert!(double.used(0) >= 32 * MIB);
    backend(Kind::Device).trim();
    assert_eq!(double.used(0), 0);
}

/// One of each call, in a capture too.
fn use_everything(backend: &CudaBackend, one: Stream) -> Result<(), BackendError> {
    use_streams(one)?;
    let event = streams().create_event(backend.domain()?)?;
    let used = (|| {
        backend.record_default(event)?;
        backend.is_default_idle()?;
        streams().record_all(event)?;
        synchronize(backend)?;
        backend.trim();
        streams().wait(Stream::DEFAULT, event)
    })();
    streams().destroy_event(event);
    used
}

/// Makes each call of the driver in some work fail once. `work` says how it ended.
fn each_call_fails(double: &Double, code: c_int, work: impl Fn() -> Result<(), BackendError>) {
    work().expect("nothing fails");
    let (context, events) = (current(), double.live_raw(LIVE_EVENTS));
    let mut calls = 0;
    loop {
        let before = double.failed();
        double.fail("*", calls, code, 1);
        let outcome = work();
        let happened = double.failed() > before;
        double.fail_clear();
        if !happened {
            assert_eq!(outcome, Ok(()));
            break;
        }
        if let Err(error) = outcome {
            assert!(error.to_string().contains(&format!("({code})")), "{error}");
        }
        assert_eq!(current(), context, "call {calls}, code {code}");
        assert_eq!(capture_mode(), 1, "call {calls}, code {code}");
        assert_eq!(
            double.live_raw(LIVE_EVENTS),
            events,
            "call {calls}, code {code}"
        );
        calls += 1;
    }
    assert!(calls > 5, "{calls} calls");
}

#[test]
#[ignore = "as case_streams_have_keys"]
fn case_each_call_fails_once() {
    let (double, driver) = (double::load(), driver());
    let primary = use_primary();
    let backend = backend(Kind::Device);
    let one = stream(NON_BLOCKING);
    let other = create_context();
    set_capture_mode(1);
    for context in [primary, other] {
        ok(driver.cuCtxSetCurrent(context));
        for code in [2, 700, 999] {
            each_call_fails(double, code, || {
                // The default stream of the current context and the event's are two here.
                match use_everything(&backend, one) {
                    Err(error) if error.to_string().contains("(400)") => Ok(()),
                    outcome => outcome,
                }
            });
            each_call_fails(double, code, || {
                let begun = driver.cuStreamBeginCapture_v2(one.0, RELAXED);
                let ended = Arc::new(AtomicBool::new(false));
                let retained = streams().place(one).and_then(|place| match place.capture {
                    Some(capture) => streams().retain(capture, ended.clone()),
                    None => Ok(()),
                });
                if begun == 0 {
                    let mut graph = 0;
                    if driver.cuStreamEndCapture(one.0, &raw mut graph) != 0 {
                        ok(driver.cuStreamEndCapture(one.0, &raw mut graph));
                    }
                    if driver.cuGraphDestroy(graph) != 0 {
                        ok(driver.cuGraphDestroy(graph));
                    }
                }
                assert!(soon(|| Arc::strong_count(&ended) == 1));
                retained
            });
        }
    }
    set_capture_mode(0);
}

#[test]
fn on_the_double() {
    for exec in ["eager", "lazy"] {
        let cases = [
            "case_streams_have_keys",
            "case_a_stream_in_a_capture_is_not_asked_for_its_number",
            "case_events_stand_for_work",
            "case_a_context_goes_with_its_events",
            "case_a_graph_says_when_it_has_ended",
            "case_captures_stay_whole",
            "case_trimming_gives_back_what_the_driver_keeps",
            "case_each_call_fails_once",
        ];
        // A driver each: what is counted is the whole process's.
        for case in cases {
            let variables = [("FAKECUDA_EXEC", exec), ("FAKECUDA_MEM", "1G")];
            assert_eq!(double::run_ignored(case, &variables), 1, "{case}");
        }
    }
}
