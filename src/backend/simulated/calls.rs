#![forbid(unsafe_code)]
//! The calls that a pool makes of simulated streams.

use super::world::{EventState, Operation, StreamCalls, World, current, world};
use crate::backend::BackendResult;
use crate::backend::streams::{Capture, Event, Place, Stream, StreamKey, Streams};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// In keys of streams that are in a capture.
const CAPTURED: u64 = 1 << 62;

/// The functions of simulated streams.
#[derive(Debug)]
pub(super) struct SimulatedStreams;

impl SimulatedStreams {
    /// The context that a call about a stream is counted in.
    fn context_of(world: &mut World, stream: Stream) -> usize {
        match world.handles.get(&stream.0) {
            Some(&(_, context)) if !stream.is_default() => context,
            _ => current(world),
        }
    }

    fn begin_event_call(
        world: &mut World,
        event: Event,
        count: impl FnOnce(&mut StreamCalls),
    ) -> BackendResult<()> {
        let context = if world.contexts.contains_key(&event.domain) {
            event.domain
        } else {
            current(world)
        };
        world.begin_call(context, count)
    }
}

impl Streams for SimulatedStreams {
    fn place(&self, stream: Stream) -> BackendResult<Place> {
        if stream.is_default() {
            return Ok(Place::DEFAULT);
        }
        let mut world = world();
        let context = Self::context_of(&mut world, stream);
        world.begin_call(context, |calls| calls.places += 1)?;
        let number = world.stream(stream, "place")?;
        let Some(id) = world.streams[&number].capture else {
            return Ok(Place {
                key: StreamKey(number),
                capture: None,
            });
        };
        let state = &world.captures[&id];
        let capture = if state.is_invalid {
            Capture { id: 0, graph: 0 }
        } else {
            Capture {
                id,
                graph: state.graph,
            }
        };
        Ok(Place {
            key: StreamKey(CAPTURED | stream.0 as u64),
            capture: Some(capture),
        })
    }

    fn domain(&self, stream: Stream) -> BackendResult<usize> {
        let mut world = world();
        let context = Self::context_of(&mut world, stream);
        world.begin_call(context, |calls| calls.domains += 1)?;
        let number = world.stream(stream, "domain")?;
        Ok(world.streams[&number].context)
    }

    fn create_event(&self, domain: usize) -> BackendResult<Event> {
        let mut world = world();
        if !world.contexts.contains_key(&domain) {
            let context = current(&mut world);
            return world.violation(context, format!("create_event: no context {domain}"));
        }
        world.begin_call(domain, |calls| calls.creates += 1)?;
        let handle = world.handle();
        world.events.insert(
            handle,
            EventState {
                context: domain,
                points: Vec::new(),
            },
        );
        world.context(domain).events += 1;
        Ok(Event { handle, domain })
    }

    fn destroy_event(&self, event: Event) {
        let mut world = world();
        if world.check_event(event, "destroy_event").is_ok() {
            world.events.remove(&event.handle);
            let context = world.context(event.domain);
            context.events -= 1;
            context.calls.destroys += 1;
        }
    }

    fn record(&self, event: Event, stream: Stream) -> BackendResult<()> {
        let mut world = world();
        let context = Self::context_of(&mut world, stream);
        world.begin_call(context, |calls| calls.records += 1)?;
        let number = world.stream_to_use(stream, "record")?;
        world.record(event, number)
    }

    fn is_done(&self, event: Event) -> BackendResult<bool> {
        let mut world = world();
        Self::begin_event_call(&mut world, event, |calls| calls.queries += 1)?;
        world.check_event(event, "is_done")?;
        let points = &world.events[&event.handle].points;
        Ok(points.iter().all(|&point| world.is_complete(point)))
    }

    fn wait(&self, stream: Stream, event: Event) -> BackendResult<()> {
        let mut world = world();
        let context = Self::context_of(&mut world, stream);
        world.begin_call(context, |calls| calls.waits += 1)?;
        let number = world.stream_to_use(stream, "wait")?;
        world.check_event(event, "wait")?;
        let points = world.events[&event.handle].points.clone();
        if !points.iter().all(|&point| world.is_complete(point)) {
            world.stream_mut(number).push(Operation::Wait(points));
        }
        Ok(())
    }

    fn record_all(&self, event: Event) -> BackendResult<()> {
        world().record_all(event.domain, event)
    }

    fn synchronize(&self, domain: usize, spares_captures: bool) -> BackendResult<()> {
        world().synchronize(domain, spares_captures)
    }

    fn retain(&self, capture: Capture, ended: Arc<AtomicBool>) -> BackendResult<()> {
        let mut world = world();
        let context = current(&mut world);
        world.begin_call(context, |calls| calls.retains += 1)?;
        match world.captures.get(&capture.id) {
            Some(state) if state.graph == capture.graph => {
                state.objects.flags().push(ended);
                Ok(())
            }
            _ => world.violation(context, format!("retain: no such capture: {capture:?}")),
        }
    }
}
