//! The streams, captures and blocks of a program, as the model knows them.

use crate::intervals::{Interval, Intervals};
use crate::ledger::{CaptureId, Freed, Ledger, StreamId, Turn, UNORDERED, Wait, World};
use luma::backend::simulated::{DefaultStream, SimulatedGraph, SimulatedMoment, SimulatedStream};

#[derive(Debug)]
pub struct StreamState {
    /// `None`: the default stream.
    pub stream: Option<SimulatedStream>,
    pub is_destroyed: bool,
    /// What was recorded when its owner said that it ends.
    pub released: Option<SimulatedMoment>,
    pub capture: Option<CaptureId>,
}

#[derive(Debug, Default)]
pub struct CaptureState {
    pub is_open: bool,
    pub is_invalid: bool,
    pub graphs: Vec<SimulatedGraph>,
}

/// A live block.
#[derive(Clone, Debug)]
pub struct Block {
    pub addr: u64,
    pub size: u64,
    pub requested: u64,
    /// The stream it was allocated on.
    pub stream: StreamId,
    /// The capture it was allocated in.
    pub capture: Option<CaptureId>,
    /// Streams and captures that were named as users.
    pub users: Vec<StreamId>,
    pub graphs: Vec<CaptureId>,
    pub is_certain: bool,
}

impl Block {
    pub fn interval(&self) -> Interval {
        (self.addr, self.addr + self.size)
    }
}

#[derive(Debug)]
pub struct Places {
    pub default: DefaultStream,
    pub streams: Vec<StreamState>,
    pub captures: Vec<CaptureState>,
}

impl World for Places {
    fn follows(&self, stream: StreamId, moment: SimulatedMoment) -> bool {
        if stream == UNORDERED {
            return false;
        }
        match &self.streams[stream].stream {
            None => self.default.follows(moment),
            Some(stream) => stream.follows(moment),
        }
    }

    fn is_alive(&self, capture: CaptureId) -> bool {
        let capture = &self.captures[capture];
        capture.is_open || !capture.graphs.is_empty()
    }
}

impl Places {
    pub fn now(&self, stream: StreamId) -> SimulatedMoment {
        match &self.streams[stream].stream {
            None => self.default.now(),
            Some(stream) => stream.now(),
        }
    }

    pub fn turn(&self, stream: StreamId) -> Turn {
        let capture = self.streams[stream].capture;
        Turn { stream, capture }
    }

    pub fn is_broken(&self, stream: StreamId) -> bool {
        let capture = self.streams[stream].capture;
        capture.is_some_and(|capture| self.captures[capture].is_invalid)
    }

    /// A capture is over for all streams in it.
    pub fn close_capture(&mut self, capture: CaptureId) {
        self.captures[capture].is_open = false;
        for stream in &mut self.streams {
            if stream.capture == Some(capture) {
                stream.capture = None;
            }
        }
    }
}

/// All that the model knows.
#[derive(Debug)]
pub struct State {
    pub places: Places,
    pub ledger: Ledger,
    pub live: Vec<Block>,
    /// The stream of the first call.
    pub home: Option<StreamId>,
    /// Whether there was a call on another one.
    pub is_separate: bool,
    /// Whether home and whether it is separate are certain: no call failed before they were.
    pub is_certain: bool,
}

impl State {
    pub fn live(&self) -> Intervals {
        Intervals::of(self.live.iter().map(Block::interval))
    }

    pub fn allocated(&self) -> u64 {
        self.live.iter().map(|block| block.size).sum()
    }

    /// A call on a stream came as far as the pool's books.
    pub fn pass(&mut self, turn: Turn, memory: &Intervals) {
        let home = if turn.capture.is_some() {
            self.home
        } else {
            Some(*self.home.get_or_insert(turn.stream))
        };
        if !self.is_separate && (turn.capture.is_some() || home != Some(turn.stream)) {
            self.separate(memory);
        }
        if turn.capture.is_none() {
            self.places.streams[turn.stream].released = None;
            self.record(turn.stream);
        }
    }

    /// Whatever waits for an event of a stream has it, if the pool records any.
    pub fn record(&mut self, stream: StreamId) {
        if self.is_separate && stream != 0 {
            self.ledger.recorded(stream, self.places.now(stream));
        }
    }

