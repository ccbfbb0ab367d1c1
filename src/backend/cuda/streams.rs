//! Streams and events of the CUDA driver.

use super::context::{
    self, ContextNumber, LEGACY_STREAM, check_default_stream, number_of, relaxed, within,
};
use super::driver::{self, ContextHandle, Driver, Handle};
use super::failure::Failure;
use super::usable;
use crate::backend::captures::{self, Between, Origin};
use crate::backend::streams::{Capture, Event, Place, Stream, StreamKey, Streams};
use crate::backend::{BackendError, BackendResult};
use crate::error::Status;
use core::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;
/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, which has to be given.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the graph takes the caller's reference.
const MOVE: u32 = 1;
/// `CU_STREAM_CAPTURE_STATUS_NONE` and `_ACTIVE`. The third one is a capture that is invalid.
const NOT_CAPTURED: u32 = 0;
const ACTIVE: u32 = 1;

/// In keys of streams that are in a capture. Numbers of streams and addresses do not reach it.
const CAPTURED: u64 = 1 << 62;
/// In keys of threads' default streams.
const OF_THREAD: u64 = 1 << 63;

/// The streams of the driver.
#[derive(Debug)]
pub(super) struct CudaStreams;

/// Contexts that have events, by their numbers. A handle is there once: the table has as many entries
/// as there were contexts at the same time.
static CONTEXTS: Mutex<Vec<(ContextNumber, usize)>> = Mutex::new(Vec::new());

/// A number for the calling thread that no other thread ever has.
fn thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    thread_local!(static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed));
    THREAD.with(|number| *number)
}

/// The driver, if there is one.
fn driver() -> BackendResult<&'static Driver> {
    driver::loaded()
        .map_or_else(usable, Ok)
        .map_err(BackendError::Failed)
}

/// The handle of a stream as the driver is given it: 0 may mean another one to the program.
fn handle(stream: Stream) -> Handle {
    if stream.is_default() {
        LEGACY_STREAM
    } else {
        stream.0
    }
}

/// The handle of a stream that work is to be queued on.
fn handle_to_use(driver: &Driver, stream: Stream) -> Result<Handle, Failure> {
    if stream.is_default() {
        check_default_stream(driver)?;
    }
    Ok(handle(stream))
}

/// The key of the calling thread's default stream in something that has a number.
fn thread_key(number: u64) -> StreamKey {
    // Far apart for close numbers of both: threads come and go, and keys of two streams never meet.
    let mut mixed = thread().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    StreamKey(OF_THREAD | mixed ^ mixed >> 31)
}

/// Which stream it is, by its number. Only of a stream that is in no capture: drivers refuse to number
/// others.
fn key(driver: &Driver, stream: Stream) -> Result<StreamKey, Failure> {
    let mut id = 0;
    // SAFETY: the out-parameter is valid for writing, and the stream lives.
    match unsafe { driver.stream_id(stream.0, &mut id) } {
        Ok(()) if stream == Stream::PER_THREAD => Ok(thread_key(id)),
        Ok(()) => Ok(StreamKey(id.wrapping_add(1))),
        Err(failure) if failure.is_unsupported() => key_by_handle(driver, stream, 0),
        Err(failure) => Err(failure),
    }
}

/// Which stream it is among those that live.
fn key_by_handle(driver: &Driver, stream: Stream, mark: u64) -> Result<StreamKey, Failure> {
    if stream == Stream::PER_THREAD {
        let context = context::current(driver)?;
        return Ok(thread_key(context as u64));
    }
    Ok(StreamKey(mark | stream.0 as u64))
}

/// The capture that a stream is in.
fn capture(driver: &Driver, stream: Stream) -> Result<Option<Capture>, Failure> {
    let (mut status, mut id, mut graph) = (NOT_CAPTURED, 0, 0);
    let stream = stream.0;
    // SAFETY: the out-parameters are valid for writing or null, and the stream lives.
    let asked = unsafe {
        driver
            .capture_info_v2(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                null_mut(),
                null_mut(),
            )
            .or_else(|failure| {
                older(failure)?;
                driver.capture_info_v1(stream, &mut status, &mut id)
            })
            .or_else(|failure| {
                older(failure)?;
                driver.is_capturing(stream, &mut status)
            })
    };
    match asked {
        Err(failure) if failure.is_unsupported() => return Ok(None),
        Err(failure) => return Err(failure),
        Ok(()) => {}
    }
    Ok(match status {
        NOT_CAPTURED => None,
        ACTIVE => Some(Capture { id, graph }),
        _ => Some(Capture { id: 0, graph: 0 }),
    })
}

