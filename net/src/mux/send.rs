//! The sending half of a stream.

use crate::mux::MuxError;
use crate::mux::shared::Guard;
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// The sending half of a stream. Dropping it gives the stream up, unless it was finished: a finished
/// stream is sent to its end.
#[derive(Debug)]
pub struct Sender {
    session: Arc<Guard>,
    id: u32,
    finished: bool,
}

impl Sender {
    pub(super) fn new(session: Arc<Guard>, id: u32) -> Self {
        let finished = false;
        Self {
            session,
            id,
            finished,
        }
    }

    /// Queues bytes without copying them. Waits while
    /// [`QUEUE_BYTES_MAX`](crate::mux::QUEUE_BYTES_MAX) are queued.
    ///
    /// # Errors
    /// If the session has ended, or the remote wants no more.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), MuxError> {
        let shared = &self.session.0;
        poll_fn(
            |cx| match shared.state().queue(self.id, &bytes, cx.waker()) {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        )
        .await?;
        shared.work.notify_one();
        Ok(())
    }

    /// Ends the stream after the bytes written so far.
    ///
    /// # Errors
    /// If the session has ended, or the remote wants no more.
    pub fn finish(&mut self) -> Result<(), MuxError> {
        self.session.0.state().finish(self.id)?;
        self.finished = true;
        self.session.0.work.notify_one();
        Ok(())
    }

    /// Gives the stream up: bytes that are not sent yet are dropped.
    pub fn reset(&mut self) {
        self.finished = true;
        self.session.0.state().reset(self.id);
        self.session.0.work.notify_one();
    }

    /// Sets the stream's urgency. Higher ones are sent first; the default is 0.
    pub fn set_urgency(&self, urgency: i32) {
        self.session.0.state().set_urgency(self.id, urgency);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.finished {
            self.reset();
        }
    }
}
