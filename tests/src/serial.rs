//! Tests of one binary run on threads, and a swarm keeps about one core busy. Two swarms may run at a time,
//! in the order in which they were asked for. Nextest runs each test in a process of its own; there
//! `.config/nextest.toml` limits the tests that start daemons in the same way.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Swarms that may run at the same time.
const PLACES: usize = 2;

/// Who waits, and for what.
struct Queue {
    /// The ticket of the next one who asks.
    next: u64,
    /// The ticket of the one who is served.
    served: u64,
    free: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    next: 0,
    served: 0,
    free: PLACES,
});
static CHANGED: Condvar = Condvar::new();

/// Held by a test that may start daemons.
#[derive(Debug)]
pub struct Turn {
    places: usize,
}

/// Waits until at most one other test of this process runs daemons.
pub fn turn() -> Turn {
    Turn::take(1)
}

/// Waits until no other test of this process runs daemons, and keeps others waiting. For tests that count
/// deadlines or void rounds, that must be in time, or that start many daemons.
pub fn quiet_turn() -> Turn {
    Turn::take(PLACES)
}

/// If a test failed while it held the lock, the queue is still right.
fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turn {
    fn take(places: usize) -> Self {
        let mut queue = lock();
        let ticket = queue.next;
        queue.next += 1;
        while queue.served != ticket || queue.free < places {
            queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.served += 1;
        queue.free -= places;
        CHANGED.notify_all();
        Self { places }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock().free += self.places;
        CHANGED.notify_all();
    }
}
