//! State that the handles, streams and tasks of a session share.

use crate::mux::MuxError;
use crate::mux::state::State;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// State that the handles, streams and tasks of a session share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// There is something to send, or the session has ended.
    pub(super) work: Notify,
    /// There is room for more unread bytes, or the session has ended.
    pub(super) room: Notify,
    ended: watch::Sender<bool>,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

impl Shared {
    /// `first` is the number of this end's first stream.
    pub(super) fn new(first: u32) -> Self {
        Self {
            state: Mutex::new(State::new(first)),
            work: Notify::new(),
            room: Notify::new(),
            ended: watch::Sender::new(false),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock; if something does, the session is broken anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the session has ended.
    pub(super) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as this.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Waits until more may be read.
    pub(super) async fn room_for_more(&self) -> Result<(), MuxError> {
        loop {
            let room = self.room.notified();
            {
                let state = self.state();
                if let Some(why) = state.ended() {
                    return Err(why.clone());
                }
                if !state.is_full() {
                    return Ok(());
                }
            }
            room.await;
        }
    }

    pub(super) fn end(&self, why: MuxError) {
        self.state().end(why);
        self.ended.send_replace(true);
        self.work.notify_one();
        self.room.notify_one();
    }
}

/// Closes the session when the last handle and stream are dropped.
#[derive(Debug)]
pub(super) struct Guard(pub(super) Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end(MuxError::Closed);
    }
}
