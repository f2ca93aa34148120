//! One swarm at a time: tests of one binary run on threads, and two swarms on two cores would make
//! each other miss their deadlines.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the one test that may start daemons.
#[derive(Debug)]
pub struct Turn {
    _turn: MutexGuard<'static, ()>,
}

/// Waits until no other test of this process runs daemons.
pub fn turn() -> Turn {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed holding it has no daemons any more: they ended with their handles.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Turn { _turn: turn }
}
