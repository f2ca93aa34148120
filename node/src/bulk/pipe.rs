//! The two halves of a bulk stream: a QUIC stream of our own, or any other byte stream.
//!
//! A QUIC stream takes bodies as [`Bytes`] without copying them, and has an urgency among the streams of its
//! connection. Dropping a writer gives up what the other end does not have yet, unless it was
//! [released](PipeWriter::release); dropping a reader tells the other end to stop.

use bytes::Bytes;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use murmurate_net::quic::{RecvStream, SendStream, VarInt};
use std::io;

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Chunks taken from a QUIC stream at a time: 90 kB of full packets.
const CHUNKS: usize = 64;

/// Bytes taken from another stream at a time.
const READ_BYTES: usize = 64 * 1024;

/// Code of a stream that was given up.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

/// Both halves of a bulk stream.
pub struct Pipe {
    /// What we say.
    pub(crate) write: PipeWriter,
    /// What the other end says.
    pub(crate) read: PipeReader,
}

impl Pipe {
    /// A QUIC stream.
    pub fn of_quic((send, receive): (SendStream, RecvStream)) -> Self {
        Self {
            write: PipeWriter {
                half: Writer::Quic(send),
                released: false,
            },
            read: PipeReader {
                half: Reader::Quic(receive),
                scratch: Vec::new(),
            },
        }
    }

    /// Another stream.
    pub fn of_stream(stream: impl ByteStream + 'static) -> Self {
        let stream: Box<dyn ByteStream> = Box::new(stream);
        let (read, write) = stream.split();
        Self {
            write: PipeWriter {
                half: Writer::Stream(write),
                released: false,
            },
            read: PipeReader {
                half: Reader::Stream(read),
                scratch: Vec::new(),
            },
        }
    }
}

enum Writer {
    Quic(SendStream),
    Stream(WriteHalf<Box<dyn ByteStream>>),
}

/// The writing half.
pub struct PipeWriter {
    half: Writer,
    released: bool,
}

impl PipeWriter {
    /// Writes a few bytes.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => Ok(send.write_all(bytes).await?),
            Writer::Stream(write) => {
                write.write_all(bytes).await?;
                write.flush().await
            }
        }
    }

    /// Hands bytes over; without a copy where the stream can.
    pub(crate) async fn write_bytes(&mut self, bytes: Bytes) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => Ok(send.write_chunk(bytes).await?),
            Writer::Stream(write) => write.write_all(&bytes).await,
        }
    }

    /// Says that all is said.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        match &mut self.half {
            Writer::Quic(send) => {
                let gone = |_| io::ErrorKind::NotConnected.into();
                send.finish().map_err(gone)
            }
            Writer::Stream(write) => write.close().await,
        }
    }

    /// What was written reaches the other end even when this is dropped.
    pub(crate) fn release(&mut self) {
        self.released = true;
    }

    /// Among the streams of a connection the one of higher urgency goes first; 0 is usual.
    pub(crate) fn set_urgency(&self, urgency: i32) {
        if let Writer::Quic(send) = &self.half {
            // An error says that the stream has ended.
            let _ = send.set_priority(urgency);
        }
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        if let Writer::Quic(send) = &mut self.half
            && !self.released
        {
            // Without this, quinn would go on to send what waits.
            let _ = send.reset(GIVEN_UP);
        }
    }
}

enum Reader {
    Quic(RecvStream),
    Stream(ReadHalf<Box<dyn ByteStream>>),
}

/// The reading half.
pub struct PipeReader {
    half: Reader,
    /// Where another stream's bytes pass through.
    scratch: Vec<u8>,
}

impl PipeReader {
    /// Reads what is there; zero at the end.
    pub(crate) async fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.half {
            Reader::Quic(receive) => Ok(receive.read(to).await?.unwrap_or(0)),
            Reader::Stream(read) => read.read(to).await,
        }
    }

    /// Fills all of `to`.
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

    /// Appends what is there to `body`, as long as that stays within `whole` bytes; otherwise takes it and
    /// appends nothing. How much was there; zero at the end. May be dropped before it answers.
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
