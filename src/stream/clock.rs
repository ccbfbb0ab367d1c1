#![forbid(unsafe_code)]
//! A stream's own time: numbered records.
//!
//! Each record of an event on a stream has a number, and the numbers rise. What is freed in the order
//! of the stream is freed *at* the number of the next record: when an event of that number or a later
//! one is done, so is all work that was queued on the stream before the free.
//!
//! A number is taken under the pool's lock, before its event is recorded without the lock. So whatever
//! was freed at a number was freed before any event of that number or a later one was recorded,
//! in whatever order threads record and report them.

use crate::alloc::HostMemoryExhausted;
use crate::backend::streams::Event;
use std::collections::VecDeque;

/// Where a stream stands.
#[derive(Debug, Default)]
pub struct Clock {
    /// The number of the next record.
    next: u64,
    /// One more than the highest number that anything waits for.
    wanted: u64,
    /// One more than the highest number that an event was recorded with.
    recorded: u64,
    /// Records below this number are done.
    done: u64,
    /// Recorded events that are not known to be done, by their numbers.
    events: VecDeque<(u64, Event)>,
}

impl Clock {
    /// The number at which something is freed now.
    pub fn now(&self) -> u64 {
        self.next
    }

    /// Records below this number are done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// One more than the highest number that an event was recorded with.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Something waits for the next record; gives its number.
    pub fn want(&mut self) -> u64 {
        self.wanted = self.next + 1;
        self.next
    }

    /// Whether something waits for a record that was not made.
    pub fn lacks_record(&self) -> bool {
        self.wanted > self.recorded.max(self.done)
    }

    /// One more than the highest number that anything waits for.
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Makes room for the event of a record that is about to be made.
    pub fn reserve(&mut self) -> Result<(), HostMemoryExhausted> {
        self.events.try_reserve(1).map_err(|_| HostMemoryExhausted)
    }

    /// Takes the number of a record, which is made next.
    pub fn begin_record(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// An event was recorded with a number. Gives the event back if nobody needs it, or there is no room
    /// for it: then a later record does.
    pub fn end_record(&mut self, number: u64, event: Event) -> Option<Event> {
        if number < self.done || self.reserve().is_err() {
            return Some(event);
        }
        self.recorded = self.recorded.max(number + 1);
        let at = self.events.partition_point(|&(other, _)| other < number);
        self.events.insert(at, (number, event));
        None
    }

    /// Events that are not known to be done, in order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (u64, Event)> + DoubleEndedIterator + '_ {
        self.events.iter().copied()
    }

    /// The first event whose end means that everything below a number is done.
    pub fn covering(&self, below: u64) -> Option<Event> {
        let at = self
            .events
            .partition_point(|&(number, _)| number + 1 < below);
        self.events.get(at).map(|&(_, event)| event)
    }

    /// Everything below a number is done. Hands the events that are of no use any more to `recycle`.
    pub fn advance(&mut self, done: u64, mut recycle: impl FnMut(Event)) {
        if done <= self.done {
            return;
        }
        self.done = done;
        // A number that was never given out by `begin_record` is not done before it is.
        debug_assert!(done <= self.next, "only records that were begun are done");
        while let Some(&(number, event)) = self.events.front() {
            if number >= done {
                break;
            }
            self.events.pop_front();
            recycle(event);
        }
    }

    /// Whether nothing is outstanding.
    pub fn is_idle(&self) -> bool {
        self.events.is_empty() && !self.lacks_record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(handle: usize) -> Event {
        Event { handle, domain: 0 }
    }

    fn recycled(clock: &mut Clock, done: u64) -> Vec<usize> {
        let mut handles = Vec::new();
        clock.advance(done, |event| handles.push(event.handle));
        handles
    }

    #[test]
    fn a_free_is_done_with_the_record_after_it() {
        let mut clock = Clock::default();
        let freed = clock.want();
        assert!(clock.lacks_record());
        let number = clock.begin_record();
        assert!(number >= freed);
        assert!(
            clock.want() > number,
            "what is freed now waits for the next one"
        );
        assert_eq!(clock.end_record(number, event(1)), None);
        assert!(clock.lacks_record());
        assert_eq!(recycled(&mut clock, number + 1), [1]);
        assert!(freed < clock.done());
    }

    #[test]
    fn records_may_be_reported_in_any_order() {
        let mut clock = Clock::default();
        let (first, second) = (clock.begin_record(), clock.begin_record());
        clock.end_record(second, event(2));
        clock.end_record(first, event(1));
        assert_eq!(
            clock.events().map(|(number, _)| number).collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(clock.covering(1).map(|event| event.handle), Some(1));
        assert_eq!(clock.covering(2).map(|event| event.handle), Some(2));
        assert_eq!(clock.covering(3), None);
        assert_eq!(recycled(&mut clock, 2), [1, 2]);
        // Reported after its successor was found done.
        let (first, second) = (clock.begin_record(), clock.begin_record());
        clock.end_record(second, event(4));
        assert_eq!(recycled(&mut clock, second + 1), [4]);
        assert_eq!(clock.end_record(first, event(3)), Some(event(3)));
        assert!(clock.is_idle());
    }
}
