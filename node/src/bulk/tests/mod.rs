//! Tests of bulk transfer: a store, and helpers that the tests share.

mod connections;
mod pipes;
mod swarms;
mod ways;

use super::core::Remote;
use super::push::urgency;
use super::serve::serve;
use super::wire::{ACK_REFUSED, Reply, Request, read_header, write_header};
use super::*;
use crate::net::tests::{Raw, Side, WAIT, link, side, side_with, side_within, tcp_side};
use crate::net::{BulkPath, NetEvent};
use crate::traffic::{Counters, LinkMeters};
use bytes::Bytes;
use futures::future::BoxFuture;
use murmurate_net::congestion::MaxRate;
use murmurate_net::quic::BulkConnection;
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_protocol::{
    Digest, FetchId, FragmentId, Part, PeerId, PushOutcome, Round, SliceId, SliceMeta, SortedMap,
    StateId, Tag,
};
use murmurate_strategies::executor::state_in_memory;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::compat::TokioAsyncReadCompatExt;
use tokio_util::sync::CancellationToken;

/// A deadline that the test lets pass.
const BRIEF: Duration = Duration::from_millis(50);

/// A channel that holds back replies from a given chunk on until a message arrives, which may never
/// happen.
type Hold = Mutex<std::sync::mpsc::Receiver<()>>;

#[derive(Default)]
pub(crate) struct TestStore {
    slices: Mutex<SortedMap<SliceId, (SliceMeta, Bytes)>>,
    states: Mutex<SortedMap<StateId, Bytes>>,
    manifests: Mutex<SortedMap<StateId, Bytes>>,
    chunks: Mutex<SortedMap<(StateId, u32), Bytes>>,
    refuses: AtomicBool,
    lies: AtomicBool,
    chunks_given: AtomicU32,
    hold: Option<(u32, mpsc::UnboundedSender<()>, Hold)>,
}

impl TestStore {
    fn keep(&self, slice: SliceId, meta: SliceMeta, bytes: Bytes) {
        self.slices.lock().unwrap().insert(slice, (meta, bytes));
    }

    /// Makes `bytes` a state that peers can fetch from this store.
    fn pin(&self, bytes: &Bytes) -> StateId {
        let written = state_in_memory(Round(5), &mut |out| out.write_all(bytes));
        let (state, manifest, _) = written.unwrap();
        self.states.lock().unwrap().insert(state, bytes.clone());
        self.manifests.lock().unwrap().insert(state, manifest);
        state
    }

    /// The bytes of the fetched state.
    fn fetched(&self, state: &StateId) -> Vec<u8> {
        let chunks = self.chunks.lock().unwrap();
        let of = chunks.iter().filter(|((s, _), _)| s == state);
        of.flat_map(|(_, bytes)| bytes.to_vec()).collect()
    }
}

impl BulkStore for TestStore {
    fn get(&self, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        self.slices.lock().unwrap().get(slice).cloned()
    }

    fn for_peer(&self, _: PeerId, slice: &SliceId) -> Option<(SliceMeta, Bytes)> {
        BulkStore::get(self, slice)
    }

    fn may_push(&self, _: PeerId, _: &SliceId) -> bool {
        true
    }

    fn accepts(&self, _: PeerId, slice: &SliceId, _: &SliceMeta) -> Result<(), Refusal> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Refusal::Unwanted);
        }
        let here = self.slices.lock().unwrap().contains_key(slice);
        if here {
            Err(Refusal::AlreadyHere)
        } else {
            Ok(())
        }
    }

    fn put(&self, _: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) -> bool {
        self.keep(slice, meta, bytes);
        true
    }

    fn put_fetched(&self, _: PeerId, slice: SliceId, meta: SliceMeta, bytes: Bytes) {
        self.keep(slice, meta, bytes);
    }

    fn may_read(&self, _: PeerId, _: Option<&SliceId>) -> bool {
        true
    }

    fn state_manifest(&self, state: &StateId) -> Option<Bytes> {
        self.manifests.lock().unwrap().get(state).cloned()
    }

    fn state_chunk(&self, state: &StateId, index: u32) -> Option<Bytes> {
        let given = self.chunks_given.fetch_add(1, Ordering::Relaxed);
        if let Some((after, held, until)) = &self.hold
            && given >= *after
        {
            let _ = held.send(());
            let _ = until.lock().unwrap().recv_timeout(WAIT);
        }
        let bytes = chunk(self.states.lock().unwrap().get(state)?, index)?;
        if self.lies.load(Ordering::Relaxed) {
            return Some(bytes.iter().map(|b| b ^ 1).collect::<Vec<u8>>().into());
        }
        Some(bytes)
    }

    fn put_state_manifest(&self, state: &StateId, manifest: Bytes) -> Result<(), Refusal> {
        self.manifests.lock().unwrap().insert(*state, manifest);
        Ok(())
    }

    fn has_state_chunk(&self, state: &StateId, index: u32) -> bool {
        self.chunks.lock().unwrap().contains_key(&(*state, index))
    }

    fn put_state_chunk(&self, state: &StateId, index: u32, bytes: Bytes) -> Result<(), Refusal> {
        self.chunks.lock().unwrap().insert((*state, index), bytes);
        Ok(())
    }
}

fn noise(bytes: usize) -> Bytes {
    let mut x = 1u32;
    let mut next = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect::<Vec<u8>>().into()
}

fn slice(part: Part, bytes: usize) -> (SliceId, SliceMeta) {
    let id = SliceId {
        round: Round(3),
        fragment: FragmentId(1),
        shard: 0,
        part,
        origin: PeerId::from_bytes([9; 32]),
        attempt: murmurate_protocol::Attempt(0),
    };
    (
        id,
        SliceMeta {
            of: 1,
            bytes: bytes as u64,
            tag: Tag::Mass { weight: 2.5 },
        },
    )
}

fn soon() -> Instant {
    Instant::now() + WAIT
}

async fn outcome(side: &mut Side) -> PushOutcome {
    side.until(|event| match event {
        NetEvent::Bulk(BulkEvent::Pushed { outcome, .. }) => Some(outcome),
        _ => None,
    })
    .await
}
