//! Bulk streams: the ways that they take, their two halves, the connections that carry them, and the interface to the
//! transport that opens them to peers.
//!
//! A bulk connection's stream takes bodies as [`Bytes`] without copying them and has a priority among the
//! streams of its connection. Dropping a writer discards the bytes that were not yet sent, unless
//! it was [released](PipeWriter::release). Dropping a reader tells the other end to stop.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use murmurate_net::quic::{BulkConnection, CloseCode, RecvStream, SendStream, VarInt};
use murmurate_net::{mux, tcp};
use murmurate_protocol::PeerId;
use std::future::pending;
use std::io;
use std::time::Duration;

/// What carries a bulk stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A bulk connection over QUIC.
    Quic,
    /// A bulk connection over TLS and TCP.
    Tls,
    /// The link itself.
    Link,
}

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Chunks taken from a QUIC stream at a time: 90 kB of full packets.
const CHUNKS: usize = 64;

/// Bytes read from another kind of stream at a time.
const READ_BYTES: usize = 64 * 1024;

/// Error code of a stream that was given up.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

/// Both halves of a bulk stream.
pub struct Pipe {
    /// The half that sends to the other end.
    pub(crate) write: PipeWriter,
    /// The half that receives from the other end.
    pub(crate) read: PipeReader,
}

impl Pipe {
    /// Wraps a stream of a connection over TLS and TCP.
    pub fn of_tls((send, receive): (mux::Sender, mux::Receiver)) -> Self {
        Self::new(Writer::Tls(send), Reader::Tls(receive))
    }

    /// What carries it.
    pub fn way(&self) -> Way {
        match &self.read.half {
            Reader::Quic(_) => Way::Quic,
            Reader::Tls(_) => Way::Tls,
            Reader::Stream(_) => Way::Link,
        }
    }

    /// Wraps a QUIC stream.
    pub fn of_quic((send, receive): (SendStream, RecvStream)) -> Self {
        Self::new(Writer::Quic(send), Reader::Quic(receive))
    }

    /// Wraps any other byte stream.
    pub fn of_stream(stream: impl ByteStream + 'static) -> Self {
        let stream: Box<dyn ByteStream> = Box::new(stream);
        let (read, write) = stream.split();
        Self::new(Writer::Stream(write), Reader::Stream(read))
    }

    fn new(write: Writer, read: Reader) -> Self {
        Self {
            write: PipeWriter {
                half: write,
                released: false,
            },
            read: PipeReader {
                half: read,
                scratch: Vec::new(),
            },
        }
    }
}

enum Writer {
    Quic(SendStream),
    Tls(mux::Sender),
    Stream(WriteHalf<Box<dyn ByteStream>>),
}

pub(crate) struct PipeWriter {
    half: Writer,
    released: bool,
}

impl PipeWriter {
    /// Writes all of a short slice, which is copied.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => Ok(send.write_all(bytes).await?),
            Writer::Tls(send) => Ok(send.write(Bytes::copy_from_slice(bytes)).await?),
            Writer::Stream(write) => {
                write.write_all(bytes).await?;
                write.flush().await
            }
        }
    }

    /// Writes all bytes, without a copy if the stream supports it.
    pub(crate) async fn write_bytes(&mut self, bytes: Bytes) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => Ok(send.write_chunk(bytes).await?),
            Writer::Tls(send) => Ok(send.write(bytes).await?),
            Writer::Stream(write) => write.write_all(&bytes).await,
        }
    }

    /// Ends the stream after the bytes written so far.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => {
                let gone = |_| io::ErrorKind::NotConnected.into();
                send.finish().map_err(gone)
            }
            Writer::Tls(send) => Ok(send.finish()?),
            Writer::Stream(write) => write.close().await,
        }
    }

    /// Lets the written bytes reach the other end even if the writer is dropped.
    pub(crate) fn release(&mut self) {
        self.released = true;
    }

    /// Sets the stream's urgency. Higher urgencies are sent first; the default is 0.
    pub(crate) fn set_urgency(&self, urgency: i32) {
        match &self.half {
            // An error means that the stream has ended.
            Writer::Quic(send) => _ = send.set_priority(urgency),
            Writer::Tls(send) => send.set_urgency(urgency),
            Writer::Stream(_) => {}
        }
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        match &mut self.half {
            // Otherwise the buffered bytes would still be sent.
            Writer::Quic(send) => _ = send.reset(GIVEN_UP),
            Writer::Tls(send) => send.reset(),
            Writer::Stream(_) => {}
        }
    }
}

