//! Running a program, with everything checked after every operation.

use crate::device::Device;
use crate::ledger::{Turn, UNORDERED, fits};
use crate::op::{Gives, MIB, Op, STREAMS, Setup};
use crate::state::{Block, Places, State, StreamState};
use luma::backend::simulated::{SimulatedBackend, SimulatedStream, StreamCalls};
use luma::backend::streams::Stream;
use luma::backend::{BackendError, Pages, SEGMENT_ALIGN};
use luma::size::{GRAIN, round_down, round_up};
use luma::{Error, Pool, PoolConfig, Status};
use std::sync::{Arc, Mutex, MutexGuard};

pub type Checked<T = ()> = Result<T, String>;

const INJECTED: &str = "injected failure";

/// A pool and its model.
pub struct Run {
    pub(super) setup: Setup,
    pub(super) device: Arc<Device>,
    pub(super) pool: Pool,
    state: Arc<Mutex<State>>,
    /// The streams of the program now.
    slots: [usize; STREAMS],
    pub(super) limit: u64,
    pub(super) alloc_calls: u64,
    pub(super) free_calls: u64,
    pub(super) out_of_memory: u64,
    pub(super) peak: u64,
    /// Calls of the device, and of the streams, that were made to fail.
    armed: [Option<u64>; 2],
}

/// Calls that can fail.
fn counted(calls: StreamCalls) -> u64 {
    let StreamCalls {
        places,
        domains,
        creates,
        destroys: _,
        records,
        queries,
        waits,
        retains,
        synchronizations,
    } = calls;
    places + domains + creates + records + queries + waits + retains + synchronizations
}

