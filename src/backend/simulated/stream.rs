#![forbid(unsafe_code)]
//! Streams whose work is done when a test says so.

use super::SimulatedBackend;
use super::world::{self, Objects, Point, StreamCalls, world};
use crate::backend::BackendError;
use crate::backend::streams::{Capture, Stream};
use std::sync::Arc;

/// Where streams, events and a default stream belong to. Each simulated device has one; a thread has one of
/// its own until it makes another one current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedContext(usize);

impl SimulatedContext {
    pub(super) fn create() -> Self {
        Self(world().create_context())
    }

    /// The calling thread's current one.
    pub fn current() -> Self {
        Self(world::current(&mut world()))
    }

    /// Makes it the calling thread's current one: [`SimulatedStream::new`] makes streams of it, and
    /// [`Stream::DEFAULT`] is its default stream where no backend says which one is meant.
    pub fn make_current(self) {
        world::set_current(self.0);
    }

    /// Its number, as in [`crate::backend::streams::Event::domain`].
    pub fn domain(self) -> usize {
        self.0
    }

    /// Calls so far that were about its streams and events.
    pub fn calls(self) -> StreamCalls {
        world().calls(self.0)
    }

    /// Its events that were not destroyed.
    pub fn events(self) -> usize {
        world().events(self.0)
    }

    /// What was asked that no pool may ask, in words.
    pub fn violations(self) -> Vec<String> {
        world().violations(self.0)
    }

    /// Makes the `n`-th call about its streams and events from now on (1: the next one) fail once,
    /// changing nothing. Calls that cannot fail do not count.
    pub fn fail_call(self, n: u64, error: BackendError) {
        world().fail_call(self.0, n, error);
    }

    /// From now on no event can stand for all its streams, as with drivers before CUDA 12.5.
    pub fn end_barriers(self) {
        world().end_barriers(self.0);
    }

    /// Its default stream.
    pub fn default_stream(self) -> DefaultStream {
        DefaultStream(world().default_stream(self.0))
    }
}

/// A moment of a stream: all that was queued on it until then.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedMoment(Point);

impl SimulatedMoment {
    /// Whether that is done.
    pub fn is_done(self) -> bool {
        world().is_complete(self.0)
    }
}

/// The default stream of a simulated context. It waits for no other stream by itself, and none for it.
#[derive(Clone, Copy, Debug)]
pub struct DefaultStream(u64);

impl DefaultStream {
    /// Makes it busy, if it is not: one piece of work is queued.
    pub fn block(self) {
        block(self.0);
    }

    /// Queues a piece of work.
    pub fn queue(self) {
        world().queue(self.0);
    }

    /// Lets all work run that is queued. It is done at once, except for what waits for other streams' work.
    pub fn finish(self) {
        world().run(self.0, usize::MAX);
    }

    /// Lets the first piece of work run that has not.
    pub fn finish_one(self) {
        world().run(self.0, 1);
    }

    /// Whether all its work is done.
    pub fn is_idle(self) -> bool {
        world().is_idle(self.0)
    }

    /// What is queued until now.
    pub fn now(self) -> SimulatedMoment {
        SimulatedMoment(world().last_point(self.0))
    }

    /// Whether what is queued from now on starts after a moment: that is this stream's, or done, or
    /// waited for.
    pub fn follows(self, moment: SimulatedMoment) -> bool {
        world().follows(self.0, moment.0)
    }
}

fn block(stream: u64) {
    let mut world = world();
    if world.is_idle(stream) {
        world.queue(stream);
    }
}

/// A simulated stream, as made with `CU_STREAM_NON_BLOCKING`. It is destroyed when it goes, and its work
/// is done then.
#[derive(Debug)]
pub struct SimulatedStream {
    number: u64,
    handle: usize,
}

impl Default for SimulatedStream {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedStream {
    /// A stream of the calling thread's current context. Its handle is that of the stream of the context
    /// that was destroyed last, if there is one.
    pub fn new() -> Self {
        Self::in_context(SimulatedContext::current())
    }

    /// A stream of a device.
    pub fn of(device: &SimulatedBackend) -> Self {
        Self::in_context(device.context())
    }

    fn in_context(context: SimulatedContext) -> Self {
        let (number, handle) = world().create_stream(context.0);
        Self { number, handle }
    }

    /// Its handle; of a stream that was destroyed, the one it had.
    pub fn handle(&self) -> Stream {
        Stream(self.handle)
    }

    /// Makes it busy, if it is not: one piece of work is queued.
    pub fn block(&self) {
        block(self.number);
    }

    /// Queues a piece of work.
    pub fn queue(&self) {
        world().queue(self.number);
    }

    /// Lets all work run that is queued. It is done at once, except for what waits for other streams' work.
    pub fn finish(&self) {
        world().run(self.number, usize::MAX);
    }

