//! One swarm at a time: tests of one binary run on threads, and two swarms on two cores would make
//! each other miss their deadlines. Nextest runs each test in a process of its own; there
//! `.config/nextest.toml` limits the tests that start daemons to one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the one test that may start daemons.
#[derive(Debug)]
pub struct Turn {
    _turn: MutexGuard<'static, ()>,
}

/// Waits until no other test of this process runs daemons.
pub fn turn() -> Turn {
    static TURN: Mutex<()> = Mutex::new(());
    // If a test failed while it held the lock, its daemons have ended with their handles.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Turn { _turn: turn }
}
