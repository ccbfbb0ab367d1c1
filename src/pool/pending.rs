#![forbid(unsafe_code)]
//! Memory that waits for work of the device: asking what is done, making a stream wait, and waiting.
//!
//! All of it is done with the pool's lock released. One thread at a time asks; the events that it asks
//! about stay where they are meanwhile.

use super::calls::{Locked, in_backend};
use super::growth::host_memory;
use super::oom::{Pending, Steps, StreamPending};
use super::ordered::Turn;
use super::{Guard, Open, Pool};
use crate::alloc::{Block, Request};
use crate::backend::streams::{Event, Stream, StreamKey, Streams};
use crate::backend::{Backend, BackendError, BackendResult};
use crate::config::environment;
use crate::error::{Result, Status};
use crate::log::{self, Level};
use crate::stream::barrier::Covered;
use crate::stream::table::{About, Waiting};
use crate::stream::{Query, SlotId};
use crate::text::text;
use std::time::{Duration, Instant};

/// Between two looks at what is outstanding: so long at first, twice as long each time, at most so long.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// One look finds the end of so many more rounds of events.
pub(super) const MOST_ROUNDS: u32 = 64;

/// The pauses between looks.
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// What became of the question to the default stream.
enum Default {
    /// All that was queued on it is done. What was taken to ask it.
    Idle(Option<Event>),
    /// An event stands for it.
    Recorded(Event),
    /// It cannot be asked now. What was taken to ask it.
    Unknown(Option<Event>),
}

/// Waits for all work of some contexts.
pub(super) fn wait_for_all(
    streams: &dyn Streams,
    domains: &[usize],
    spares_captures: bool,
) -> Covered {
    let waited = domains
        .iter()
        .try_for_each(|&domain| streams.synchronize(domain, spares_captures));
    if waited.is_ok() {
        Covered::Done
    } else {
        Covered::Not
    }
}

/// Lets an event of each of some contexts stand for all their work. Events are taken from `unused`, and
/// put there if it fails.
pub(super) fn record_all(
    streams: &dyn Streams,
    domains: &[usize],
    unused: &mut Vec<Event>,
) -> BackendResult<Covered> {
    let mut events = Vec::new();
    let room = events.try_reserve_exact(domains.len());
    room.and_then(|()| unused.try_reserve(domains.len()))
        .map_err(|_| BackendError::OutOfMemory)?;
    let recorded = domains.iter().try_for_each(|&domain| {
        let kept = unused.iter().position(|event| event.domain == domain);
        let event = match kept {
            Some(at) => unused.swap_remove(at),
            None => streams.create_event(domain)?,
        };
        events.push(event);
        streams.record_all(event)
    });
    match recorded {
        Ok(()) => Ok(Covered::By(events)),
        Err(error) => {
            unused.append(&mut events);
            Err(error)
        }
    }
}

/// Waits for all work of a backend's own context.
fn synchronize(backend: &dyn Backend) -> BackendResult<()> {
    let Some(streams) = backend.stream_source().streams() else {
        return Ok(());
    };
    streams.synchronize(backend.domain()?, false)
}

/// What became of waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    /// Work has set memory free, or another thread has.
    pub(super) is_changed: bool,
    /// It took time.
    pub(super) has_waited: bool,
}

/// What giving back may wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Whatever work there is, for as long as it takes.
    Endless,
    /// Until then, the work of the stream that the call was passed.
    Until(Option<Instant>, Stream),
}

/// Asks about events, and keeps those that are done. The newest of a stream comes first; if that is done,
/// the older ones are.
fn ask(streams: &dyn Streams, queries: &mut Vec<Query>) -> u64 {
    let (mut current, mut is_decided) = (None, false);
    let mut asked = 0;
    queries.retain(|query| {
        let is_first = match query.about {
            About::Barrier => true,
            About::Stream { slot, .. } => current.replace(slot) != Some(slot),
        };
        if is_first {
            is_decided = false;
        }
        if is_decided {
            return false;
        }
        asked += 1;
        let is_done = streams.is_done(query.event).unwrap_or_else(|error| {
            log::log(Level::Warning, || {
                text!("an event cannot be asked: {error}")
            });
            false
        });
        // The newest that is done, or an old one that is not, decides for the rest.
        is_decided = is_first == is_done;
        is_done
    });
    asked
}

/// Asks until it is so. Time being up is a failure.
fn wait_until(
    deadline: Option<Instant>,
    mut is_done: impl FnMut() -> BackendResult<bool>,
) -> BackendResult<()> {
    let mut pauses = Pauses::new();
    while !is_done()? {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(BackendError::failed(
                Status::Driver,
                "queued work may still use the memory, and does not end in time",
            ));
        }
        std::thread::sleep(pauses.next());
    }
    Ok(())
}

