//! A shared handle to the observer: the driver writes through it, the server reads.

use super::why::Facts;
use super::{Observer, Status};
use murmurate_protocol::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The observer, shared between the driver that feeds it and the server that shows it.
#[derive(Clone, Debug)]
pub struct StatusHandle {
    observer: Arc<Mutex<Observer>>,
    clock: Arc<dyn Clock>,
}

/// The driver's clock. The status uses it too, so that both show the same time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now.
    fn now(&self) -> Time;
}

impl StatusHandle {
    /// Wraps an observer and the clock that it is read with.
    pub fn new(observer: Observer, clock: Arc<dyn Clock>) -> Self {
        Self {
            observer: Arc::new(Mutex::new(observer)),
            clock,
        }
    }

    /// Runs `f` on the observer under its lock. Keep `f` short, because the HTTP server waits
    /// meanwhile.
    pub fn with<T>(&self, f: impl FnOnce(&mut Observer) -> T) -> T {
        f(&mut self.lock())
    }

    /// The status now.
    pub fn status(&self) -> Status {
        let now = self.clock.now();
        self.lock().status(now)
    }

    /// Runs `f` on what is known now, under the observer's lock.
    pub fn look<T>(&self, f: impl FnOnce(&Facts<'_>) -> T) -> T {
        let now = self.clock.now();
        let mut observer = self.lock();
        let status = observer.status(now);
        f(&observer.facts(&status, now))
    }

    fn lock(&self) -> MutexGuard<'_, Observer> {
        // After a panic elsewhere, at worst the display is half updated.
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
