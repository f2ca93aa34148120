//! The simulator's event queue: a heap of (time, sequence).
//!
//! Events of the same time are taken in the order of their insertion, so a run is reproducible. The
//! heap moves only keys of 24 bytes; the events stay in place.

use murmurate_protocol::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events by time, then by order of insertion.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<(Time, u64, u32)>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    sequence: u64,
}

impl<E> Queue<E> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        }
    }

    /// Inserts an event.
    pub(crate) fn push(&mut self, at: Time, event: E) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                (self.slots.len() - 1) as u32
            }
        };
        self.heap.push(Reverse((at, self.sequence, slot)));
        self.sequence += 1;
    }

    /// When the next event is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        let event = self.slots[slot as usize]
            .take()
            .expect("a key in the heap has its event");
        self.free.push(slot);
        Some((at, event))
    }
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
}