fn ask_default(backend: &dyn Backend, streams: &dyn Streams, unused: Option<Event>) -> Default {
    match backend.is_default_idle() {
        Ok(true) => return Default::Idle(unused),
        Ok(false) => {}
        Err(_) => return Default::Unknown(unused),
    }
    let event = match unused {
        Some(event) => Ok(event),
        None => backend
            .domain()
            .and_then(|domain| streams.create_event(domain)),
    };
    match event {
        Ok(event) if backend.record_default(event).is_ok() => Default::Recorded(event),
        Ok(event) => Default::Unknown(Some(event)),
        Err(_) => Default::Unknown(None),
    }
}

impl Open {
    /// What waits for streams, for a report.
    pub(super) fn pending(&self) -> Pending {
        let mut pending = Pending::default();
        for Waiting {
            key,
            lane,
            bytes,
            blocks,
        } in self.streams.waiting(&self.engine)
        {
            pending.add(StreamPending {
                stream: key.0,
                bytes,
                blocks,
                largest: self.engine.largest_run_with(lane),
            });
        }
        pending
    }

    /// The default stream, if something waits for it that no event stands for.
    fn default_to_ask(&self) -> Option<SlotId> {
        self.streams
            .find(StreamKey::DEFAULT)
            .filter(|&slot| self.streams.clock(slot).lacks_record())
    }

    /// Whether waiting may set memory free.
    pub(super) fn has_outstanding(&self) -> bool {
        self.streams.has_events() || self.default_to_ask().is_some() || self.polling
    }
}

impl Pool {
    /// Asks once which outstanding work is done, and takes what that sets free. Never waits. `true`: some
    /// was.
    pub(super) fn collect_once<'a>(&'a self, mut guard: Guard<'a>) -> Locked<'a, bool> {
        if !guard.engine.is_separate() {
            return Ok((guard, false));
        }
        let mut any = guard.collect_captures();
        let Some(streams) = guard.source.streams() else {
            return Ok((guard, any));
        };
        if guard.polling || in_backend() {
            return Ok((guard, any));
        }
        let open = &mut *guard;
        let mut queries = std::mem::take(&mut open.queries);
        queries.clear();
        // Without memory for all of them, those that are there are asked.
        let _ = open.streams.add_queries(&mut queries);
        let default = open.default_to_ask();
        if queries.is_empty() && default.is_none() && !open.streams.events.has_surplus() {
            open.queries = queries;
            return Ok((guard, any));
        }
        let surplus = open.streams.events.take_surplus();
        let default = default.map(|slot| {
            let unused = open
                .domain
                .and_then(|domain| open.streams.events.take(domain));
            (slot, open.streams.clock_mut(slot).begin_record(), unused)
        });
        open.polling = true;
        let (mut guard, (asked, answer)) = self.unlocked_aside(guard, |backend| {
            let asked = ask(streams, &mut queries);
            let answer = default.map(|(_, _, unused)| ask_default(backend, streams, unused));
            for event in surplus {
                streams.destroy_event(event);
            }
            (asked, answer)
        })?;
        let open = &mut *guard;
        open.polling = false;
        open.calls.event_queries += asked;
        any |= !queries.is_empty();
        for query in queries.drain(..) {
            open.streams.is_done(&mut open.engine, query);
        }
        open.queries = queries;
        if let (Some((slot, number, _)), Some(answer)) = (default, answer) {
            match answer {
                Default::Idle(unused) => {
                    any = true;
                    if let Some(event) = unused {
                        open.streams.events.put(event);
                    }
                    open.streams.advance(&mut open.engine, slot, number + 1);
                }
                Default::Recorded(event) => open.recorded(slot, number, Some(event), true),
                Default::Unknown(event) => open.recorded(slot, number, event, false),
            }
        }
        if any && open.waiters > 0 {
            self.tell_waiters(&mut guard);
        }
        Ok((guard, any))
    }

    /// Takes all that finished work has set free. Never waits.
    pub(super) fn collect<'a>(&'a self, mut guard: Guard<'a>) -> Locked<'a, bool> {
        let mut any = false;
        for _ in 0..MOST_ROUNDS {
            let more;
            (guard, more) = self.collect_once(guard)?;
            if !more {
                break;
            }
            any = true;
        }
        Ok((guard, any))
    }

    /// For a request that would fail: finds out when all work of all streams is done, where something waits
    /// for a record that nobody may ever make. By an event for everything, which is waited for like others;
    /// where that cannot be had, by waiting, if there is nothing else to wait for. `true`: some is done.
    pub(super) fn cover_orphans<'a>(&'a self, guard: Guard<'a>) -> Locked<'a, bool> {
        let may_wait = !guard.has_outstanding() && !environment().oom_wait.is_zero();
        // An event for everything breaks captures.
        let may_record = !guard.captures.are_open();
        let domains = guard.streams.orphans_domains().map_err(host_memory)?;
        self.end_orphans(guard, domains, move |streams, domains, unused| {
            if may_record {
                if let Ok(covered) = record_all(streams, domains, unused) {
                    return covered;
                }
            }
            if may_wait {
                wait_for_all(streams, domains, !may_record)
            } else {
                Covered::Not
            }
        })
    }

