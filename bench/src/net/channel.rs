//! One channel of a connection, with the same interface for all ways. Bytes are copied only if the way requires it.

use crate::net::CHUNK;
use bytes::Bytes;
use futures::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use libp2p::core::muxing::SubstreamBox;
use murmurate_net::mux;
use quinn::{RecvStream, SendStream};
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub(super) struct Channel {
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
}

impl From<(SendStream, RecvStream)> for Channel {
    fn from((sending, receiving): (SendStream, RecvStream)) -> Self {
        Self {
            sending: Sending::Quinn(sending),
            receiving: Receiving::Quinn(receiving),
        }
    }
}

impl From<SubstreamBox> for Channel {
    fn from(stream: SubstreamBox) -> Self {
        let (receiving, sending) = stream.split();
        Self {
            sending: Sending::Muxed(sending),
            receiving: Receiving::Muxed(receiving),
        }
    }
}

impl From<TcpStream> for Channel {
    fn from(stream: TcpStream) -> Self {
        let (receiving, sending) = stream.into_split();
        Self {
            sending: Sending::Tcp(sending),
            receiving: Receiving::Tcp(receiving),
        }
    }
}

impl From<(mux::Sender, mux::Receiver)> for Channel {
    fn from((sending, receiving): (mux::Sender, mux::Receiver)) -> Self {
        Self {
            sending: Sending::Tls(sending),
            receiving: Receiving::Tls(receiving),
        }
    }
}

pub(super) enum Sending {
    Quinn(SendStream),
    Tls(mux::Sender),
    Muxed(WriteHalf<SubstreamBox>),
    Tcp(OwnedWriteHalf),
}

impl Sending {
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        match self {
            Self::Quinn(stream) => Ok(stream.write_chunk(bytes).await?),
            Self::Tls(stream) => Ok(stream.write(bytes).await?),
            Self::Muxed(stream) => stream.write_all(&bytes).await,
            Self::Tcp(stream) => stream.write_all(&bytes).await,
        }
    }

    /// Sends buffered bytes.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Muxed(stream) => stream.flush().await,
            Self::Quinn(_) | Self::Tls(_) | Self::Tcp(_) => Ok(()),
        }
    }
}

pub(super) enum Receiving {
    Quinn(RecvStream),
    Tls(mux::Receiver),
    Muxed(ReadHalf<SubstreamBox>),
    Tcp(OwnedReadHalf),
}

impl Receiving {
    pub(super) async fn exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Quinn(stream) => stream.read_exact(bytes).await.map_err(io::Error::other),
            Self::Tls(stream) => exact(stream, bytes).await,
            Self::Muxed(stream) => stream.read_exact(bytes).await,
            Self::Tcp(stream) => stream.read_exact(bytes).await.map(drop),
        }
    }

    /// Reads and discards what has arrived, and returns its length; 0 at the end. `buffer` is for ways that must copy.
    pub(super) async fn swallow(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Quinn(stream) => {
                let chunk = stream.read_chunk(CHUNK, true).await?;
                Ok(chunk.map_or(0, |chunk| chunk.bytes.len()))
            }
            Self::Tls(stream) => Ok(stream.read(CHUNK).await?.len()),
            Self::Muxed(stream) => stream.read(buffer).await,
            Self::Tcp(stream) => stream.read(buffer).await,
        }
    }
}

async fn exact(stream: &mut mux::Receiver, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let some = stream.read(bytes.len()).await?;
        if some.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (filled, rest) = bytes.split_at_mut(some.len());
        filled.copy_from_slice(&some);
        bytes = rest;
    }
    Ok(())
}