    /// Lets the first piece of work run that has not.
    pub fn finish_one(&self) {
        world().run(self.number, 1);
    }

    /// Whether all its work is done.
    pub fn is_idle(&self) -> bool {
        world().is_idle(self.number)
    }

    /// What is queued until now.
    pub fn now(&self) -> SimulatedMoment {
        SimulatedMoment(world().last_point(self.number))
    }

    /// Whether what is queued from now on starts after a moment: that is this stream's, or done, or
    /// waited for.
    pub fn follows(&self, moment: SimulatedMoment) -> bool {
        world().follows(self.number, moment.0)
    }

    /// Destroys it. Its work stays, and can be let run; its handle means no stream, or another one that is
    /// made later: any call with it until then is a violation.
    pub fn destroy(&self) {
        world().destroy_stream(self.number, self.handle);
    }

    /// Begins a capture.
    pub fn begin_capture(&self) -> Capture {
        world().begin_capture(self.number)
    }

    /// Becomes a part of the capture that another stream is in.
    pub fn join_capture(&self, origin: &Self) {
        world().join_capture(self.number, origin.number);
    }

    /// Something is done that a capture does not permit.
    pub fn invalidate_capture(&self) {
        world().invalidate_capture(self.number);
    }

    /// Ends the capture that it is in, for all streams in it, and gives the graph; `None`: there is none,
    /// or it is invalid.
    pub fn end_capture(&self) -> Option<SimulatedGraph> {
        let objects = world().end_capture_of(self.number);
        objects.map(SimulatedGraph)
    }
}

impl Drop for SimulatedStream {
    fn drop(&mut self) {
        self.destroy();
        world().forget_stream(self.number);
    }
}

/// A graph that was captured, or one that was made from it. Where the last one goes, those who asked
/// are told that the capture has ended.
#[derive(Clone, Debug)]
pub struct SimulatedGraph(Arc<Objects>);

impl SimulatedGraph {
    /// How many wait to be told.
    pub fn objects(&self) -> usize {
        self.0.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::backend::streams::{Place, StreamSource, Streams};
    use crate::error::Status;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn streams() -> &'static dyn Streams {
        StreamSource::Simulated.streams().unwrap()
    }

    fn device() -> SimulatedBackend {
        SimulatedBackend::new(1 << 20).with_streams()
    }

    #[test]
    fn only_a_device_made_so_has_streams() {
        let device = SimulatedBackend::new(1 << 20);
        assert_eq!(device.stream_source(), StreamSource::Immediate);
        assert_eq!(
            device.with_streams().stream_source(),
            StreamSource::Simulated
        );
    }

    #[test]
    fn an_event_is_done_when_all_work_before_it_is() {
        let device = device();
        let (one, two) = (SimulatedStream::of(&device), SimulatedStream::new());
        let domain = device.domain().unwrap();
        assert_eq!(streams().domain(one.handle()), Ok(domain));
        assert_eq!(streams().domain(two.handle()), Ok(domain));
        let [first, later, all] = [(); 3].map(|()| streams().create_event(domain).unwrap());
        let done = || [first, later, all].map(|event| streams().is_done(event).unwrap());
        assert_eq!(done(), [true; 3]);
        one.queue();
        streams().record(first, one.handle()).unwrap();
        one.queue();
        // The second stream waits for the first one's first piece of work, and works then itself.
        streams().wait(two.handle(), first).unwrap();
        two.queue();
        streams().record(later, two.handle()).unwrap();
        streams().record_all(all).unwrap();
        let moment = one.now();
        one.queue();
        assert!(one.follows(moment) && !two.follows(moment));
        two.finish();
        assert_eq!(done(), [false; 3]);
        one.finish_one();
        assert_eq!(done(), [true, true, false]);
        assert!(two.is_idle() && !one.is_idle());
        one.finish();
        assert_eq!(done(), [true; 3]);
        for event in [first, later, all] {
            streams().destroy_event(event);
        }
        let context = device.context();
        let calls = context.calls();
        assert_eq!((context.events(), calls.creates, calls.destroys), (0, 3, 3));
        assert_eq!((calls.records, calls.waits, calls.queries), (3, 1, 12));
        assert_eq!(context.violations(), [""; 0]);
    }