impl Run {
    pub fn new(setup: Setup) -> Checked<Self> {
        let simulated = match setup.gives {
            Gives::Grains => SimulatedBackend::new(setup.capacity),
            Gives::WholePages => SimulatedBackend::with_pages(setup.capacity, Pages::of(2 * MIB)),
            Gives::Segments => SimulatedBackend::without_pages(setup.capacity),
        };
        let device = Arc::new(Device::new(simulated, setup.has_barriers));
        let config = PoolConfig {
            preset: setup.preset,
            ..PoolConfig::default()
        };
        let pool = Pool::with_backend(device.clone(), &config).map_err(|e| e.to_string())?;
        let default = StreamState {
            stream: None,
            is_destroyed: false,
            released: None,
            capture: None,
        };
        let state = State {
            places: Places {
                default: device.simulated.default_stream(),
                streams: vec![default],
                captures: Vec::new(),
            },
            ledger: Default::default(),
            live: Vec::new(),
            home: None,
            is_separate: false,
            is_certain: true,
        };
        let state = Arc::new(Mutex::new(state));
        let checked = state.clone();
        device.seen().check = Some(Box::new(move |interval| {
            checked.lock().expect("no panic").fault_of_return(interval)
        }));
        let mut run = Self {
            setup,
            device,
            pool,
            state,
            slots: [0; STREAMS],
            limit: 0,
            alloc_calls: 0,
            free_calls: 0,
            out_of_memory: 0,
            peak: 0,
            armed: [None; 2],
        };
        for slot in 1..STREAMS {
            run.slots[slot] = run.new_stream();
        }
        Ok(run)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    pub(super) fn new_stream(&mut self) -> usize {
        let stream = SimulatedStream::of(&self.device.simulated);
        let mut state = self.state();
        state.places.streams.push(StreamState {
            stream: Some(stream),
            is_destroyed: false,
            released: None,
            capture: None,
        });
        state.places.streams.len() - 1
    }

    pub(super) fn handle(&self, stream: usize) -> Stream {
        let state = self.state();
        let stream = state.places.streams[stream].stream.as_ref();
        stream.map_or(Stream::DEFAULT, SimulatedStream::handle)
    }

    /// Whether a call failed in this operation that was made to.
    pub(super) fn fired(&self) -> bool {
        self.device_fired() || self.streams_fired()
    }

    fn device_fired(&self) -> bool {
        self.armed[0].is_some_and(|call| self.device.simulated.calls() >= call)
    }

    pub(super) fn streams_fired(&self) -> bool {
        self.armed[1].is_some_and(|call| self.stream_calls() >= call)
    }

    fn stream_calls(&self) -> u64 {
        counted(self.device.simulated.context().calls())
    }

    fn pass(&self, turn: Turn) {
        let memory = self.device.seen().memory.clone();
        self.state().pass(turn, &memory);
    }

    /// Does one operation and checks everything.
    pub fn step(&mut self, op: &Op) -> Checked {
        let calls = self.device.simulated.context().calls();
        let was_separate = self.state().is_separate;
        self.perform(op)?;
        if self.streams_fired() {
            let mut state = self.state();
            state.ledger.doubt();
            for block in &mut state.live {
                block.is_certain = false;
            }
            state.is_certain &= was_separate;
        }
        let now = self.device.simulated.context().calls();
        let state = self.state();
        let is_plain = !state.is_separate && state.is_certain;
        drop(state);
        let gives_back = matches!(
            op,
            Op::EmptyCache | Op::SetLimit { .. } | Op::Allocate { .. } | Op::Churn { .. }
        );
        if is_plain && !gives_back {
            let asked = |calls: StreamCalls| (calls.creates, calls.records, calls.queries);
            agree!(asked(now), asked(calls), "events of a pool with one stream");
        }
        self.check()?;
        if self.device_fired() {
            self.armed[0] = None;
        }
        if self.streams_fired() {
            self.armed[1] = None;
        }
        Ok(())
    }

    fn perform(&mut self, op: &Op) -> Checked {
        match *op {
            Op::Allocate {
                stream,
                bytes,
                align,
            } => self.allocate(self.slots[stream], bytes, align),
            Op::Free { stream, place } => self.free(self.slots[stream], place),
            Op::FreeOwn { place } => {
                let state = self.state();
                let Some(block) = pick(&state.live, place) else {
                    return Ok(());
                };
                let own = state.live[block].stream;
                let stream = if state.places.streams[own].is_destroyed {
                    self.slots[place % STREAMS]
                } else {
                    own
                };
                drop(state);
                self.free(stream, place)
            }
            Op::AllocateUnordered { bytes, align } => self.allocate_unordered(bytes, align),
            Op::FreeUnordered { place } => self.free_unordered(place),
            Op::FreeBadly { stream, place } => self.free_badly(stream, place),
            Op::RecordStream { stream, place } => self.record_stream(self.slots[stream], place),
            Op::ReleaseStream { stream } => self.release(self.slots[stream]),
            Op::Queue { stream } => {
                let id = self.slots[stream];
                let state = self.state();
                let of = &state.places.streams[id];
                match &of.stream {
                    None => state.places.default.queue(),
                    // In a capture nothing is queued; and its owner promised.
                    Some(stream) if of.capture.is_none() && of.released.is_none() => {
                        stream.queue();
                    }
                    Some(_) => {}
                }
                Ok(())
            }
            Op::Finish { stream } => {
                let state = self.state();
                match &state.places.streams[self.slots[stream]].stream {
                    None => state.places.default.finish(),
                    Some(stream) => stream.finish(),
                }
                Ok(())
            }
            Op::FinishOne { stream } => {
                let state = self.state();
                match &state.places.streams[self.slots[stream]].stream {
                    None => state.places.default.finish_one(),
                    Some(stream) => stream.finish_one(),
                }
                Ok(())
            }
            Op::FinishDestroyed => {
                let state = self.state();
                for of in state.places.streams.iter().filter(|of| of.is_destroyed) {
                    of.stream.iter().for_each(SimulatedStream::finish);
                }
                Ok(())
            }
            Op::Replace { stream: 0 } => Ok(()),
            Op::Replace { stream } => {
                self.destroy(self.slots[stream]);
                self.slots[stream] = self.new_stream();
                Ok(())
            }
            Op::Churn { count } => {
                for _ in 0..count {
                    let stream = self.new_stream();
                    self.allocate(stream, 512, 0)?;
                    let state = self.state();
                    let last = state.live.last().map(|block| block.stream);
                    let place = state.live.len().wrapping_sub(1);
                    if let Some(it) = &state.places.streams[stream].stream {
                        it.queue();
                    }
                    drop(state);
                    if last == Some(stream) {
                        self.free(stream, place)?;
                    }
                    self.destroy(stream);
                }
                Ok(())
            }
            Op::BeginCapture { stream } => self.begin_capture(self.slots[stream]),
            Op::JoinCapture { stream, origin } => {
                let mut state = self.state();
                let (stream, origin) = (self.slots[stream], self.slots[origin]);
                let places = &mut state.places;
                let capture = places.streams[origin].capture;
                let is_free = places.streams[stream].capture.is_none();
                if stream == 0 || capture.is_none() || !is_free || places.is_broken(origin) {
                    return Ok(());
                }
                let [one, other] = [stream, origin].map(|id| places.streams[id].stream.as_ref());
                if let (Some(one), Some(other)) = (one, other) {
                    one.join_capture(other);
                }
                places.streams[stream].capture = capture;
                Ok(())
            }
            Op::Invalidate { stream } => {
                let mut state = self.state();
                let of = &state.places.streams[self.slots[stream]];
                if let (Some(stream), Some(capture)) = (&of.stream, of.capture) {
                    stream.invalidate_capture();
                    state.places.captures[capture].is_invalid = true;
                }
                Ok(())
            }
            Op::EndCapture { stream } => self.end_capture(self.slots[stream]),
            Op::CloneGraph { place } => {
                let mut state = self.state();
                if let Some(at) = pick(&state.places.captures, place) {
                    let graphs = &mut state.places.captures[at].graphs;
                    let copy = graphs.last().cloned();
                    graphs.extend(copy);
                }
                Ok(())
            }
            Op::DropGraph { place } => {
                let mut state = self.state();
                if let Some(at) = pick(&state.places.captures, place) {
                    state.places.captures[at].graphs.pop();
                }
                Ok(())
            }
            Op::EmptyCache => {
                let done = self.pool.empty_cache();
                if let Err(error) = done {
                    require!(self.fired(), "empty_cache: {error}");
                }
                Ok(())
            }
            Op::SetLimit { bytes } => {
                match self.pool.set_limit(bytes) {
                    Ok(()) => self.limit = bytes,
                    Err(error) => {
                        let refused = error.status() == Status::InvalidValue;
                        require!(refused || self.fired(), "set_limit: {error}");
                    }
                }
                Ok(())
            }
            Op::Stats => self.check_stats(),
            Op::FailBackend { call } => {
                self.armed[0] = Some(self.device.simulated.calls() + call);
                let error = BackendError::failed(Status::Driver, INJECTED);
                self.device.simulated.fail_call(call, error);
                Ok(())
            }
            Op::FailStream { call } => {
                self.armed[1] = Some(self.stream_calls() + call);
                let error = BackendError::failed(Status::Driver, INJECTED);
                self.device.simulated.context().fail_call(call, error);
                Ok(())
            }
        }
    }

    /// Nobody had memory before that went.
    pub(super) fn forget_lost(&self) {
        let lost = std::mem::take(&mut self.device.seen().lost);
        let mut state = self.state();
        lost.into_iter()
            .for_each(|interval| state.ledger.take(interval));
    }

    /// What a call came to that its stream or a failure may have refused. `true`: it was refused.
    fn refused<T>(&self, turn: Turn, answer: &Result<T, Error>) -> Checked<bool> {
        let is_broken = self.state().places.is_broken(turn.stream);
        match answer {
            Ok(_) => {
                require!(!is_broken, "a call succeeded in a capture that is broken");
                Ok(false)
            }
            Err(error) if is_broken => {
                let may = error.status() == Status::InvalidValue || self.fired();
                require!(may, "{error}");
                Ok(true)
            }
            Err(error) => {
                require!(self.fired(), "failed without a failure: {error}");
                Ok(true)
            }
        }
    }

    pub(super) fn allocate(&mut self, id: usize, bytes: u64, align: u64) -> Checked {
        let turn = self.state().places.turn(id);
        let (size, align) = (round_up(bytes, GRAIN).unwrap_or(u64::MAX), align.max(GRAIN));
        let (must, was_certain) = {
            let memory = self.device.seen().memory.clone();
            let state = self.state();
            let has_place = fits(&state.ready(turn, &memory), size, align);
            // A capture asks for nothing: what is done is known to it from earlier calls.
            let may_demand = state.is_certain && (turn.capture.is_none() || self.setup.is_watchful);
            let gives_back = turn.capture.is_none()
                && state.is_certain
                && self.setup.preset != luma::Preset::Xla
                && (state.is_separate || state.home == Some(id));
            let returnable = if gives_back {
                self.device.seen().returnable(&state.settled(&memory))
            } else {
                0
            };
            let must = (has_place && may_demand)
                || self.can_grow(memory.bytes() - returnable, size, align);
            (must, state.is_certain)
        };
        let calls = self.device.simulated.context().calls();
        let handle = self.handle(id);
        self.alloc_calls += 1;
        let answer = if id == 0 {
            self.pool.allocate(bytes, align)
        } else {
            self.pool.allocate_on(bytes, align, handle)
        };
        self.forget_lost();
        let waits = self.device.simulated.context().calls().waits - calls.waits;
        let addr = match answer {
            Ok(addr) => addr.ok_or("no address for some bytes")?,
            Err(error) if error.status() == Status::OutOfMemory => {
                self.out_of_memory += 1;
                require!(
                    !must || self.fired(),
                    "refused what there is room for: {error}"
                );
                self.pass(turn);
                return Ok(());
            }
            Err(error) => {
                self.refused(turn, &Err::<(), _>(error))?;
                if !self.state().places.is_broken(id) && was_certain && !self.streams_fired() {
                    self.pass(turn);
                }
                return Ok(());
            }
        };
        self.refused(turn, &Ok(()))?;
        if must && !self.fired() {
            agree!(waits, 0, "waits for what there is room for");
        }
        self.handed_out(turn, addr, bytes, align)?;
        self.pass(turn);
        Ok(())
    }

    /// A request was served.
    pub(super) fn handed_out(&mut self, turn: Turn, addr: u64, bytes: u64, align: u64) -> Checked {
        let size = round_up(bytes, GRAIN).unwrap_or(u64::MAX);
        agree!(addr % align, 0, "alignment of {addr:#x}");
        let usable = self.pool.usable_size(addr).ok_or("no usable size")?;
        require!(usable >= size, "{usable} bytes for {size}");
        let block = Block {
            addr,
            size: usable,
            requested: bytes,
            // Its order is the default stream's if it has none.
            stream: if turn.stream == UNORDERED {
                0
            } else {
                turn.stream
            },
            capture: turn.capture,
            users: Vec::new(),
            graphs: Vec::new(),
            is_certain: true,
        };
        let interval = block.interval();
        let memory = self.device.seen().memory.clone();
        let mut state = self.state();
        require!(
            !state.live().touches(interval),
            "{interval:x?} is live already"
        );
        let within = memory.within(interval).bytes();
        agree!(within, usable, "memory behind {interval:x?}");
        for (place, freed) in state.ledger.within(interval) {
            if let Some(fault) = freed.fault(turn, &state.places) {
                return Err(format!(
                    "{interval:x?} for {turn:?}: of {place:x?} {fault}: {freed:?}"
                ));
            }
        }
        state.ledger.take(interval);
        state.live.push(block);
        let allocated = state.allocated();
        drop(state);
        self.peak = self.peak.max(allocated);
        Ok(())
    }

    /// Whether a request fits beside all that is held.
    pub(super) fn can_grow(&self, held: u64, size: u64, align: u64) -> bool {
        let as_segment = if align <= SEGMENT_ALIGN {
            Some(size)
        } else {
            size.checked_add(align - GRAIN)
        };
        let is_paged = self.setup.preset == luma::Preset::Default;
        let need = match self.setup.gives {
            Gives::Grains if is_paged => Some(size),
            Gives::WholePages if is_paged => round_up(size, 2 * MIB).min(as_segment),
            _ => as_segment,
        };
        let most = match self.limit {
            0 => self.setup.capacity,
            limit => limit.min(self.setup.capacity),
        };
        need.is_some_and(|need| held + need <= round_down(most, GRAIN))
    }

    fn free(&mut self, id: usize, place: usize) -> Checked {
        let state = self.state();
        let Some(at) = pick(&state.live, place) else {
            return Ok(());
        };
        let block = state.live[at].clone();
        let turn = state.places.turn(id);
        drop(state);
        let handle = self.handle(id);
        let calls = self.device.simulated.calls();
        let answer = if id == 0 {
            self.pool.free(block.addr)
        } else {
            self.pool.free_on(block.addr, handle)
        };
        agree!(
            self.device.simulated.calls(),
            calls,
            "backend calls of a free"
        );
        if self.refused(turn, &answer)? {
            let usable = self.pool.usable_size(block.addr);
            agree!(usable, Some(block.size), "size after a free that failed");
            return Ok(());
        }
        self.free_calls += 1;
        let mut state = self.state();
        let block = state.live.swap_remove(at);
        // Before the freed block waits for anything, the pool begins to tell streams apart.
        drop(state);
        self.before_pass(turn, &block);
        let mut state = self.state();
        let freed = state.freed(&block, turn);
        state.ledger.put(block.interval(), freed);
        drop(state);
        self.pass(turn);
        Ok(())
    }

    fn before_pass(&self, turn: Turn, block: &Block) {
        let mut memory = self.device.seen().memory.clone();
        memory.remove(block.interval());
        self.state().pass(turn, &memory);
    }

    fn free_badly(&mut self, slot: usize, place: usize) -> Checked {
        let id = self.slots[slot];
        let state = self.state();
        let addr = match pick(&state.live, place) {
            Some(at) => state.live[at].addr + 1,
            None => 4096,
        };
        drop(state);
        match self.pool.free_on(addr, self.handle(id)) {
            Ok(()) => Err(format!("freed {addr:#x}")),
            Err(error) => {
                let may = error.status() == Status::InvalidPointer || self.fired();
                require!(may, "a bad free: {error}");
                Ok(())
            }
        }
    }

    fn record_stream(&mut self, id: usize, place: usize) -> Checked {
        let state = self.state();
        let Some(at) = pick(&state.live, place) else {
            return Ok(());
        };
        let addr = state.live[at].addr;
        let turn = state.places.turn(id);
        drop(state);
        let answer = self.pool.record_stream(addr, self.handle(id));
        let refused = self.refused(turn, &answer)?;
        let mut state = self.state();
        let block = &mut state.live[at];
        if refused {
            block.is_certain = false;
            return Ok(());
        }
        match turn.capture {
            Some(capture) => block.graphs.push(capture),
            None if !block.users.contains(&id) => block.users.push(id),
            None => {}
        }
        drop(state);
        self.pass(turn);
        Ok(())
    }
}

pub(super) fn pick<T>(list: &[T], place: usize) -> Option<usize> {
    (!list.is_empty()).then(|| place % list.len())
}
