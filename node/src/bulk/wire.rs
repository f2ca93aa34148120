//! Encoding of a bulk stream: length-prefixed headers, then bodies that are read and written in
//! pieces.
//!
//! A length from a remote never causes an allocation by itself. Headers are bounded, the length of
//! a body is checked against the plan before it is read, and memory is committed only as bytes
//! arrive.

use crate::bulk::{BulkFault, PipeReader, PipeWriter};
use crate::traffic::Tally;
use bytes::Bytes;
use murmurate_net::congestion::Throttle;
use murmurate_protocol::wire::{decode_value, encode_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use crate::bulk::headers::{Reply, Request};

/// Bytes reserved at once. A longer body grows as it arrives.
const RESERVED_BYTES_MAX: usize = 1 << 30;

/// Bytes that are read or written between two checks of the clock. Larger pieces save little;
/// smaller ones need a timer each.
const PIECE_BYTES: usize = 256 * 1024;

/// Maximum size of an encoded request or reply header, bytes. The largest has fewer than 150.
const HEADER_BYTES_MAX: u32 = 1024;

/// Timeouts tolerated in one stream while other streams of the same remote progress: ten minutes at
/// the default of 30 s.
const STALLS_MAX: u32 = 20;

/// Acknowledgement of a push: accepted.
pub(crate) const ACK_TAKEN: u8 = 1;
pub(crate) const ACK_REFUSED: u8 = 2;

#[derive(Debug)]
pub(crate) enum StreamError {
    /// The remote violated the protocol.
    Fault(BulkFault),
    Broken,
}

impl From<io::Error> for StreamError {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Encodes a header: its length as `u32` little-endian, then the value.
pub(crate) fn header_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let body = encode_value(value);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

pub(crate) async fn write_header<T: Serialize>(
    to: &mut PipeWriter,
    value: &T,
    wait: Duration,
) -> io::Result<()> {
    in_time(wait, to.write_all(&header_bytes(value))).await
}

/// Reads a header that [`write_header`] wrote.
pub(crate) async fn read_header<T: DeserializeOwned>(
    from: &mut PipeReader,
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

/// Reads exactly `of` bytes and the end of the stream into one allocation, which is `room` if it is
/// large enough, and counts them as they arrive.
///
/// The caller has checked `of` against the plan. If nothing arrives for `wait`, the stream has
/// stalled, unless other streams of the same remote progressed meanwhile, since more urgent streams
/// go first. That excuse holds [`STALLS_MAX`] times.
pub(crate) async fn read_body(
    from: &mut PipeReader,
    (of, room): (u64, Vec<u8>),
    wait: Duration,
    tally: &Tally,
) -> Result<Vec<u8>, StreamError> {
    let too_long = |_| {
        StreamError::Fault(BulkFault::TooLong {
            bytes: of,
            max: usize::MAX as u64,
        })
    };
    let whole = usize::try_from(of).map_err(too_long)?;
    let mut body = room;
    // The system commits pages only when they are written, so only bytes that arrive take memory.
    body.try_reserve_exact(whole.min(RESERVED_BYTES_MAX))
        .map_err(|_| StreamError::Broken)?;
    let (mut seen, mut stalls) = (tally.bulk_in_so_far(), 0);
    let (mut counted, mut came) = (0, 0);
    let mut clock = Instant::now() + wait;
    loop {
        let read = timeout_at(clock, from.append(&mut body, whole)).await;
        let bytes = body.len() as u64;
        let count = match read {
            Ok(read) => read?,
            Err(_) => {
                let now = tally.bulk_in_so_far();
                if now.wrapping_sub(seen) < PIECE_BYTES as u64 || stalls == STALLS_MAX {
                    return Err(StreamError::Fault(BulkFault::Stalled { bytes, of }));
                }
                (seen, stalls) = (now, stalls + 1);
                clock = Instant::now() + wait;
                continue;
            }
        };
        if count == 0 && bytes < of {
            return Err(StreamError::Fault(BulkFault::Short { bytes, of }));
        }
        if count == 0 {
            return Ok(body);
        }
        tally.bulk_in(count as u64);
        came += count as u64;
        if came > of {
            return Err(StreamError::Fault(BulkFault::Excess { of }));
        }
        // The clock is read once for each piece.
        if came - counted >= PIECE_BYTES as u64 || came == of {
            (counted, clock) = (came, Instant::now() + wait);
            seen = tally.bulk_in_so_far();
        }
    }
}

/// Writes a body in pieces as fast as `throttle` allows. Calls `left` after each piece that was
/// handed to the transport.
pub(crate) async fn write_body(
    to: &mut PipeWriter,
    body: &Bytes,
    wait: Duration,
    throttle: &Throttle,
    mut left: impl FnMut(u64),
) -> io::Result<()> {
    let mut rest = body.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
        let bytes = piece.len() as u64;
        throttle.acquire(bytes).await;
        in_time(wait, to.write_bytes(piece)).await?;
        left(bytes);
    }
    Ok(())
}

/// Closes the sending half, so that the other end sees the end of the stream.
pub(crate) async fn finish(to: &mut PipeWriter, wait: Duration) -> io::Result<()> {
    in_time(wait, to.finish()).await
}

async fn in_time(wait: Duration, doing: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    timeout(wait, doing)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::Pipe;
    use crate::traffic::Counters;
    use futures::io::Cursor;
    use murmurate_net::congestion::MaxRate;
    use murmurate_protocol::{PeerId, StateId};
    use tokio_util::compat::TokioAsyncReadCompatExt;

    const WAIT: Duration = Duration::from_secs(5);

    fn tally() -> Tally {
        Counters::default().of(PeerId::from_bytes([1; 32]))
    }

    fn reader(bytes: Vec<u8>) -> PipeReader {
        Pipe::of_stream(Cursor::new(bytes)).read
    }

    #[tokio::test]
    async fn a_huge_header_is_refused_before_it_is_read() {
        let mut bytes = u32::MAX.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 16]);
        let read = read_header::<Request>(&mut reader(bytes), WAIT).await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::HeaderTooLong {
                bytes: 4_294_967_295,
                ..
            }))
        ));
    }

    #[tokio::test]
    async fn a_claim_is_not_memory() {
        let (claimed, tally) = (1 << 40, tally());
        let read = read_body(
            &mut reader(vec![7; 1000]),
            (claimed, Vec::new()),
            WAIT,
            &tally,
        )
        .await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::Short { bytes: 1000, of })) if of == claimed
        ));
        assert_eq!(tally.bulk_in_so_far(), 1000);
    }

    #[tokio::test]
    async fn one_byte_too_many_is_excess_and_a_body_fits_its_allocation() {
        let read = read_body(&mut reader(vec![7; 11]), (10, Vec::new()), WAIT, &tally()).await;
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::Excess { of: 10 }))
        ));
        let read = read_body(
            &mut reader(vec![7; 300_000]),
            (300_000, Vec::new()),
            WAIT,
            &tally(),
        )
        .await;
        let body = read.unwrap();
        assert_eq!(body, vec![7u8; 300_000]);
        assert!(body.capacity() < 300_000 + 4096, "{}", body.capacity());
        let empty = read_body(&mut reader(Vec::new()), (0, Vec::new()), WAIT, &tally()).await;
        assert_eq!(empty.unwrap(), Vec::<u8>::new());
    }

    /// A wait that the test lets pass.
    const BRIEF: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_stream_that_waits_for_a_more_urgent_one_has_not_stalled() {
        let (near, far) = tokio::io::duplex(64);
        let mut from = Pipe::of_stream(near.compat()).read;
        let tally = tally();
        let began = Instant::now();
        let urgent = async {
            loop {
                tally.bulk_in(PIECE_BYTES as u64);
                tokio::task::yield_now().await;
            }
        };
        let read = tokio::select! {
            read = read_body(&mut from, (10, Vec::new()), BRIEF, &tally) => read,
            () = urgent => unreachable!("it has no end"),
        };
        assert!(matches!(
            read,
            Err(StreamError::Fault(BulkFault::Stalled { bytes: 0, of: 10 }))
        ));
        assert!(began.elapsed() >= BRIEF * STALLS_MAX, "and not for ever");
        drop(far);
    }

    #[tokio::test]
    async fn a_body_leaves_at_the_rate_allowed() {
        let rate = MaxRate::default();
        rate.set(murmurate_net::congestion::Limits {
            peer: Some(1),
            daemon: None,
        });
        let mut to = Pipe::of_stream(Cursor::new(Vec::new())).write;
        let body = Bytes::from(vec![1; 3 * PIECE_BYTES]);
        let (throttle, mut sent) = (rate.throttle(), 0);
        let sending = write_body(&mut to, &body, WAIT, &throttle, |bytes| sent += bytes);
        assert!(timeout(BRIEF, sending).await.is_err());
        assert_eq!(sent, PIECE_BYTES as u64, "the first is lent");
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
        let (near, far) = tokio::io::duplex(1024);
        let mut to = Pipe::of_stream(near.compat()).write;
        let mut from = Pipe::of_stream(far.compat()).read;
        write_header(&mut to, &request, WAIT).await.unwrap();
        assert_eq!(
            read_header::<Request>(&mut from, WAIT).await.unwrap(),
            request
        );
    }
}
