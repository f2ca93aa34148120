//! The observer's handle: one holder feeds it, others read. It decides nothing.

use super::{Observer, Status};
use murmurate_protocol::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The observer, shared between the driver that feeds it and the server that shows it.
#[derive(Clone, Debug)]
pub struct StatusHandle {
    observer: Arc<Mutex<Observer>>,
    clock: Arc<dyn Clock>,
}

/// The driver's clock, so that what is shown and what the peer sees are the same time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now.
    fn now(&self) -> Time;
}

impl StatusHandle {
    /// Shares an observer.
    pub fn new(observer: Observer, clock: Arc<dyn Clock>) -> Self {
        Self {
            observer: Arc::new(Mutex::new(observer)),
            clock,
        }
    }

    /// Changes or reads it. Short: the HTTP interface waits meanwhile.
    pub fn with<T>(&self, f: impl FnOnce(&mut Observer) -> T) -> T {
        f(&mut self.lock())
    }

    /// The status now.
    pub fn status(&self) -> Status {
        let now = self.clock.now();
        self.lock().status(now)
    }

    fn lock(&self) -> MutexGuard<'_, Observer> {
        // A panic elsewhere leaves at worst a half-updated display.
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
