//! Control streams carry length-prefixed frames. Each link has one outbound stream.

use super::event::Latch;
use super::streams::{Internal, Opener};
use crate::net::NetEvent;
use crate::net::bucket::Budget;
use crate::net::streams::Kind;
use crate::traffic::Tally;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use libp2p::{Stream, identity};
use murmurate_protocol::PeerId;
use murmurate_protocol::limits::FRAME_BYTES_MAX;
use murmurate_protocol::wire::WireError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

pub(super) const FRAMES_WAITING_MAX: usize = 256;

/// How long a peer may take to read a written frame, or to complete one that it began to send.
const FRAME_WAIT: Duration = Duration::from_secs(10);

/// How long a peer may take to read the last frames of a link.
const LAST_FRAMES_WAIT: Duration = Duration::from_secs(1);

/// Attempts to open a control stream before the link is given up.
const OPEN_ATTEMPTS_MAX: u32 = 4;

/// Pause before the next attempt, times the number of attempts.
const OPEN_PAUSE: Duration = Duration::from_millis(250);

/// Bytes of frames that one peer may send in a burst, and per second after that. This is hundreds
/// of times what a round needs, and still a small load.
const BURST_BYTES: u32 = 4 << 20;
const BYTES_PER_SECOND: u32 = 2 << 20;

/// Cost of a frame in addition to its bytes, so that empty frames are also limited.
const FRAME_COST: f64 = 512.0;

/// What peers may send in frames.
pub(super) fn budget() -> Budget {
    Budget::new(BURST_BYTES, BYTES_PER_SECOND)
}

#[derive(Clone, Debug)]
pub(super) struct LinkEnd {
    pub(super) peer: PeerId,
    /// The peer's id in libp2p.
    pub(super) theirs: identity::PeerId,
    pub(super) link: u64,
    /// Counts the link's bytes.
    pub(super) tally: Tally,
    pub(super) opener: Opener,
}

impl LinkEnd {
    async fn close(&self) {
        let close = Internal::Close {
            peer: self.peer,
            link: self.link,
        };
        // The receiver is dropped only when the network has ended.
        let _ = self.opener.network.send(close).await;
    }
}

/// Why writing to a stream stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The queue is closed and empty.
    Queue,
    /// Another connection now carries the link.
    Moved,
}

/// Writes a link's frames until its queue is closed, then waits until they were read.
///
/// A broken stream is replaced as long as there is a connection; the frames in flight are lost,
/// which `Send` allows. If another connection takes over the link, the stream is ended and read to
/// its end before the next one begins, so that frames stay in order.
pub(super) async fn write_frames(
    end: LinkEnd,
    mut frames: mpsc::Receiver<Vec<u8>>,
    moved: Arc<Notify>,
) {
    let mut attempts = 0;
    loop {
        let mut stream = match end.opener.open(end.theirs, Kind::Control).await {
            Ok(stream) => stream,
            Err(error) => {
                attempts += 1;
                if error.kind() == io::ErrorKind::Unsupported || attempts >= OPEN_ATTEMPTS_MAX {
                    tracing::debug!(peer = %end.peer, %error, "no control stream");
                    return end.close().await;
                }
                sleep(OPEN_PAUSE * attempts).await;
                continue;
            }
        };
        attempts = 0;
        let up = Internal::ControlUp {
            peer: end.peer,
            link: end.link,
        };
        if end.opener.network.send(up).await.is_err() {
            return;
        }
        match write_until_ended(&mut stream, &mut frames, &moved, &end.tally).await {
            Ok(ended) => {
                // The other end closes its half after it has read all of ours.
                let mut rest = [0u8; 1];
                let _ = timeout(LAST_FRAMES_WAIT, async {
                    stream.close().await?;
                    stream.read(&mut rest).await
                })
                .await;
                if ended == Ended::Queue {
                    return end.close().await;
                }
            }
            Err(error) => tracing::debug!(peer = %end.peer, %error, "control stream broke"),
        }
    }
}

