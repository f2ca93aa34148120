//! The simulator's event queue: the instants at which something is due, each with its events.
//!
//! Events of the same time are taken in the order of their insertion, so a run is reproducible. The
//! events of an instant are a chain through the places where all events lie. A large swarm has millions
//! of events at few instants.

use murmurate_protocol::Time;
use std::collections::BTreeMap;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// The events of one instant: the first and the last.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// An event, and the one after it at the same instant.
#[derive(Debug)]
struct Place<E> {
    event: Option<E>,
    next: u32,
}

/// Events by time, then by order of insertion.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    /// The instant whose events are being taken.
    current: Option<(Time, Chain)>,
    later: BTreeMap<Time, Chain>,
    places: Vec<Place<E>>,
    free: Vec<u32>,
}

impl<E> Queue<E> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self {
            current: None,
            later: BTreeMap::new(),
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, at: Time, event: E) {
        let place = self.place(event);
        if let Some((now, current)) = &mut self.current {
            if at == *now {
                append(&mut self.places, current, place);
                return;
            }
            if at < *now {
                // The instant has begun only if one of its events was taken; its rest waits.
                let (now, current) = (*now, *current);
                self.later.insert(now, current);
                self.current = None;
            }
        }
        let one = Chain {
            first: place,
            last: place,
        };
        let places = &mut self.places;
        self.later
            .entry(at)
            .and_modify(|chain| append(places, chain, place))
            .or_insert(one);
    }

    fn place(&mut self, event: E) -> u32 {
        let place = Place {
            event: Some(event),
            next: NONE,
        };
        match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        }
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        let current = self.current.map(|(now, _)| now);
        current.or_else(|| self.later.first_key_value().map(|(at, _)| *at))
    }

    /// Removes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        let (now, mut chain) = self.current.take().or_else(|| self.later.pop_first())?;
        let place = &mut self.places[chain.first as usize];
        let event = place.event.take().expect("a place in a chain has an event");
        self.free.push(chain.first);
        chain.first = place.next;
        self.current = (chain.first != NONE).then_some((now, chain));
        Some((now, event))
    }
}

fn append<E>(places: &mut [Place<E>], chain: &mut Chain, place: u32) {
    places[chain.last as usize].next = place;
    chain.last = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_insertion() {
        let mut queue = Queue::new();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b'), (9, 'e')] {
            queue.push(Time::from_nanos(at), name);
        }
        let mut out = String::new();
        while let Some((_, name)) = queue.pop() {
            out.push(name);
            if name == 'a' {
                // A reused slot must not change the order.
                queue.push(Time::from_nanos(5), 'f');
            }
        }
        assert_eq!(out, "abcdfe");
        assert!(queue.pop().is_none());
    }

    #[test]
    fn an_earlier_event_comes_before_the_rest_of_an_instant() {
        let at = Time::from_nanos;
        let mut queue = Queue::new();
        for (ns, name) in [(5, 'a'), (5, 'b')] {
            queue.push(at(ns), name);
        }
        assert_eq!(
            (queue.next_at(), queue.pop()),
            (Some(at(5)), Some((at(5), 'a')))
        );
        for (ns, name) in [(3, 'c'), (5, 'd')] {
            queue.push(at(ns), name);
        }
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [(at(3), 'c'), (at(5), 'b'), (at(5), 'd')]);
        assert_eq!(queue.next_at(), None);
    }
}