/// Another function may do where a driver lacks one.
fn older(failure: Failure) -> Result<(), Failure> {
    if failure.is_unsupported() {
        Ok(())
    } else {
        Err(failure)
    }
}

/// The number of a context, whose handle is then known for events. Of one that is gone a number that no
/// context has.
pub(super) fn enter(driver: &Driver, context: ContextHandle) -> BackendResult<usize> {
    let number = match number_of(driver, context) {
        Err(failure) if failure.took_the_memory() => return Ok(usize::MAX),
        number => number.map_err(|failure| failure.without_request(driver))?,
    };
    let domain = usize::try_from(number).map_err(|_| BackendError::OutOfMemory)?;
    let context = context as usize;
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    match contexts.iter_mut().find(|(_, handle)| *handle == context) {
        Some(entry) => entry.0 = number,
        None => {
            contexts
                .try_reserve(1)
                .map_err(|_| BackendError::OutOfMemory)?;
            contexts.push((number, context));
        }
    }
    Ok(domain)
}

/// The context of a stream that is not the default one.
pub(super) fn context(driver: &Driver, stream: Stream) -> Result<ContextHandle, Failure> {
    let mut context = null_mut();
    // SAFETY: the out-parameter is valid for writing, and the stream lives.
    unsafe { driver.stream_context(stream.0, &mut context) }?;
    Ok(context)
}

/// How a capture that is begun on a stream is known. The stream need not be there any more.
pub(super) fn origin(driver: &Driver, stream: Stream) -> Origin {
    let own = if stream == Stream::PER_THREAD {
        let context = context::current(driver).unwrap_or(null_mut());
        (thread(), context as usize)
    } else {
        (0, 0)
    };
    Origin {
        stream: stream.0,
        own,
    }
}

/// The context of a stream with its number; `None`: the driver does not say.
pub(super) fn numbered_context(driver: &Driver, stream: Stream) -> Option<captures::Context> {
    let context = if stream == Stream::PER_THREAD || stream.is_default() {
        context::current(driver)
    } else {
        self::context(driver, stream)
    };
    let context = context.ok()?;
    let number = number_of(driver, context).ok()?;
    Some((number, context as usize))
}

/// Whether a context has ended.
pub(super) fn has_ended(driver: &Driver, (number, handle): captures::Context) -> bool {
    match number_of(driver, handle as ContextHandle) {
        Ok(now) => now != number,
        Err(failure) => failure.took_the_memory(),
    }
}

/// The numbers of devices' primary contexts, as far as they are known.
static PRIMARIES: Mutex<Vec<(c_int, ContextNumber)>> = Mutex::new(Vec::new());

/// Makes the primary contexts known that there are: whatever context memory belongs to, work in that of its
/// device may use it, and work in that of another one.
fn note_primaries(driver: &Driver) -> BackendResult<()> {
    let told = |failure: Failure| failure.without_request(driver);
    for device in 0..driver.devices().map_err(told)? {
        let known = {
            let primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
            primaries.iter().find(|entry| entry.0 == device).copied()
        };
        if let Some((_, number)) = known {
            if matches!(context_of(driver, number as usize), Ok(Some(_))) {
                continue;
            }
        }
        let Some(context) = context::active_primary(driver, device).map_err(told)? else {
            continue;
        };
        let number = enter(driver, context)? as ContextNumber;
        let mut primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
        primaries.retain(|entry| entry.0 != device);
        // Without memory to note it, it is looked for again the next time.
        if primaries.try_reserve(1).is_ok() {
            primaries.push((device, number));
        }
    }
    Ok(())
}

/// A context was made by somebody else: its work may use memory of others.
pub(super) fn note(handle: ContextHandle) {
    if let Ok(driver) = driver() {
        // Without a number or memory for it, it is not known.
        let _ = enter(driver, handle);
    }
}