    /// What is free now waits for the next record of the only stream so far.
    pub fn separate(&mut self, memory: &Intervals) {
        if self.is_separate {
            return;
        }
        self.is_separate = true;
        let home = self.home.unwrap_or(0);
        let used = self.ledger.intervals(|_| true);
        let wait = Wait {
            stream: home,
            recorded: None,
        };
        for (_, freed) in &mut self.ledger.freed {
            freed.waits = vec![wait];
        }
        for interval in memory.without(&self.live()).without(&used).iter() {
            let fresh = Freed {
                uses: Vec::new(),
                stream: home,
                captures: Vec::new(),
                inside: None,
                is_used: false,
                waits: vec![wait],
                is_certain: self.is_certain,
            };
            self.ledger.freed.push((interval, fresh));
        }
    }

    /// What a block becomes that is freed now.
    pub fn freed(&self, block: &Block, turn: Turn) -> Freed {
        let places = &self.places;
        let own = block.capture.filter(|&capture| places.is_alive(capture));
        let mut captures: Vec<CaptureId> = block.graphs.clone();
        captures.extend(own);
        captures.extend(turn.capture);
        captures.retain(|&capture| places.is_alive(capture));
        captures.sort_unstable();
        captures.dedup();
        let mut users = block.users.clone();
        users.retain(|&user| user != turn.stream || turn.capture.is_some());
        let is_inside = own.is_some() && own == turn.capture && captures.len() == 1;
        let is_used = !users.is_empty() || (is_inside && !block.users.is_empty());
        let mut uses: Vec<_> = users.iter().map(|&user| places.now(user)).collect();
        let mut waits: Vec<_> = users
            .iter()
            .map(|&stream| Wait {
                stream,
                recorded: places.streams[stream].released,
            })
            .collect();
        if !is_inside {
            uses.push(places.now(turn.stream));
            waits.push(Wait {
                stream: turn.stream,
                recorded: None,
            });
        }
        let is_plain = captures.is_empty();
        Freed {
            uses,
            stream: turn.stream,
            is_certain: block.is_certain
                && self.is_certain
                && (is_plain || (is_inside && !is_used)),
            captures,
            inside: own.filter(|_| is_inside),
            is_used,
            waits,
        }
    }

    /// What a block becomes that is freed now in no stream's order.
    pub fn freed_unordered(&self, block: &Block) -> Freed {
        let places = &self.places;
        let graphs = block.graphs.iter().copied().chain(block.capture);
        Freed {
            uses: (0..places.streams.len()).map(|id| places.now(id)).collect(),
            stream: UNORDERED,
            captures: graphs.filter(|&capture| places.is_alive(capture)).collect(),
            inside: None,
            is_used: !block.users.is_empty(),
            waits: Vec::new(),
            // When the pool asks what is done is up to it.
            is_certain: false,
        }
    }

    /// Free memory that a request on this stream must be served from.
    pub fn ready(&self, turn: Turn, memory: &Intervals) -> Intervals {
        let free = memory.without(&self.live());
        let used = self.ledger.intervals(|_| true);
        let is_plain =
            !self.is_separate && turn.capture.is_none() && self.home == Some(turn.stream);
        if is_plain {
            return free;
        }
        let becomes_separate = !self.is_separate;
        let ready = self
            .ledger
            .intervals(|freed| !becomes_separate && freed.is_ready(turn, &self.places));
        let fresh = if becomes_separate && self.home.is_some() {
            Intervals::default()
        } else {
            free.without(&used)
        };
        Intervals::of(ready.iter().chain(fresh.iter()))
    }

    /// Free memory that the pool knows or finds to be anybody's.
    pub fn settled(&self, memory: &Intervals) -> Intervals {
        let free = memory.without(&self.live());
        if !self.is_separate {
            let home = self.home.unwrap_or(0);
            let is_idle = self.places.now(home).is_done();
            return if is_idle { free } else { Intervals::default() };
        }
        free.without(
            &self
                .ledger
                .intervals(|freed| !freed.is_settled(&self.places)),
        )
    }

    /// Why memory may not go back to the device now.
    pub fn fault_of_return(&self, interval: Interval) -> Option<String> {
        if let Some(block) = self.live.iter().find(|block| {
            let (from, to) = block.interval();
            from < interval.1 && interval.0 < to
        }) {
            return Some(format!("{interval:x?} given back under {block:x?}"));
        }
        // The device itself waits for the default stream.
        if !self.is_separate && self.home == Some(0) {
            return None;
        }
        let unfinished = |(_, freed): &&(Interval, Freed)| !freed.is_finished(&self.places);
        let found = self.ledger.within(interval).find(unfinished);
        found.map(|found| format!("{interval:x?} given back while work uses {found:x?}"))
    }
}
