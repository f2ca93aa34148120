//! A session: the handle that opens and accepts streams.

use crate::mux::shared::{Guard, Shared};
use crate::mux::{MuxError, Receiver, Sender, tasks};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

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

impl std::ops::Add for Volume {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
        }
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
        let shared = Arc::new(Shared::new(first));
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

    /// Equality of sessions, not of handles.
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