    #[test]
    fn each_device_has_a_default_stream() {
        let (one, two) = (device(), device());
        one.default_stream().block();
        one.default_stream().block();
        assert_eq!(one.is_default_idle(), Ok(false));
        assert_eq!(two.is_default_idle(), Ok(true));
        let event = streams().create_event(one.domain().unwrap()).unwrap();
        one.record_default(event).unwrap();
        assert_eq!(streams().is_done(event), Ok(false));
        one.default_stream().finish_one();
        assert_eq!(one.is_default_idle(), Ok(true));
        // Waiting lets work be done, also that of others that it waits for.
        let stream = SimulatedStream::of(&one);
        stream.queue();
        streams().record(event, stream.handle()).unwrap();
        two.context().make_current();
        streams().wait(Stream::DEFAULT, event).unwrap();
        two.default_stream().queue();
        two.default_stream().finish();
        assert_eq!(two.is_default_idle(), Ok(false));
        streams()
            .synchronize(two.context().domain(), false)
            .unwrap();
        assert_eq!(two.is_default_idle(), Ok(true));
        assert!(stream.is_idle());
        assert_eq!(streams().place(Stream::DEFAULT), Ok(Place::DEFAULT));
        assert!(two.record_default(event).is_err(), "of another context");
        assert_eq!(two.context().violations().len(), 1);
    }

    #[test]
    fn handles_come_again_and_keys_do_not() {
        let device = device();
        let mut keys = BTreeSet::new();
        let mut handle = None;
        for _ in 0..10 {
            let stream = SimulatedStream::of(&device);
            assert_eq!(*handle.get_or_insert(stream.handle()), stream.handle());
            assert!(keys.insert(streams().place(stream.handle()).unwrap().key));
            let event = streams().create_event(device.domain().unwrap()).unwrap();
            stream.queue();
            streams().record(event, stream.handle()).unwrap();
            stream.destroy();
            assert_eq!(streams().is_done(event), Ok(false));
            stream.finish();
            drop(stream);
            assert_eq!(streams().is_done(event), Ok(true));
            streams().destroy_event(event);
        }
        assert_eq!(device.context().violations(), [""; 0]);
        let gone = handle.unwrap();
        let event = streams().create_event(device.domain().unwrap()).unwrap();
        assert!(streams().place(gone).is_err());
        assert!(streams().domain(gone).is_err());
        assert!(streams().record(event, gone).is_err());
        assert!(streams().wait(gone, event).is_err());
        streams().destroy_event(event);
        streams().destroy_event(event);
        assert!(streams().is_done(event).is_err());
        assert_eq!(device.context().violations().len(), 6);
    }

    #[test]
    fn a_graph_tells_when_it_and_its_copies_are_gone() {
        let device = device();
        let (one, two) = (SimulatedStream::of(&device), SimulatedStream::of(&device));
        let capture = one.begin_capture();
        two.join_capture(&one);
        let [first, second] = [&one, &two].map(|it| streams().place(it.handle()).unwrap());
        assert_eq!(
            (first.capture, second.capture),
            (Some(capture), Some(capture))
        );
        assert_ne!(first.key, second.key);
        let event = streams().create_event(device.domain().unwrap()).unwrap();
        assert!(streams().record(event, one.handle()).is_err());
        assert!(streams().wait(two.handle(), event).is_err());
        assert!(streams().record_all(event).is_err());
        assert_eq!(device.context().violations().len(), 3);
        let ended = Arc::new(AtomicBool::new(false));
        streams().retain(capture, ended.clone()).unwrap();
        let graph = one.end_capture().unwrap();
        assert_eq!(graph.objects(), 1);
        assert_eq!(streams().place(two.handle()).unwrap().capture, None);
        let executable = graph.clone();
        drop(graph);
        assert!(!ended.load(Ordering::Acquire));
        drop(executable);
        assert!(ended.load(Ordering::Acquire));
        assert_eq!(Arc::strong_count(&ended), 1);

        // One that fails tells at its end.
        let capture = one.begin_capture();
        ended.store(false, Ordering::Release);
        streams().retain(capture, ended.clone()).unwrap();
        one.invalidate_capture();
        let place = streams().place(one.handle()).unwrap();
        assert_eq!(place.capture, Some(Capture { id: 0, graph: 0 }));
        assert!(!ended.load(Ordering::Acquire));
        assert!(one.end_capture().is_none());
        assert!(ended.load(Ordering::Acquire));
        assert!(streams().retain(capture, ended.clone()).is_err());
        assert_eq!(Arc::strong_count(&ended), 1);
    }

    #[test]
    fn the_chosen_call_fails_once() {
        let device = device();
        let stream = SimulatedStream::of(&device);
        let error = BackendError::failed(Status::Driver, "injected");
        let run = || {
            let event = streams().create_event(device.domain()?)?;
            let used = streams()
                .place(stream.handle())
                .and_then(|_| streams().record(event, stream.handle()))
                .and_then(|()| streams().is_done(event))
                .and_then(|_| streams().wait(stream.handle(), event))
                .and_then(|()| device.is_default_idle());
            streams().destroy_event(event);
            used
        };
        for call in 1..=6 {
            device.context().fail_call(call, error.clone());
            assert_eq!(run(), Err(error.clone()), "call {call}");
            assert_eq!(device.context().events(), 0);
            assert_eq!(run(), Ok(true));
        }
    }
}
