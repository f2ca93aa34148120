//! Accepts the streams that a remote opens on a bulk connection, and serves them.

use super::core::Remote;
use super::push::{ANSWER, BACKGROUND};
use super::wire::{
    ACK_REFUSED, ACK_TAKEN, Reply, Request, StreamError, finish, read_body, read_header,
    write_body, write_header,
};
use super::{BulkEvent, BulkFault, Core, Pipe, PipeWriter, Refusal, Served};
use crate::spans;
use bytes::Bytes;
use murmurate_protocol::{Digest, SliceId, SliceMeta};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a superseded connection may be idle before it is closed. The remote needs less time to
/// notice the connection that replaced it.
const IDLE_WAIT: Duration = Duration::from_secs(30);

/// Serves streams until the connection ends. Beyond the remote's limit of streams, a new stream
/// waits in QUIC until an earlier one ends; none is lost.
pub(crate) async fn accept_streams(core: Arc<Core>, remote: Remote, connection: Served) {
    let mut served = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&remote.streams).acquire_owned().await else {
            break;
        };
        let opened = loop {
            tokio::select! {
                opened = connection.accept() => break opened,
                Some((from, stream)) = connection.accept_told() => {
                    core.transport.told(&from, stream);
                }
                Some(ended) = served.join_next(), if !served.is_empty() => report(ended),
                () = sleep(IDLE_WAIT), if served.is_empty() => {
                    if !core.transport.keeps(&connection) {
                        connection.close();
                        break None;
                    }
                }
            }
        };
        let Some(pipe) = opened else {
            break;
        };
        let (core, remote) = (Arc::clone(&core), remote.clone());
        served.spawn(async move {
            serve(&core, &remote, pipe).await;
            drop(permit);
        });
    }
    // Streams whose bytes have all arrived still store them.
    while let Some(ended) = served.join_next().await {
        report(ended);
    }
}

/// Reports a stream's task that panicked, which is a bug.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of a bulk connection panicked (please report this)");
    }
}

pub(crate) async fn serve(core: &Core, remote: &Remote, mut pipe: Pipe) {
    let served = match read_header::<Request>(&mut pipe.read, core.limits.header_wait).await {
        Ok(Request::Push { slice, meta }) => take(core, remote, &mut pipe, slice, meta).await,
        Ok(request) => give(core, remote, &mut pipe.write, request)
            .await
            .map_err(Into::into),
        Err(error) => Err(error),
    };
    if let Err(StreamError::Fault(what)) = served {
        let from = remote.peer;
        core.tell(BulkEvent::Malformed { from, what }).await;
    }
}

async fn take(
    core: &Core,
    remote: &Remote,
    pipe: &mut Pipe,
    slice: SliceId,
    meta: SliceMeta,
) -> Result<(), StreamError> {
    let from = remote.peer;
    let max = core.limits.slice_bytes_max;
    let bytes = meta.bytes;
    let fault = if bytes > max {
        Some(BulkFault::TooLong { bytes, max })
    } else {
        let may = core.store.may_push(from, &slice);
        (!may).then_some(BulkFault::OtherName)
    };
    if let Some(fault) = fault {
        acknowledge(core, &mut pipe.write, ACK_REFUSED).await?;
        return Err(StreamError::Fault(fault));
    }
    let announced = remote.announce(meta.bytes, core.limits.inbound_bytes_per_peer);
    let allowed = match &announced {
        Some(_) => core.store.accepts(from, &slice, &meta),
        None => Err(Refusal::Full),
    };
    if let Err(refusal) = allowed {
        spans::transfer(&slice, from).in_scope(|| {
            tracing::debug!(shard = slice.shard, %refusal, "slice refused");
        });
        let answer = if refusal == Refusal::AlreadyHere {
            ACK_TAKEN
        } else {
            ACK_REFUSED
        };
        return Ok(acknowledge(core, &mut pipe.write, answer).await?);
    }
    let wait = core.limits.piece_wait;
    let of = (meta.bytes, room_for(core, meta.bytes));
    let body = read_body(&mut pipe.read, of, wait, &remote.tally).await;
    let body = match body {
        Ok(body) => core.store.keep(body),
        Err(error) => {
            // The sender learns of the refusal only if the stream still works.
            let _ = acknowledge(core, &mut pipe.write, ACK_REFUSED).await;
            return Err(error);
        }
    };
    let digest = digest_of(&slice, &body);
    if core.store.put(from, slice, meta, body) {
        core.tell(BulkEvent::Arrived {
            from,
            slice,
            meta,
            digest,
        })
        .await;
    }
    Ok(acknowledge(core, &mut pipe.write, ACK_TAKEN).await?)
}

/// The store's buffer for a body.
pub(crate) fn room_for(core: &Core, bytes: u64) -> Vec<u8> {
    usize::try_from(bytes).map_or(Vec::new(), |bytes| core.store.room(bytes))
}

/// The digest of what peers vote on; `None` for a contribution.
pub(crate) fn digest_of(slice: &SliceId, bytes: &[u8]) -> Option<Digest> {
    slice.part.is_decided().then(|| Digest::of(bytes))
}

async fn acknowledge(core: &Core, to: &mut PipeWriter, answer: u8) -> io::Result<()> {
    to.set_urgency(ANSWER);
    to.release();
    let write = async {
        to.write_all(&[answer]).await?;
        to.finish().await
    };
    tokio::time::timeout(core.limits.header_wait, write)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn give(
    core: &Core,
    remote: &Remote,
    to: &mut PipeWriter,
    request: Request,
) -> io::Result<()> {
    let blob = |blob: Bytes| {
        let bytes = blob.len() as u64;
        (Reply::Blob { bytes }, blob)
    };
    let (wanted, round) = match &request {
        Request::Slice(slice) | Request::Push { slice, .. } => (Some(slice), slice.round),
        Request::Manifest(state) | Request::Chunk { state, .. } => (None, state.round),
    };
    let pace = core.store.pace(round);
    let found = match request {
        _ if !core.store.may_read(remote.peer, wanted) => None,
        Request::Slice(slice) => {
            let found = core.store.for_peer(remote.peer, &slice);
            found.map(|(meta, bytes)| (Reply::Slice(meta), bytes))
        }
        Request::Manifest(state) => core.store.state_manifest(&state).map(blob),
        Request::Chunk { state, index } => {
            // It may be read from a disk, which must not hold up the network's threads.
            let store = Arc::clone(&core.store);
            let read = tokio::task::spawn_blocking(move || store.state_chunk(&state, index));
            read.await.ok().flatten().map(blob)
        }
        Request::Push { .. } => None,
    };
    let (reply, bytes) = found.unwrap_or((Reply::Absent, Bytes::new()));
    let (limits, throttle) = (&core.limits, pace.as_ref().unwrap_or(&remote.throttle));
    let left = |bytes| remote.tally.bulk_out(bytes);
    to.set_urgency(match request {
        // A peer that requests a slice waits for it in its round.
        Request::Slice(_) => ANSWER,
        _ => BACKGROUND,
    });
    write_header(to, &reply, limits.header_wait).await?;
    write_body(to, &bytes, limits.piece_wait, throttle, left).await?;
    to.release();
    finish(to, limits.piece_wait).await
}