enum Reader {
    Quic(RecvStream),
    Tls(mux::Receiver),
    Stream(ReadHalf<Box<dyn ByteStream>>),
}

pub(crate) struct PipeReader {
    half: Reader,
    /// A buffer through which the bytes of other kinds of streams pass.
    scratch: Vec<u8>,
}

impl PipeReader {
    /// Reads the available bytes into `to` and returns their number; zero at the end of the stream.
    pub(crate) async fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.half {
            Reader::Quic(receive) => Ok(receive.read(to).await?.unwrap_or(0)),
            Reader::Tls(receive) => {
                let bytes = receive.read(to.len()).await?;
                to.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                Ok(bytes.len())
            }
            Reader::Stream(read) => read.read(to).await,
        }
    }

    /// Fills all of `to`, or fails if the stream ends before.
    pub(crate) async fn read_exact(&mut self, to: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < to.len() {
            let room = to.get_mut(filled..).unwrap_or_default();
            match self.read(room).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// Reads available bytes and appends them to `body`. Bytes that would make `body` longer than
    /// `whole` are read but not appended. Returns the number of bytes read; zero at the end. Safe
    /// to cancel.
    pub(crate) async fn append(&mut self, body: &mut Vec<u8>, whole: usize) -> io::Result<usize> {
        match &mut self.half {
            Reader::Quic(receive) => {
                let mut chunks = [const { Bytes::new() }; CHUNKS];
                let Some(count) = receive.read_chunks(&mut chunks).await? else {
                    return Ok(0);
                };
                let came = chunks.get(..count).unwrap_or_default();
                let bytes = came.iter().map(Bytes::len).sum();
                if bytes <= whole.saturating_sub(body.len()) {
                    came.iter().for_each(|chunk| body.extend_from_slice(chunk));
                }
                Ok(bytes)
            }
            Reader::Tls(receive) => {
                let bytes = receive.read(usize::MAX).await?;
                if bytes.len() <= whole.saturating_sub(body.len()) {
                    body.extend_from_slice(&bytes);
                }
                Ok(bytes.len())
            }
            Reader::Stream(read) => {
                self.scratch.resize(READ_BYTES, 0);
                let bytes = read.read(&mut self.scratch).await?;
                if bytes <= whole.saturating_sub(body.len()) {
                    body.extend_from_slice(self.scratch.get(..bytes).unwrap_or_default());
                }
                Ok(bytes)
            }
        }
    }
}

/// A bulk connection whose streams are served.
#[derive(Clone, Debug)]
pub enum Served {
    /// Over QUIC.
    Quic(BulkConnection),
    /// Over TLS and TCP.
    Tcp(tcp::Connection),
}

impl Served {
    /// The next stream that the remote opened; `None` if the connection has ended.
    pub async fn accept(&self) -> Option<Pipe> {
        match self {
            Self::Quic(connection) => connection.accept_bi().await.ok().map(Pipe::of_quic),
            Self::Tcp(connection) => connection
                .session()
                .accept_bi()
                .await
                .ok()
                .map(Pipe::of_tls),
        }
    }

    /// The next stream on which the remote only sends. Over TCP there is none.
    pub async fn accept_told(&self) -> Option<(BulkConnection, RecvStream)> {
        match self {
            Self::Quic(connection) => {
                let stream = connection.accept_uni().await.ok()?;
                Some((connection.clone(), stream))
            }
            Self::Tcp(_) => pending().await,
        }
    }

    /// Ends the connection.
    pub fn close(&self) {
        match self {
            Self::Quic(connection) => connection.close(CloseCode::Done),
            Self::Tcp(connection) => connection.session().close(),
        }
    }
}

/// Opens bulk streams: on a bulk connection if possible, otherwise on the link.
pub(crate) trait BulkTransport: Send + Sync {
    /// Opens a stream to a linked peer for about this many bytes; `u64::MAX` if that is not known. Fails
    /// for other peers, which it never dials.
    fn open(&self, to: PeerId, bytes: u64) -> BoxFuture<'static, io::Result<Pipe>>;

    /// True while new streams use this connection. Later it may be closed once it is idle.
    fn keeps(&self, connection: &Served) -> bool {
        match connection {
            Served::Quic(connection) => connection.close_reason().is_none(),
            Served::Tcp(connection) => connection.session().ended().is_none(),
        }
    }

    /// A stream on which the remote only sends, which no transfer does. Dropping it refuses it.
    fn told(&self, _from: &BulkConnection, _stream: RecvStream) {}

    /// A push over this way was acknowledged after it kept the way busy for `took`.
    fn measured(&self, _to: PeerId, _way: Way, _bytes: u64, _took: Duration) {}
}
