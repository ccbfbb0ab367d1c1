//! Waiting for streams and contexts, and asking for them.

use crate::driver;
use crate::exec;
use crate::state::lock;
use crate::status::Code;

driver! {
    fn cuStreamQuery | cuStreamQuery_ptsz (stream: u64) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.refuse_wait_on(stream)?;
        state.refuse_in_capture()?;
        let is_complete = match state.last_point(stream) {
            Some(point) => state.exec.query(point),
            None => true,
        };
        if !is_complete {
            return Err(Code::NOT_READY);
        }
        state.trim_pools(Some(stream));
        Ok(())
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz (stream: u64) {
        let mut state = lock();
        let stream = state.stream(stream)?;
        state.refuse_wait_on(stream)?;
        state.refuse_in_capture()?;
        drop(exec::wait_stream(state, stream));
        Ok(())
    }

    fn cuCtxSynchronize() {
        let mut state = lock();
        let context = state.current()?;
        state.refuse_context_wait(context)?;
        drop(exec::wait_context(state, context));
        Ok(())
    }

    fn cuCtxSynchronize_v2(context: u64) {
        let mut state = lock();
        let context = state.context_or_current(context)?;
        state.refuse_context_wait(context)?;
        drop(exec::wait_context(state, context));
        Ok(())
    }
}
