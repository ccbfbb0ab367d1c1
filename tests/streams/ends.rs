//! The beginnings and ends of streams and captures in a program.

use crate::run::{Checked, Run};
use crate::state::CaptureState;
use luma::backend::simulated::SimulatedStream;

impl Run {
    pub(super) fn destroy(&self, id: usize) {
        let mut state = self.state();
        let capture = state.places.streams[id].capture;
        if let Some(capture) = capture {
            state.places.close_capture(capture);
        }
        let of = &mut state.places.streams[id];
        of.stream.iter().for_each(SimulatedStream::destroy);
        of.is_destroyed = true;
    }

    /// Begins a capture that the pool hears of: of others it knows nothing.
    pub(super) fn begin_capture(&mut self, id: usize) -> Checked {
        let mut state = self.state();
        let is_free = state.places.streams[id].capture.is_none();
        if id == 0 || !is_free {
            return Ok(());
        }
        let capture = state.places.captures.len();
        state.places.captures.push(CaptureState {
            is_open: true,
            ..CaptureState::default()
        });
        let of = &mut state.places.streams[id];
        of.capture = Some(capture);
        if let Some(stream) = &of.stream {
            stream.begin_capture();
        }
        drop(state);
        self.allocate(id, 256, 0)?;
        let is_known = self
            .state()
            .live
            .last()
            .is_some_and(|b| b.capture == Some(capture));
        if is_known {
            return Ok(());
        }
        self.end_capture(id)
    }

    pub(super) fn end_capture(&self, id: usize) -> Checked {
        let mut state = self.state();
        let of = &state.places.streams[id];
        let (Some(stream), Some(capture)) = (&of.stream, of.capture) else {
            return Ok(());
        };
        let graph = stream.end_capture();
        let is_invalid = state.places.captures[capture].is_invalid;
        agree!(graph.is_none(), is_invalid, "no graph of capture {capture}");
        state.places.captures[capture].graphs.extend(graph);
        state.places.close_capture(capture);
        Ok(())
    }

    pub(super) fn release(&mut self, id: usize) -> Checked {
        let turn = self.state().places.turn(id);
        let answer = self.pool.release_stream(self.handle(id));
        if let Err(error) = answer {
            require!(self.fired(), "release_stream: {error}");
            return Ok(());
        }
        if id == 0 || turn.capture.is_some() {
            return Ok(());
        }
        let memory = self.device.seen().memory.clone();
        let mut state = self.state();
        if !state.is_separate && state.home == Some(id) {
            state.separate(&memory);
        }
        state.record(id);
        let now = state.places.now(id);
        state.places.streams[id].released = Some(now);
        Ok(())
    }
}
