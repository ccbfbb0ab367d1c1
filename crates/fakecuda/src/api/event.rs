//! Events.

use crate::abi::memory::Opaque64;
use crate::driver;
use crate::entry::put;
use crate::exec;
use crate::state::lock;
use crate::status::Code;

driver! {
    fn cuEventCreate(event: *mut u64, flags: u32) {
        if event.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let handle = lock().create_event(flags)?;
        put(event, handle)
    }

    fn cuEventDestroy_v2(event: u64) {
        lock().destroy_event(event)
    }

    fn cuEventRecord | cuEventRecord_ptsz (event: u64, stream: u64) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.record_event(event, stream, 0)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz (event: u64, stream: u64, flags: u32) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.record_event(event, stream, flags)
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz (stream: u64, event: u64, flags: u32) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.wait_event(stream, event, flags)
    }

    fn cuEventQuery(event: u64) {
        let mut state = lock();
        let points = state.event_points(event)?;
        state.refuse_in_capture()?;
        let shared = state.event_shared(event)?;
        for point in points {
            if !state.exec.query(point) {
                return Err(Code::NOT_READY);
            }
        }
        match shared {
            Some((shared, record)) if !shared.is_complete(record) => Err(Code::NOT_READY),
            _ => Ok(()),
        }
    }

    fn cuEventSynchronize(event: u64) {
        let mut state = lock();
        let points = state.event_points(event)?;
        state.refuse_in_capture()?;
        let shared = state.event_shared(event)?;
        for point in points {
            state = exec::wait(state, point);
        }
        drop(state);
        if let Some((shared, record)) = shared {
            shared.wait(record);
        }
        Ok(())
    }

    fn cuIpcGetEventHandle(handle: *mut Opaque64, event: u64) {
        put(handle, lock().export_event(event)?)
    }

    fn cuIpcOpenEventHandle(event: *mut u64, handle: Opaque64) {
        if event.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let imported = lock().import_event(&handle)?;
        put(event, imported)
    }

    fn cuEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) {
        put(milliseconds, lock().elapsed(start, end)?)
    }

    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: u64, end: u64) {
        put(milliseconds, lock().elapsed(start, end)?)
    }

    fn cuCtxRecordEvent(context: u64, event: u64) {
        let mut state = lock();
        let context = state.context_or_current(context)?;
        state.refuse_context_wait(context)?;
        state.record_context_event(event, context)
    }

    fn cuCtxWaitEvent(context: u64, event: u64) {
        let mut state = lock();
        let context = state.context_or_current(context)?;
        state.refuse_context_wait(context)?;
        state.wait_context_event(event, context)
    }
}