async fn write_until_ended(
    stream: &mut Stream,
    frames: &mut mpsc::Receiver<Vec<u8>>,
    moved: &Notify,
    tally: &Tally,
) -> io::Result<Ended> {
    let mut batch = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            () = moved.notified() => return Ok(Ended::Moved),
        };
        let Some(frame) = frame else {
            return Ok(Ended::Queue);
        };
        append(&mut batch, &frame);
        while batch.len() < FRAME_BYTES_MAX {
            match frames.try_recv() {
                Ok(frame) => append(&mut batch, &frame),
                Err(_) => break,
            }
        }
        timeout(FRAME_WAIT, async {
            stream.write_all(&batch).await?;
            stream.flush().await
        })
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        tally.control_out(batch.len() as u64);
        batch.clear();
    }
}

fn append(batch: &mut Vec<u8>, frame: &[u8]) {
    // The queue accepts no frames above FRAME_BYTES_MAX.
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    batch.extend_from_slice(&length.to_le_bytes());
    batch.extend_from_slice(frame);
}

/// Reads frames from a stream that the peer opened, until it ends or violates the protocol.
pub(super) async fn read_frames(
    from: PeerId,
    mut stream: Stream,
    latch: Latch,
    events: mpsc::Sender<NetEvent>,
    (tally, budget): (Tally, Budget),
) {
    loop {
        let read = read_frame(&mut stream).await;
        let (event, last) = match read {
            Ok(Some(bytes)) => {
                tally.control_in(4 + bytes.len() as u64);
                let cost = bytes.len() as f64 + FRAME_COST;
                budget.spend(from, cost).await;
                (NetEvent::Frame { from, bytes }, false)
            }
            Ok(None) => break,
            Err(error) => (NetEvent::Malformed { from, error }, true),
        };
        let Ok(permit) = events.reserve().await else {
            break;
        };
        if !latch.pass(permit, event) || last {
            break;
        }
    }
    // Tells the writer at the other end that all frames were read.
    let _ = timeout(LAST_FRAMES_WAIT, stream.close()).await;
}

/// Reads one frame; `None` if the stream ended or broke.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Vec<u8>>, WireError> {
    match read_prefixed(stream, FRAME_BYTES_MAX).await? {
        Some(frame) if frame.is_empty() => Err(WireError::Empty),
        frame => Ok(frame),
    }
}

/// Reads as many bytes as the length before them says; `None` if the stream ended or broke.
pub(super) async fn read_prefixed(
    stream: &mut (impl AsyncRead + Unpin),
    max: usize,
) -> Result<Option<Vec<u8>>, WireError> {
    let mut prefix = [0u8; 4];
    // A pause between messages is allowed, so this read has no time limit.
    if stream.read_exact(&mut prefix).await.is_err() {
        return Ok(None);
    }
    let length = u32::from_le_bytes(prefix) as usize;
    if length > max {
        return Err(WireError::TooLong {
            bytes: length as u64,
            max: max as u64,
        });
    }
    let mut bytes = vec![0u8; length];
    match timeout(FRAME_WAIT, stream.read_exact(&mut bytes)).await {
        Ok(Ok(())) => Ok(Some(bytes)),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::io::Cursor;

    #[tokio::test]
    async fn frames_come_back_as_they_were_appended() {
        let mut batch = Vec::new();
        append(&mut batch, b"one");
        append(&mut batch, b"three");
        let mut stream = Cursor::new(batch);
        assert_eq!(read_frame(&mut stream).await, Ok(Some(b"one".to_vec())));
        assert_eq!(read_frame(&mut stream).await, Ok(Some(b"three".to_vec())));
        assert_eq!(read_frame(&mut stream).await, Ok(None));
    }

    #[tokio::test]
    async fn an_oversize_or_empty_frame_is_malformed() {
        let mut stream = Cursor::new(u32::MAX.to_le_bytes());
        let read = read_frame(&mut stream).await;
        assert!(matches!(
            read,
            Err(WireError::TooLong {
                bytes: 4_294_967_295,
                ..
            })
        ));
        let mut stream = Cursor::new([0u8; 4]);
        assert_eq!(read_frame(&mut stream).await, Err(WireError::Empty));
    }
}
