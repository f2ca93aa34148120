//! Accepts HTTP connections, a bounded number of them, and ends those that make no progress, so that
//! half-open requests cost neither memory nor the pages' answers.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures::task::AtomicWaker;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

/// Connections at a time. Beyond that the oldest without an answer yet is closed.
const CONNECTIONS_MAX: usize = 64;

/// Time of a connection to send its request, to take the answer, or to send the next one.
const PROGRESS_WAIT: Duration = Duration::from_secs(5);

/// Pause after an error of the system, such as too many open files.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// State that a connection shares with the listener.
#[derive(Debug, Default)]
struct Slot {
    answered: AtomicBool,
    closed: AtomicBool,
    gone: AtomicBool,
    reader: AtomicWaker,
}

#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    slots: VecDeque<Arc<Slot>>,
}

#[derive(Debug)]
pub(super) struct Guest {
    stream: TcpStream,
    slot: Arc<Slot>,
    until: Pin<Box<Sleep>>,
}

/// The address of a connection's other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller(pub(super) SocketAddr);

impl Connected<IncomingStream<'_, Door>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        Self(*stream.remote_addr())
    }
}

impl Door {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            slots: VecDeque::new(),
        }
    }

    /// A slot for a new connection. Closes the oldest one if there are too many.
    fn slot(&mut self) -> Arc<Slot> {
        self.slots.retain(|slot| !slot.gone.load(Ordering::Acquire));
        if self.slots.len() >= CONNECTIONS_MAX {
            let answered = |slot: &Arc<Slot>| slot.answered.load(Ordering::Acquire);
            let oldest = self.slots.iter().position(|slot| !answered(slot));
            if let Some(slot) = self.slots.remove(oldest.unwrap_or(0)) {
                slot.closed.store(true, Ordering::Release);
                slot.reader.wake();
            }
        }
        let slot = Arc::new(Slot::default());
        self.slots.push_back(Arc::clone(&slot));
        slot
    }
}

impl Listener for Door {
    type Io = Guest;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guest, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    let guest = Guest {
                        stream,
                        slot: self.slot(),
                        until: Box::pin(tokio::time::sleep(PROGRESS_WAIT)),
                    };
                    return (guest, from);
                }
                Err(error) => {
                    tracing::debug!(%error, "no HTTP connection was accepted");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Guest {
    /// Fails once the connection was closed from here, or made no progress for too long.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.slot.reader.register(cx.waker());
        if self.slot.closed.load(Ordering::Acquire) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        match self.until.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    fn progressed(&mut self) {
        self.slot.answered.store(true, Ordering::Release);
        self.until.as_mut().reset(Instant::now() + PROGRESS_WAIT);
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Err(error) = self.poll_end(cx) {
            return Poll::Ready(Err(error));
        }
        // Bytes that come one by one are no progress: only an answer is.
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.poll_end(cx) {
            return Poll::Ready(Err(error));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            self.progressed();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.slot.gone.store(true, Ordering::Release);
    }
}
