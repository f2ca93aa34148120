//! Ensures that frames of a link come between its `LinkUp` and its `LinkDown`.

use crate::net::NetEvent;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::Permit;

/// Open while events of a link may pass. The link's readers and the network's task share it.
#[derive(Clone, Debug)]
pub(super) struct Latch(Arc<Mutex<bool>>);

impl Latch {
    /// Creates an open latch.
    pub(super) fn open() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Sends an event unless the latch is shut. Returns whether it was sent.
    pub(super) fn pass(&self, permit: Permit<'_, NetEvent>, event: NetEvent) -> bool {
        // The lock is held while sending, so no event can follow after `shut` has returned.
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *open {
            permit.send(event);
        }
        *open
    }

    /// Shuts the latch for good.
    pub(super) fn shut(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