    /// Before memory is given back on demand: takes what finished work has set free. Of streams that were
    /// not seen again nobody knows what is finished; if nothing else is outstanding, it waits for them.
    pub(super) fn settle<'a>(&'a self, guard: Guard<'a>) -> Result<Guard<'a>> {
        let (guard, _) = self.collect(guard)?;
        if guard.has_outstanding() {
            return Ok(guard);
        }
        let spares_captures = guard.captures.are_open();
        let domains = guard.streams.orphans_domains().map_err(host_memory)?;
        let (guard, _) = self.end_orphans(guard, domains, move |streams, domains, _| {
            wait_for_all(streams, domains, spares_captures)
        })?;
        Ok(guard)
    }

    /// For each of these contexts finds out what becomes of all its work: `cover` is asked of the context, and
    /// of all whose work may use its memory where unordered frees count on that. `true`: some is done.
    pub(super) fn end_orphans<'a>(
        &'a self,
        mut guard: Guard<'a>,
        domains: Vec<Option<usize>>,
        cover: impl Fn(&dyn Streams, &[usize], &mut Vec<Event>) -> Covered,
    ) -> Locked<'a, bool> {
        let mut is_done = false;
        let Some(streams) = guard.source.streams().filter(|_| !in_backend()) else {
            return Ok((guard, is_done));
        };
        for domain in domains {
            let open = &mut *guard;
            let below = open.streams.begin_barrier(domain).map_err(host_memory)?;
            let everywhere = domain.is_none() && open.unordered.is_some();
            let known = domain.or(open.domain);
            let mut unused = Vec::new();
            let last = if everywhere {
                &*open.users
            } else {
                known.as_slice()
            };
            if unused.try_reserve(last.len()).is_ok() {
                unused.extend(
                    last.iter()
                        .filter_map(|&user| open.streams.events.take(user)),
                );
            }
            let (covered, users, mut unused) = {
                let outcome;
                (guard, outcome) = self.unlocked_aside(guard, |backend| {
                    let users = known
                        .map_or_else(|| backend.domain(), Ok)
                        .and_then(|domain| {
                            if everywhere {
                                streams.users(domain)
                            } else {
                                Ok(vec![domain])
                            }
                        });
                    let covered = match &users {
                        Ok(users) => cover(streams, users, &mut unused),
                        Err(_) => Covered::Not,
                    };
                    (covered, users.unwrap_or_default(), unused)
                })?;
                outcome
            };
            is_done |= matches!(covered, Covered::Done);
            let open = &mut *guard;
            if let Covered::By(events) = &covered {
                open.calls.event_records += events.len() as u64;
            }
            if domain.is_none() {
                open.domain = users.first().copied().or(open.domain);
            }
            if everywhere {
                open.users = users;
            }
            unused.extend(open.streams.end_barrier(&mut open.engine, below, covered));
            for event in unused {
                open.streams.events.put(event);
            }
        }
        Ok((guard, is_done))
    }

    /// Gives the driver back the events that are kept for later.
    pub(super) fn destroy_unused_events<'a>(&'a self, mut guard: Guard<'a>) -> Result<Guard<'a>> {
        let unused = guard.streams.events.take_unused();
        let Some(streams) = guard.source.streams().filter(|_| !unused.is_empty()) else {
            return Ok(guard);
        };
        let (guard, ()) = self.unlocked_aside(guard, |_| {
            for event in unused {
                streams.destroy_event(event);
            }
        })?;
        Ok(guard)
    }

    /// Waits a moment, or until something is freed or a backend call ends.
    fn pause<'a>(&'a self, mut guard: Guard<'a>, pause: Duration) -> Result<Guard<'a>> {
        self.begin_wait(&mut guard);
        let waited = self.call_ended.wait_timeout(guard.0, pause);
        Ok(self.end_wait(waited.ok().map(|(state, _)| state))?)
    }

    /// Something was freed: requests that wait look again.
    pub(super) fn tell_waiters(&self, guard: &mut Guard<'_>) {
        guard.calls_ended += 1;
        self.call_ended.notify_all();
    }

    /// Waits until outstanding work sets memory free, or another thread does. `false`: nothing is
    /// outstanding, or time is up.
    pub(super) fn wait_for_pending<'a>(
        &'a self,
        mut guard: Guard<'a>,
        deadline: Option<Instant>,
        steps: &mut Steps,
    ) -> Locked<'a, bool> {
        let begun = Instant::now();
        let wait;
        (guard, wait) = self.wait_for_change(guard, deadline)?;
        if wait.has_waited {
            let waited = begun.elapsed().as_nanos() as u64;
            guard.calls.oom_waits += 1;
            guard.calls.oom_wait_ns += waited;
            steps.waits += 1;
            steps.wait_ns += waited;
        }
        Ok((guard, wait.is_changed))
    }

    /// The same, whatever for.
    pub(super) fn wait_for_change<'a>(
        &'a self,
        mut guard: Guard<'a>,
        deadline: Option<Instant>,
    ) -> Locked<'a, Wait> {
        let mut wait = Wait::default();
        if in_backend() || !guard.engine.is_separate() {
            return Ok((guard, wait));
        }
        let mut pauses = Pauses::new();
        loop {
            let (changes, epoch) = (guard.calls_ended, guard.epoch);
            (guard, wait.is_changed) = self.collect_once(guard)?;
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if wait.is_changed || is_late || !guard.has_outstanding() {
                return Ok((guard, wait));
            }
            wait.has_waited = true;
            guard = self.pause(guard, pauses.next())?;
            if guard.calls_ended != changes || guard.epoch != epoch {
                wait.is_changed = true;
                return Ok((guard, wait));
            }
        }
    }

    /// Makes the stream of a request wait for work of others, where memory that they have freed would
    /// serve it, and serves it. Not the default stream: what is allocated there may be used anywhere at
    /// once.
    pub(super) fn make_stream_wait<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        turn: Turn,
    ) -> Locked<'a, Option<Block>> {
        if turn.slot.is_none() || turn.stream.is_default() || guard.polling || in_backend() {
            return Ok((guard, None));
        }
        let Some(streams) = guard.source.streams() else {
            return Ok((guard, None));
        };
        let open = &mut *guard;
        let is_recorded = |lane, number: u64| {
            let slot = open.streams.of_lane(lane);
            slot.is_some_and(|slot| open.streams.clock(slot).covering(number + 1).is_some())
        };
        let Some(waits) = open
            .engine
            .plan_wait(request, is_recorded)
            .map_err(host_memory)?
        else {
            return Ok((guard, None));
        };
        let mut events = Vec::new();
        if events.try_reserve_exact(waits.len()).is_err() {
            return Ok((guard, None));
        }
        for &(lane, below) in &waits {
            let slot = open.streams.of_lane(lane);
            events.extend(slot.and_then(|slot| open.streams.clock(slot).covering(below)));
        }
        // The events are not recorded anew meanwhile.
        open.polling = true;
        let (mut guard, waited) = self.unlocked_aside(guard, |_| {
            events
                .iter()
                .try_for_each(|&event| streams.wait(turn.stream, event))
        })?;
        guard.polling = false;
        if waited.is_err() {
            return Ok((guard, None));
        }
        guard.calls.stream_waits += events.len() as u64;
        let block = guard.engine.gather(request, &waits).map_err(host_memory)?;
        Ok((guard, block))
    }

    /// Waits until the one stream of a plain pool has done what may still use its free memory.
    pub(super) fn quiesce(
        backend: &dyn Backend,
        home: Option<StreamKey>,
        patience: Patience,
    ) -> BackendResult<()> {
        match (home, patience) {
            (None, _) => Ok(()),
            // While a capture is in the default stream's way, only everything can be waited for.
            (Some(StreamKey::DEFAULT), Patience::Endless) => {
                backend.wait_for_default().or_else(|_| synchronize(backend))
            }
            (Some(StreamKey::DEFAULT), Patience::Until(deadline, _)) => {
                wait_until(deadline, || backend.is_default_idle())
            }
            (Some(_), Patience::Endless) => synchronize(backend),
            (Some(_), Patience::Until(deadline, stream)) => {
                let Some(streams) = backend.stream_source().streams() else {
                    return Ok(());
                };
                let domain = streams.domain(stream)?;
                let event = streams.create_event(domain)?;
                let waited = streams
                    .record(event, stream)
                    .and_then(|()| wait_until(deadline, || streams.is_done(event)));
                streams.destroy_event(event);
                waited
            }
        }
    }

    /// Gives the driver back what belongs to streams: at the end of a pool.
    pub(super) fn close_streams(open: &mut Open) {
        let Some(streams) = open.source.streams() else {
            return;
        };
        // What fails here fails again when memory is given back.
        if open.engine.is_separate() {
            let _ = synchronize(&*open.backend);
            let others = open.streams.domains().unwrap_or_default();
            for domain in others.into_iter().flatten() {
                let _ = streams.synchronize(domain, false);
            }
        } else {
            let _ = Self::quiesce(&*open.backend, open.home, Patience::Endless);
        }
        while let Some(event) = open.streams.take_event() {
            streams.destroy_event(event);
        }
    }
}
