//! A stream of a control connection with libp2p's traits.

use futures::io::{AsyncRead, AsyncWrite};
use quinn::{RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The most bytes that one write copies. Allocators return larger blocks to the system each time,
/// and the page faults cost more than the copy.
const WRITE: usize = 64 << 10;

/// Both directions of a QUIC stream. Dropping it finishes the written data and stops reading.
pub struct Stream {
    send: SendStream,
    receive: RecvStream,
    finished: bool,
}

impl Stream {
    pub(super) fn new((send, receive): (SendStream, RecvStream)) -> Self {
        Self {
            send,
            receive,
            finished: false,
        }
    }

    /// quinn's two halves, which can write and read chunks without copying.
    #[must_use]
    pub fn into_parts(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = ready!(self.get_mut().receive.poll_read(cx, buf));
        Poll::Ready(read.map_err(Into::into))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let send = Pin::new(&mut self.get_mut().send);
        let written = ready!(send.poll_write(cx, &buf[..buf.len().min(WRITE)]));
        Poll::Ready(written.map_err(Into::into))
    }

    /// Does nothing, because written data is sent as fast as the path allows.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the writing half. Only the first call has an effect.
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.finished {
            return Poll::Ready(Ok(()));
        }
        this.finished = true;
        let finished = this.send.finish();
        Poll::Ready(finished.map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error)))
    }
}
