//! The answering side of a bulk stream.

use crate::bulk::wire::{
    ACK_REFUSED, ACK_TAKEN, Reply, Request, StreamError, finish, read_body, read_header,
    write_body, write_header,
};
use crate::bulk::{BulkFault, Core, Pipe, Refusal};
use crate::net::NetEvent;
use bytes::Bytes;
use futures::io::AsyncWriteExt;
use murmurate_protocol::{Digest, Part, PeerId, SliceId, SliceMeta};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// What one remote has open towards us.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    /// Streams that may still be opened.
    pub(crate) streams: Arc<Semaphore>,
    /// Bytes that the open streams have announced.
    announced: Arc<AtomicU64>,
}

impl Inbound {
    /// Nothing is open.
    pub(crate) fn new(streams: usize) -> Self {
        Self {
            streams: Arc::new(Semaphore::new(streams)),
            announced: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Counts announced bytes until the guard is dropped; `None` when they are too many.
    fn announce(&self, bytes: u64, max: u64) -> Option<Announced> {
        let add = |open: u64| open.checked_add(bytes).filter(|sum| *sum <= max);
        self.announced
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()?;
        Some(Announced {
            bytes,
            open: Arc::clone(&self.announced),
        })
    }
}

struct Announced {
    bytes: u64,
    open: Arc<AtomicU64>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.open.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Answers one stream that `from` opened.
pub(crate) async fn serve(core: Arc<Core>, from: PeerId, mut pipe: Box<dyn Pipe>, open: Inbound) {
    let Ok(_permit) = open.streams.try_acquire() else {
        tracing::debug!(peer = %from, "too many bulk streams at once, one was dropped");
        return;
    };
    let served = match read_header::<Request>(&mut pipe, core.limits.header_wait).await {
        Ok(Request::Push { slice, meta }) => take(&core, from, &mut pipe, slice, meta, &open).await,
        Ok(request) => give(&core, from, &mut pipe, request)
            .await
            .map_err(Into::into),
        Err(error) => Err(error),
    };
    if let Err(StreamError::Fault(what)) = served {
        core.tell(NetEvent::MalformedBulk { from, what }).await;
    }
}

async fn take(
    core: &Core,
    from: PeerId,
    pipe: &mut Box<dyn Pipe>,
    slice: SliceId,
    meta: SliceMeta,
    open: &Inbound,
) -> Result<(), StreamError> {
    let max = core.limits.slice_bytes_max;
    if meta.bytes > max {
        acknowledge(core, pipe, ACK_REFUSED).await?;
        return Err(StreamError::Fault(BulkFault::TooLong {
            bytes: meta.bytes,
            max,
        }));
    }
    let announced = open.announce(meta.bytes, core.limits.inbound_bytes_per_peer);
    let allowed = match &announced {
        Some(_) => core.store.accepts(from, &slice, &meta),
        None => Err(Refusal::Full),
    };
    if let Err(refusal) = allowed {
        tracing::debug!(peer = %from, round = %slice.round, %refusal, "a slice was refused");
        let answer = if refusal == Refusal::AlreadyHere {
            ACK_TAKEN
        } else {
            ACK_REFUSED
        };
        return Ok(acknowledge(core, pipe, answer).await?);
    }
    let tally = core.counters.of(from);
    let wait = core.limits.piece_wait;
    let body = read_body(pipe, meta.bytes, wait, |n| tally.bulk_in(n)).await;
    let body = match body {
        Ok(body) => Bytes::from(body),
        Err(error) => {
            // The sender learns that it was not taken, where the stream still works.
            let _ = acknowledge(core, pipe, ACK_REFUSED).await;
            return Err(error);
        }
    };
    let digest = digest_of(&slice, &body);
    core.store.put(from, slice, meta, body);
    core.tell(NetEvent::Arrived {
        from,
        slice,
        meta,
        digest,
    })
    .await;
    Ok(acknowledge(core, pipe, ACK_TAKEN).await?)
}

/// Peers vote on the hashes of aggregates; contributions need none.
pub(crate) fn digest_of(slice: &SliceId, bytes: &[u8]) -> Option<Digest> {
    (slice.part == Part::Aggregate).then(|| Digest::of(bytes))
}

async fn acknowledge(core: &Core, pipe: &mut Box<dyn Pipe>, answer: u8) -> io::Result<()> {
    let write = async {
        pipe.write_all(&[answer]).await?;
        pipe.close().await
    };
    tokio::time::timeout(core.limits.header_wait, write)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn give(
    core: &Core,
    from: PeerId,
    pipe: &mut Box<dyn Pipe>,
    request: Request,
) -> io::Result<()> {
    let blob = |bytes: Bytes| {
        (
            Reply::Blob {
                bytes: bytes.len() as u64,
            },
            bytes,
        )
    };
    let found = match request {
        Request::Slice(slice) => core.store.get(&slice).map(|(m, b)| (Reply::Slice(m), b)),
        Request::Manifest(state) => core.store.state_manifest(&state).map(blob),
        Request::Chunk { state, index } => core.store.state_chunk(&state, index).map(blob),
        Request::Push { .. } => None,
    };
    let (reply, bytes) = found.unwrap_or((Reply::Absent, Bytes::new()));
    let tally = core.counters.of(from);
    write_header(pipe, &reply, core.limits.header_wait).await?;
    write_body(pipe, &bytes, core.limits.piece_wait, |n| tally.bulk_out(n)).await?;
    finish(pipe, core.limits.piece_wait).await
}
