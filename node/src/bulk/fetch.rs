//! Fetches items by name, with one request and one reply for each. A slice comes from the first donor that has it. Of a
//! state the manifest comes first, then its chunks from several donors at once; those that an earlier attempt stored
//! are not requested again.

use super::chunks::{ChunkBook, ChunkOutcome};
use super::push::ANSWER;
use super::serve::{digest_of, room_for};
use super::wire::{Reply, Request, StreamError, finish, read_body, read_header, write_header};
use super::{BulkEvent, BulkFault, Core, Manifest, Pipe, Refusal, Way};
use crate::spans;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use murmurate_protocol::{FetchId, PeerId, SliceId, SliceMeta, SortedMap, StateId};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How an attempt to fetch from one donor failed.
#[derive(Debug)]
pub(crate) enum FetchError {
    Absent,
    /// The donor violated the protocol; this was reported.
    Fault,
    /// The link broke or the donor is too slow.
    Broken,
    Refused,
}

/// Sends a request to one donor and reads the reply's bytes. Reports faults of the donor. A request
/// whose connection over TCP breaks is sent once more, over QUIC.
///
/// `bytes_of` returns how many bytes may follow a reply, or why the reply is wrong.
pub(crate) async fn ask<T>(
    core: &Core,
    donor: PeerId,
    request: Request,
    bytes_of: impl Fn(Reply) -> Result<(T, u64), FetchError>,
) -> Result<(T, Bytes), FetchError> {
    let open = async || core.transport.open(donor, u64::MAX).await;
    let pipe = open().await.map_err(|_| FetchError::Broken)?;
    let way = pipe.way();
    match ask_on(core, pipe, donor, &request, &bytes_of).await {
        Err(FetchError::Broken) if way == Way::Tls => {
            let pipe = open().await.map_err(|_| FetchError::Broken)?;
            ask_on(core, pipe, donor, &request, &bytes_of).await
        }
        ended => ended,
    }
}

async fn ask_on<T>(
    core: &Core,
    pipe: Pipe,
    donor: PeerId,
    request: &Request,
    bytes_of: impl Fn(Reply) -> Result<(T, u64), FetchError>,
) -> Result<(T, Bytes), FetchError> {
    let asked = async {
        let Pipe {
            mut write,
            mut read,
        } = pipe;
        write.set_urgency(ANSWER);
        write_header(&mut write, request, core.limits.header_wait).await?;
        write.release();
        finish(&mut write, core.limits.header_wait).await?;
        let reply = read_header::<Reply>(&mut read, core.limits.header_wait).await?;
        let (what, bytes) = match bytes_of(reply) {
            Ok(known) => known,
            Err(error) => return Ok(Err(error)),
        };
        let tally = core.counters.of(donor);
        let wait = core.limits.piece_wait;
        let of = (bytes, room_for(core, bytes));
        let body = read_body(&mut read, of, wait, &tally).await?;
        Ok::<_, StreamError>(Ok((what, core.store.keep(body))))
    };
    match asked.await {
        Ok(Err(FetchError::Fault)) => {
            core.tell(BulkEvent::Malformed {
                from: donor,
                what: BulkFault::OtherReply,
            })
            .await;
            Err(FetchError::Fault)
        }
        Ok(ended) => ended,
        Err(StreamError::Broken) => Err(FetchError::Broken),
        Err(StreamError::Fault(what)) => {
            let misbehaved = what.is_misbehaviour();
            core.tell(BulkEvent::Malformed { from: donor, what }).await;
            Err(if misbehaved {
                FetchError::Fault
            } else {
                FetchError::Broken
            })
        }
    }
}

/// Fetches a slice from the first of `donors` that delivers it.
pub(crate) async fn fetch_slice(core: &Core, slice: SliceId, donors: &[PeerId]) -> BulkEvent {
    let what = FetchId::Slice(slice);
    let fetched = |meta, bytes: &Bytes| BulkEvent::Fetched {
        what,
        meta: Some(meta),
        digest: digest_of(&slice, bytes),
    };
    for donor in donors {
        let max = core.limits.slice_bytes_max;
        let store = &core.store;
        let accepted = |meta: SliceMeta| match store.accepts(*donor, &slice, &meta) {
            // Its owner may have given this peer other bytes than those that were decided.
            Ok(()) | Err(Refusal::AlreadyHere) if meta.bytes <= max => Ok((meta, meta.bytes)),
            _ => Err(FetchError::Refused),
        };
        let asked = ask(core, *donor, Request::Slice(slice), |reply| match reply {
            Reply::Slice(meta) => accepted(meta),
            Reply::Absent => Err(FetchError::Absent),
            Reply::Blob { .. } => Err(FetchError::Fault),
        });
        match asked.await {
            Ok((meta, bytes)) => {
                let event = fetched(meta, &bytes);
                core.store.put_fetched(*donor, slice, meta, bytes);
                return event;
            }
            Err(error) => {
                spans::transfer(&slice, *donor).in_scope(|| {
                    tracing::debug!(shard = slice.shard, ?error, "donor gave no slice");
                });
            }
        }
        if let Some((meta, bytes)) = core.store.get(&slice) {
            // The slice arrived through a push in the meantime.
            return fetched(meta, &bytes);
        }
    }
    BulkEvent::FetchFailed { what }
}

/// A chunk may take this many times as long as the slowest that has come, before another donor is asked for it.
const LATE_FACTOR: u32 = 3;

/// It may always take this long: 1 MiB at half a megabyte a second.
const LATE_MIN: Duration = Duration::from_secs(2);

/// Time between two looks for chunks that are late.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long the chunks of a state take.
struct Pace {
    asked: SortedMap<u32, Instant>,
    slowest: Duration,
    last_good: Instant,
}

