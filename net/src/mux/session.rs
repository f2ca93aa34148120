//! A session: the handle that opens and accepts streams.

use crate::mux::state::State;
use crate::mux::{MuxError, Receiver, Sender, tasks};
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that dialled.
    Dialer,
    /// The end that was dialled.
    Listener,
}

/// Bytes of frames, with their headers, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// What the handles, streams and tasks of a session share.
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

/// A session. Clones refer to the same one, which ends when they and all streams are dropped.
#[derive(Clone)]
pub struct Session(Arc<Guard>);

impl Session {
    /// Starts a session over a connection. The remote may stand still for `patience` within a
    /// frame. Must be called inside a tokio runtime.
    pub fn start<C>(connection: C, side: Side, patience: Duration) -> Self
    where
        C: AsyncRead + AsyncWrite + Send + 'static,
    {
        let first = match side {
            Side::Dialer => 0,
            Side::Listener => 1,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(first)),
            work: Notify::new(),
            room: Notify::new(),
            ended: watch::Sender::new(false),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let (from, to) = tokio::io::split(connection);
        tokio::spawn(tasks::write(Arc::clone(&shared), to, patience));
        tokio::spawn(tasks::read(Arc::clone(&shared), from, patience));
        Self(Arc::new(Guard(shared)))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    fn halves(&self, id: u32) -> (Sender, Receiver) {
        let guard = Arc::clone(&self.0);
        (
            Sender::new(Arc::clone(&guard), id),
            Receiver::new(guard, id),
        )
    }

    /// Opens a stream in both directions. The remote notices it with its first bytes.
    ///
    /// # Errors
    /// If the session has ended, or too many streams are open.
    pub fn open_bi(&self) -> Result<(Sender, Receiver), MuxError> {
        let id = self.shared().state().open()?;
        Ok(self.halves(id))
    }

    /// Waits for the next stream that the remote opened.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn accept_bi(&self) -> Result<(Sender, Receiver), MuxError> {
        let next = poll_fn(|cx| match self.shared().state().accept(cx.waker()) {
            Ok(Some(id)) => Poll::Ready(Ok(id)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        });
        Ok(self.halves(next.await?))
    }

    /// Why the session ended; `None` while it is open.
    #[must_use]
    pub fn ended(&self) -> Option<MuxError> {
        self.shared().state().ended().cloned()
    }

    /// Waits until the session has ended.
    pub async fn closed(&self) {
        self.shared().over().await;
    }

    /// Ends the session and all its streams at once.
    pub fn close(&self) {
        self.shared().end(MuxError::Closed);
    }

    /// Bytes so far.
    #[must_use]
    pub fn volume(&self) -> Volume {
        Volume {
            sent: self.shared().sent.load(Ordering::Relaxed),
            received: self.shared().received.load(Ordering::Relaxed),
        }
    }

    /// Whether both handles refer to the same session.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("volume", &self.volume())
            .finish_non_exhaustive()
    }
}
