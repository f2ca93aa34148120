//! Keeps frames between their link's `LinkUp` and `LinkDown`.

use crate::net::NetEvent;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::Permit;

/// Open while a link's events may pass. Shared by the readers of a link and the network's task.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<Mutex<bool>>);

impl Gate {
    /// Open.
    pub(super) fn open() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Lets an event through unless the gate is shut; whether it did.
    pub(super) fn pass(&self, permit: Permit<'_, NetEvent>, event: NetEvent) -> bool {
        // Held while sending: `shut` returns only when no event can follow.
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *open {
            permit.send(event);
        }
        *open
    }

    /// Nothing passes any more.
    pub(super) fn shut(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
