//! Bytes of a bulk stream: length-prefixed headers, then bodies read and written in pieces.
//!
//! Nothing is allocated by a remote's word: headers are bounded, and a body's buffer grows with
//! the bytes that really arrive.

use crate::bulk::BulkFault;
use crate::bulk::limits::{HEADER_BYTES_MAX, PIECE_BYTES};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use murmurate_protocol::wire::{decode_value, encode_value};
use murmurate_protocol::{SliceId, SliceMeta, StateId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// What the opener of a stream wants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Here is a slice: `meta.bytes` bytes follow.
    Push {
        /// Its name.
        slice: SliceId,
        /// Its header.
        meta: SliceMeta,
    },
    /// Send me this slice.
    Slice(SliceId),
    /// Send me the hashes of this state's chunks.
    Manifest(StateId),
    /// Send me a chunk of this state.
    Chunk {
        /// The state.
        state: StateId,
        /// Which chunk.
        index: u32,
    },
}

/// What comes back before the bytes of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// A slice: `meta.bytes` bytes follow.
    Slice(SliceMeta),
    /// A manifest or a chunk: so many bytes follow.
    Blob {
        /// How many.
        bytes: u64,
    },
    /// It is not here.
    Absent,
}

/// The acknowledgement of a push: taken.
pub(crate) const ACK_TAKEN: u8 = 1;
/// The acknowledgement of a push: refused.
pub(crate) const ACK_REFUSED: u8 = 2;

/// Why a stream ended before its time.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The remote did something that is worth a report.
    Fault(BulkFault),
    /// The link broke.
    Broken,
}

impl From<io::Error> for StreamError {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Writes a header: its length as `u32` little-endian, then its bytes.
pub(crate) async fn write_header<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    value: &T,
    wait: Duration,
) -> io::Result<()> {
    let body = encode_value(value);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&body);
    timeout(wait, async {
        to.write_all(&bytes).await?;
        to.flush().await
    })
    .await
    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Reads a header that [`write_header`] wrote.
pub(crate) async fn read_header<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    wait: Duration,
) -> Result<T, StreamError> {
    let read = async {
        let mut length = [0u8; 4];
        from.read_exact(&mut length).await?;
        let length = u32::from_le_bytes(length);
        if length > HEADER_BYTES_MAX {
            return Err(StreamError::Fault(BulkFault::HeaderTooLong {
                bytes: u64::from(length),
                max: u64::from(HEADER_BYTES_MAX),
            }));
        }
        let mut body = vec![0u8; length as usize];
        from.read_exact(&mut body).await?;
        decode_value(&body).map_err(|error| StreamError::Fault(BulkFault::Header(error)))
    };
    timeout(wait, read)
        .await
        .unwrap_or(Err(StreamError::Fault(BulkFault::Stalled {
            bytes: 0,
            of: 0,
        })))
}

/// Reads exactly `of` bytes and the end of the stream; `arrived` is told of every read.
pub(crate) async fn read_body(
    from: &mut (impl AsyncRead + Unpin),
    of: u64,
    wait: Duration,
    mut arrived: impl FnMut(u64),
) -> Result<Vec<u8>, StreamError> {
    let whole = usize::try_from(of).map_err(|_| {
        StreamError::Fault(BulkFault::TooLong {
            bytes: of,
            max: usize::MAX as u64,
        })
    })?;
    let mut body = Vec::new();
    while body.len() < whole {
        let start = body.len();
        let piece = PIECE_BYTES.min(whole - start);
        grow(&mut body, piece, whole);
        let mut filled = start;
        let read = timeout(wait, async {
            while filled < start + piece {
                let room = body.get_mut(filled..).unwrap_or_default();
                let count = from.read(room).await?;
                if count == 0 {
                    let bytes = filled as u64;
                    return Err(StreamError::Fault(BulkFault::Short { bytes, of }));
                }
                arrived(count as u64);
                filled += count;
            }
            Ok(())
        });
        let stalled = || {
            Err(StreamError::Fault(BulkFault::Stalled {
                bytes: start as u64,
                of,
            }))
        };
        read.await.unwrap_or_else(|_| stalled())?;
    }
    read_end(from, of, wait).await?;
    Ok(body)
}

