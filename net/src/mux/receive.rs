//! The receiving half of a stream.

use crate::mux::MuxError;
use crate::mux::shared::Guard;
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// The receiving half of a stream. Dropping it tells the remote to stop.
#[derive(Debug)]
pub struct Receiver {
    session: Arc<Guard>,
    id: u32,
}

impl Receiver {
    pub(super) fn new(session: Arc<Guard>, id: u32) -> Self {
        Self { session, id }
    }

    /// Waits for bytes and returns at most `max` of them; empty at the end of the stream. Safe to
    /// cancel.
    ///
    /// # Errors
    /// If the session has ended, or the remote gave the stream up.
    pub async fn read(&mut self, max: usize) -> Result<Bytes, MuxError> {
        let shared = &self.session.0;
        let (bytes, room, credit) = poll_fn(|cx| {
            let mut state = shared.state();
            let full = state.is_full();
            match state.read(self.id, max, cx.waker()) {
                Ok(Some(bytes)) => {
                    let room = full && !state.is_full();
                    Poll::Ready(Ok((bytes, room, state.has_headers())))
                }
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await?;
        if room {
            shared.room.notify_one();
        }
        if credit {
            shared.work.notify_one();
        }
        Ok(bytes)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.session.0.state().stop(self.id);
        self.session.0.work.notify_one();
        self.session.0.room.notify_one();
    }
}