/// The context of a number, if it is still there.
fn context_of(driver: &Driver, domain: usize) -> Result<Option<ContextHandle>, Failure> {
    let number = domain as ContextNumber;
    let handle = {
        let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        contexts
            .iter()
            .find(|entry| entry.0 == number)
            .map(|entry| entry.1 as ContextHandle)
    };
    let Some(handle) = handle else {
        // Another one has the handle since.
        return Ok(None);
    };
    match number_of(driver, handle) {
        Ok(now) => Ok((now == number).then_some(handle)),
        Err(failure) if failure.took_the_memory() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Waits for all work of the current context.
fn wait_for_all(driver: &Driver) -> Result<(), Failure> {
    check_default_stream(driver)?;
    // SAFETY: no pointers.
    unsafe { driver.synchronize() }
}

/// The same by a free, which waits for the device, and which captures permit in the relaxed mode.
fn wait_by_a_free(driver: &Driver) -> Result<(), Failure> {
    let mut addr = 0;
    // SAFETY: the out-parameter is valid for writing; what was allocated is freed once.
    unsafe {
        driver.alloc(&mut addr, 1)?;
        driver.free(addr)
    }
}

impl CudaStreams {
    fn with<T>(calls: impl FnOnce(&'static Driver) -> Result<T, Failure>) -> BackendResult<T> {
        let driver = driver()?;
        calls(driver).map_err(|failure| failure.without_request(driver))
    }
}

impl Streams for CudaStreams {
    fn place(&self, stream: Stream) -> BackendResult<Place> {
        if stream.is_default() {
            return Ok(Place::DEFAULT);
        }
        Self::with(|driver| {
            let capture = match capture(driver, stream) {
                Err(failure) if failure.is_not_permitted() => {
                    return Ok(Place {
                        key: StreamKey::UNKNOWN,
                        capture: None,
                    });
                }
                capture => capture?,
            };
            let key = match capture {
                None => key(driver, stream)?,
                Some(_) => key_by_handle(driver, stream, CAPTURED)?,
            };
            Ok(Place { key, capture })
        })
    }

    fn domain(&self, stream: Stream) -> BackendResult<usize> {
        let driver = driver()?;
        let context = if stream.is_default() {
            context::current(driver)
        } else {
            self::context(driver, stream)
        };
        enter(
            driver,
            context.map_err(|failure| failure.without_request(driver))?,
        )
    }

    fn create_event(&self, domain: usize) -> BackendResult<Event> {
        Self::with(|driver| {
            let gone = Failure::destroyed_context("cuEventCreate");
            let context = context_of(driver, domain)?.ok_or(gone)?;
            let mut handle = 0;
            // SAFETY: the out-parameter is valid for writing.
            within(driver, context, |driver| unsafe {
                driver.event_create(&mut handle, DISABLE_TIMING)
            })?;
            Ok(Event { handle, domain })
        })
    }

    fn destroy_event(&self, event: Event) {
        let _ = Self::with(|driver| {
            // An event goes with its context, and its handle may be another one's then.
            if matches!(context_of(driver, event.domain), Ok(None)) {
                return Ok(());
            }
            // SAFETY: the event was made here, and whoever made it destroys it once.
            let destroy = || unsafe { driver.event_destroy(event.handle) };
            relaxed(driver, || destroy().or_else(|_| destroy())).or_else(|_| destroy())
        });
    }

    fn record(&self, event: Event, stream: Stream) -> BackendResult<()> {
        Self::with(|driver| {
            let stream = handle_to_use(driver, stream)?;
            // SAFETY: event and stream live.
            unsafe { driver.event_record(event.handle, stream) }
        })
    }

    fn is_done(&self, event: Event) -> BackendResult<bool> {
        let driver = driver()?;
        let asked = context_of(driver, event.domain).and_then(|context| match context {
            None => Ok(()),
            // SAFETY: the event lives, since its context does and its maker has not destroyed it.
            Some(_) => relaxed(driver, || unsafe { driver.event_query(event.handle) }),
        });
        match asked {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_not_ready() => Ok(false),
            Err(failure) if failure.ended_all_work() => Ok(true),
            // It went with its context meanwhile.
            Err(failure)
                if failure.is_invalid_handle()
                    && matches!(context_of(driver, event.domain), Ok(None)) =>
            {
                Ok(true)
            }
            Err(failure) => Err(failure.without_request(driver)),
        }
    }

    fn wait(&self, stream: Stream, event: Event) -> BackendResult<()> {
        Self::with(|driver| {
            if context_of(driver, event.domain)?.is_none() {
                return Ok(());
            }
            let stream = handle_to_use(driver, stream)?;
            // SAFETY: event and stream live.
            unsafe { driver.stream_wait(stream, event.handle, 0) }
        })
    }

    fn record_all(&self, event: Event) -> BackendResult<()> {
        let Some(_between) = Between::captures() else {
            return Err(BackendError::failed(
                Status::Driver,
                "a capture goes on, which an event for all work of its context would break",
            ));
        };
        Self::with(|driver| {
            let gone = Failure::destroyed_context("cuCtxRecordEvent");
            let context = context_of(driver, event.domain)?.ok_or(gone)?;
            let recorded = within(driver, context, |driver| {
                check_default_stream(driver)?;
                // SAFETY: event and context live.
                unsafe { driver.record_context(context, event.handle) }
            });
            match recorded {
                // The event is done as it is, and says so, or fails in the same way when it is asked.
                Err(failure) if failure.ended_all_work() && !failure.took_the_memory() => Ok(()),
                recorded => recorded,
            }
        })
    }

    fn have_ended(&self) -> bool {
        driver::loaded().is_some_and(|driver| {
            context::current(driver).is_err_and(|failure| failure.is_the_end())
        })
    }

    fn users(&self, domain: usize) -> BackendResult<Vec<usize>> {
        let driver = driver()?;
        note_primaries(driver)?;
        let known = {
            let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
            let others = contexts.iter().filter(|entry| entry.0 as usize != domain);
            let mut known = Vec::new();
            known
                .try_reserve_exact(contexts.len())
                .map_err(|_| BackendError::OutOfMemory)?;
            known.extend(others.copied());
            known
        };
        let mut users = Vec::new();
        users
            .try_reserve_exact(known.len() + 1)
            .map_err(|_| BackendError::OutOfMemory)?;
        users.push(domain);
        for (number, handle) in known {
            match number_of(driver, handle as ContextHandle) {
                Ok(now) if now == number => users.push(number as usize),
                Ok(_) => {}
                Err(failure) if failure.took_the_memory() => {}
                Err(failure) => return Err(failure.without_request(driver)),
            }
        }
        Ok(users)
    }

    fn synchronize(&self, domain: usize, spares_captures: bool) -> BackendResult<()> {
        let driver = driver()?;
        let waited = context_of(driver, domain).and_then(|context| match context {
            None => Ok(()),
            Some(context) if spares_captures || captures::are_open() => {
                within(driver, context, wait_by_a_free)
            }
            Some(context) => within(driver, context, wait_for_all),
        });
        match waited {
            Err(failure) if !failure.ended_all_work() => Err(failure.without_request(driver)),
            _ => Ok(()),
        }
    }

    fn retain(&self, capture: Capture, ended: Arc<AtomicBool>) -> BackendResult<()> {
        if capture.graph == 0 {
            return Err(BackendError::failed(
                Status::Unsupported,
                "the graph of the capture is unknown: the capture is invalid, or the CUDA driver is too old",
            ));
        }
        Self::with(|driver| {
            let data = Arc::into_raw(ended);
            let mut object = 0;
            // SAFETY: the out-parameter is valid for writing; the destructor may be called in any
            // thread at any time with the share that `data` is, once.
            unsafe {
                driver.object_create(
                    &mut object,
                    data.cast_mut().cast(),
                    set_and_drop,
                    1,
                    NO_DESTRUCTOR_SYNC,
                )
            }
            .inspect_err(|_| {
                // SAFETY: there is no object, and nobody else has this share.
                drop(unsafe { Arc::from_raw(data) });
            })?;
            // SAFETY: the graph is that of a capture that goes on.
            unsafe { driver.graph_retain(capture.graph, object, 1, MOVE) }.inspect_err(|_| {
                // SAFETY: the one reference to the object is here. Its destructor has the share.
                let release = || unsafe { driver.object_release(object, 1) };
                let _ = release().or_else(|_| release());
            })
        })
    }
}

/// A graph's user object goes. The driver may be called by nobody here.
unsafe extern "C" fn set_and_drop(data: *mut c_void) {
    // SAFETY: it is the share that `retain` gave away, and this is called once.
    let ended = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
    ended.store(true, Ordering::Release);
}