/// Lengthens `body` by `piece` bytes, at least doubling its room but never beyond `whole`.
fn grow(body: &mut Vec<u8>, piece: usize, whole: usize) {
    let needed = body.len() + piece;
    if body.capacity() < needed {
        let room = needed.max(body.capacity().saturating_mul(2)).min(whole);
        body.reserve_exact(room - body.len());
    }
    body.resize(needed, 0);
}

async fn read_end(
    from: &mut (impl AsyncRead + Unpin),
    of: u64,
    wait: Duration,
) -> Result<(), StreamError> {
    let mut extra = [0u8; 1];
    match timeout(wait, from.read(&mut extra)).await {
        Ok(Ok(0)) => Ok(()),
        Ok(Ok(_)) => Err(StreamError::Fault(BulkFault::Excess { of })),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(StreamError::Fault(BulkFault::Stalled { bytes: of, of })),
    }
}

/// Writes a body in pieces; `left` is told of every piece that was handed to the transport.
pub(crate) async fn write_body(
    to: &mut (impl AsyncWrite + Unpin),
    body: &[u8],
    wait: Duration,
    mut left: impl FnMut(u64),
) -> io::Result<()> {
    for piece in body.chunks(PIECE_BYTES) {
        timeout(wait, to.write_all(piece))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        left(piece.len() as u64);
    }
    Ok(())
}

/// Flushes and closes the write half, so that the other end sees the end of the stream.
pub(crate) async fn finish(to: &mut (impl AsyncWrite + Unpin), wait: Duration) -> io::Result<()> {
    timeout(wait, to.close())
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::io::Cursor;

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_huge_header_is_refused_before_it_is_read() {
        let mut bytes = u32::MAX.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 16]);
        let read = read_header::<Request>(&mut Cursor::new(bytes), WAIT).await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::HeaderTooLong {
                bytes: 4_294_967_295,
                ..
            }))
        ));
    }

    #[tokio::test]
    async fn a_body_grows_only_with_what_arrives() {
        let claimed = 1 << 40;
        let mut source = Cursor::new(vec![7u8; 1000]);
        let mut seen = 0;
        let read = read_body(&mut source, claimed, WAIT, |n| seen += n).await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::Short { bytes: 1000, of })) if of == claimed
        ));
        assert_eq!(seen, 1000);
        let mut body = Vec::new();
        grow(&mut body, PIECE_BYTES, usize::MAX);
        assert!(body.capacity() <= 2 * PIECE_BYTES, "{}", body.capacity());
    }

    #[tokio::test]
    async fn one_byte_too_many_is_excess() {
        let mut source = Cursor::new(vec![7u8; 11]);
        let read = read_body(&mut source, 10, WAIT, |_| {}).await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::Excess { of: 10 }))
        ));
        let mut source = Cursor::new(vec![7u8; 10]);
        assert_eq!(
            read_body(&mut source, 10, WAIT, |_| {}).await.unwrap(),
            vec![7u8; 10]
        );
    }

    #[tokio::test]
    async fn a_header_round_trips() {
        let request = Request::Chunk {
            state: StateId {
                round: murmurate_protocol::Round(3),
                root: murmurate_protocol::Digest::of(b"x"),
                bytes: 5,
            },
            index: 9,
        };
        let mut bytes = Cursor::new(Vec::new());
        write_header(&mut bytes, &request, WAIT).await.unwrap();
        bytes.set_position(0);
        assert_eq!(
            read_header::<Request>(&mut bytes, WAIT).await.unwrap(),
            request
        );
    }
}
