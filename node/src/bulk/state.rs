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
use std::sync::Arc;
use tokio::time::timeout;

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
    let mut last_good = tokio::time::Instant::now();
    loop {
        while let Some((donor, index)) = book.next() {
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
            .saturating_sub(last_good.elapsed());
        let (donor, index, fetched) = match timeout(left, active.next()).await {
            Ok(Some(ended)) => ended,
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
            last_good = tokio::time::Instant::now();
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
