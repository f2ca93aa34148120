//! Fetches a state: the manifest first, then its chunks from several donors at once.
//!
//! Chunks that an earlier attempt stored are not requested again.

use crate::bulk::chunks::{ChunkBook, ChunkOutcome};
use crate::bulk::fetch::{FetchError, ask};
use crate::bulk::wire::{Reply, Request};
use crate::bulk::{BulkEvent, BulkFault, Core, Manifest, Refusal};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use murmurate_protocol::{FetchId, PeerId, StateId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A chunk may take this many times as long as the slowest that has come, before another donor is asked for
/// it.
const LATE_FACTOR: u32 = 3;

/// It may always take this long: 1 MiB at half a megabyte a second.
const LATE_MIN: Duration = Duration::from_secs(2);

/// Time between two looks for chunks that are late.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long the chunks of a state take.
struct Pace {
    asked: BTreeMap<u32, Instant>,
    slowest: Duration,
    last_good: Instant,
}

impl Pace {
    fn new() -> Self {
        Self {
            asked: BTreeMap::new(),
            slowest: Duration::ZERO,
            last_good: Instant::now(),
        }
    }

    fn came(&mut self, index: u32) {
        self.last_good = Instant::now();
        let took = self.asked.remove(&index).map(|at| at.elapsed());
        self.slowest = self.slowest.max(took.unwrap_or_default());
    }

    fn is_late(&self, index: u32) -> bool {
        let allowed = LATE_MIN.max(self.slowest * LATE_FACTOR);
        let asked = self.asked.get(&index);
        asked.is_some_and(|at| at.elapsed() > allowed)
    }
}

/// Fetches a state into the store.
pub(crate) async fn fetch_state(core: &Core, state: StateId, donors: &[PeerId]) -> BulkEvent {
    let what = FetchId::State(state);
    let Some(manifest) = manifest(core, state, donors).await else {
        return BulkEvent::FetchFailed { what };
    };
    match chunks(core, state, &manifest, donors).await {
        true => BulkEvent::Fetched {
            what,
            meta: None,
            digest: None,
        },
        false => BulkEvent::FetchFailed { what },
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
    let mut pace = Pace::new();
    loop {
        while let Some((donor, index)) = book.next().or_else(|| book.help(|i| pace.is_late(i))) {
            pace.asked.entry(index).or_insert_with(Instant::now);
            active.push(async move {
                (
                    donor,
                    index,
                    chunk(core, donor, state, manifest, index).await,
                )
            });
        }
        if book.is_complete() {
            return true;
        }
        let left = core
            .limits
            .progress_wait
            .saturating_sub(pace.last_good.elapsed());
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
            Err(FetchError::Broken) => ChunkOutcome::Broken,
            Err(_) => ChunkOutcome::Useless,
        };
        if outcome == ChunkOutcome::Good {
            pace.came(index);
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