impl Pace {
    /// A chunk came; true if its donor may owe several.
    fn came(&mut self, index: u32) -> bool {
        self.last_good = Instant::now();
        let took = self.asked.remove(&index).map(|at| at.elapsed());
        let took = took.unwrap_or_default();
        self.slowest = self.slowest.max(took);
        took <= LATE_MIN
    }

    fn is_late(&self, index: u32) -> bool {
        let allowed = LATE_MIN.max(self.slowest * LATE_FACTOR);
        let asked = self.asked.get(&index);
        asked.is_some_and(|at| at.elapsed() > allowed)
    }
}

pub(crate) async fn fetch_state(core: &Core, state: StateId, donors: &[PeerId]) -> BulkEvent {
    let what = FetchId::State(state);
    let Some(manifest) = manifest(core, state, donors).await else {
        return BulkEvent::FetchFailed { what };
    };
    if !chunks(core, state, &manifest, donors).await {
        return BulkEvent::FetchFailed { what };
    }
    BulkEvent::Fetched {
        what,
        meta: None,
        digest: None,
    }
}

/// The manifest from the store, or from the first donor that sends a valid one.
async fn manifest(core: &Core, state: StateId, donors: &[PeerId]) -> Option<Manifest> {
    let kept = core.store.state_manifest(&state);
    if let Some(manifest) = kept.and_then(|bytes| Manifest::verify(state, &bytes).ok()) {
        return Some(manifest);
    }
    let wanted = Manifest::bytes_for(&state).ok()?;
    for donor in donors {
        let Ok(bytes) = blob(core, *donor, Request::Manifest(state), wanted).await else {
            continue;
        };
        let Ok(manifest) = Manifest::verify(state, &bytes) else {
            let what = BulkFault::WrongManifest { state };
            core.tell(BulkEvent::Malformed { from: *donor, what }).await;
            continue;
        };
        if let Err(refusal) = core.store.put_state_manifest(&state, bytes) {
            tracing::warn!(round = %state.round, %refusal, "the store refuses the state");
            return None;
        }
        return Some(manifest);
    }
    None
}

async fn chunks(core: &Core, state: StateId, manifest: &Manifest, donors: &[PeerId]) -> bool {
    let missing = (0..manifest.chunks()).filter(|i| !core.store.has_state_chunk(&state, *i));
    let donors = donors.iter().copied();
    let mut book = ChunkBook::new(missing, donors, core.limits.chunks_per_donor);
    let mut active = FuturesUnordered::new();
    let mut pace = Pace {
        asked: SortedMap::new(),
        slowest: Duration::ZERO,
        last_good: Instant::now(),
    };
    loop {
        while let Some((donor, index)) = book.next().or_else(|| book.help(|i| pace.is_late(i))) {
            pace.asked.entry(index).or_insert_with(Instant::now);
            active.push(async move {
                let fetched = chunk(core, donor, state, manifest, index).await;
                (donor, index, fetched)
            });
        }
        if book.is_complete() {
            return true;
        }
        let wait = core.limits.progress_wait;
        let left = wait.saturating_sub(pace.last_good.elapsed());
        let (donor, index, fetched) = match timeout(left.min(LOOK_EVERY), active.next()).await {
            Ok(Some(ended)) => ended,
            Err(_) if !left.is_zero() => continue,
            // No donor is left, or none answers.
            Ok(None) | Err(_) => return false,
        };
        let outcome = match fetched {
            Ok(bytes) => match put(core, state, index, bytes).await {
                Ok(()) => ChunkOutcome::Good,
                Err(refusal) => {
                    tracing::warn!(round = %state.round, index, %refusal, "the store refuses a chunk");
                    return false;
                }
            },
            Err(error) => {
                tracing::debug!(%donor, index, ?error, "donor gave no chunk");
                match error {
                    FetchError::Broken => ChunkOutcome::Broken,
                    _ => ChunkOutcome::Useless,
                }
            }
        };
        if outcome == ChunkOutcome::Good {
            book.sent(donor, pace.came(index));
        }
        book.ended(donor, index, outcome);
    }
}

/// Stores a chunk. It may be written to a disk, which must not hold up the network's threads.
async fn put(core: &Core, state: StateId, index: u32, bytes: Bytes) -> Result<(), Refusal> {
    let store = Arc::clone(&core.store);
    let put = tokio::task::spawn_blocking(move || store.put_state_chunk(&state, index, bytes));
    // It ends without a result only when the daemon ends.
    put.await.unwrap_or(Err(Refusal::Unwanted))
}

async fn chunk(
    core: &Core,
    donor: PeerId,
    state: StateId,
    manifest: &Manifest,
    index: u32,
) -> Result<Bytes, FetchError> {
    let wanted = manifest.chunk_bytes(index).ok_or(FetchError::Absent)?;
    let bytes = blob(core, donor, Request::Chunk { state, index }, wanted).await?;
    if manifest.holds(index, &bytes) {
        return Ok(bytes);
    }
    let what = BulkFault::WrongChunk { state, index };
    core.tell(BulkEvent::Malformed { from: donor, what }).await;
    Err(FetchError::Fault)
}

async fn blob(
    core: &Core,
    donor: PeerId,
    request: Request,
    wanted: u64,
) -> Result<Bytes, FetchError> {
    let reply = ask(core, donor, request, |reply| match reply {
        Reply::Blob { bytes } if bytes == wanted => Ok(((), bytes)),
        Reply::Absent => Err(FetchError::Absent),
        Reply::Blob { .. } | Reply::Slice(_) => Err(FetchError::Fault),
    });
    reply.await.map(|((), bytes)| bytes)
}
