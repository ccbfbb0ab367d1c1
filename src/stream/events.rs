#![forbid(unsafe_code)]
//! Events that are not in use, kept for the next records.

use crate::alloc::host_memory::TryPush;
use crate::backend::streams::Event;

/// So many unused events are kept in all. A program that has had so many outstanding will again; each takes
/// a few hundred bytes of the driver's.
const MOST: usize = 32_768;

/// Unused events. An event belongs to the domain (a CUDA context) that it was made in.
#[derive(Debug, Default)]
pub struct Events {
    unused: Vec<Event>,
    /// Events to destroy: there were too many, or there was no memory to keep them.
    surplus: Vec<Event>,
}

impl Events {
    /// Takes an unused event of a domain.
    pub fn take(&mut self, domain: usize) -> Option<Event> {
        // Nearly always all are of one domain.
        let at = self
            .unused
            .iter()
            .rposition(|event| event.domain == domain)?;
        Some(self.unused.swap_remove(at))
    }

    /// Keeps an event for later.
    pub fn put(&mut self, event: Event) {
        // An event that cannot even be noted stays with the driver until its context ends.
        if self.unused.len() >= MOST {
            let _ = self.surplus.try_push(event);
        } else {
            let _ = self.unused.try_push(event);
        }
    }

    /// Takes the events that should be destroyed.
    pub fn take_surplus(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.surplus)
    }

    /// Takes all events that are kept.
    pub fn take_unused(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.unused)
    }

    /// Whether there are any to destroy.
    pub fn has_surplus(&self) -> bool {
        !self.surplus.is_empty()
    }

    /// Takes one event, whichever.
    pub fn take_any(&mut self) -> Option<Event> {
        self.unused.pop().or_else(|| self.surplus.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_serves_its_own_domain_only() {
        let mut events = Events::default();
        events.put(Event {
            handle: 1,
            domain: 7,
        });
        assert_eq!(events.take(8), None);
        assert_eq!(events.take(7).map(|event| event.handle), Some(1));
        assert_eq!(events.take(7), None);
    }

    #[test]
    fn there_is_a_bound() {
        let mut events = Events::default();
        for handle in 0..MOST + 3 {
            events.put(Event { handle, domain: 0 });
        }
        assert!(events.has_surplus());
        assert_eq!(events.take_surplus().len(), 3);
        assert!(!events.has_surplus());
    }
}
