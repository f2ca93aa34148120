//! A machine of the swarm: what survives its crashes, and while it is up its Peer, the performer of its orders, and
//! its slices.

use crate::data::Feed;
use crate::fault::{Forger, Lying};
use crate::lane::{Forward, LaneState};
use crate::speed::Drift;
use crate::stores::Stores;
use crate::timing::Timing;
use bytes::Bytes;
use core::time::Duration;
use murmurate_protocol::{
    Base, Digest, Directives, Done, FetchId, Input, JoinedGroups, Lane, Order, Peer, PeerError,
    PeerId, Round, SealMemory, SiteFinder, SliceId, SliceMeta, Snapshot, StepBudget, Time,
};
use murmurate_strategies::executor::Executor;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::state::MemoryState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state from which a crashed machine restarts.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) kept: Kept,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) feed: Option<Feed>,
}

/// The part of a machine's work that survives a crash.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    Tensors(MemoryState),
    Digests(Vec<Digest>),
}

/// Performs the orders.
pub(crate) enum Worker {
    Executor(Box<Executor>),
    Timing(Timing),
}

/// A machine that is up.
pub(crate) struct Host {
    pub(crate) peer: Peer,
    pub(crate) stores: Stores,
    /// Pushes whose outcome the peer does not know, by number.
    pub(crate) open_pushes: Vec<usize>,
    worker: Worker,
    lanes: [LaneState; 2],
    /// How far its next forward pass is.
    pub(crate) forward: Forward,
    /// Where the machines divide data.
    pub(crate) feed: Option<Feed>,
    /// Hundreds, each of many bytes: an array would move them all the time.
    heads: BTreeMap<SliceId, Head>,
    /// In which groups the peer was in its round.
    joined: JoinedGroups,
    pub(crate) finder: Option<Box<SiteFinder>>,
}

/// What came with a slice, or with its order.
#[derive(Clone, Copy, Debug)]
struct Head {
    meta: SliceMeta,
    /// It was pushed to this machine.
    pushed: bool,
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host")
            .field("round", &self.peer.round())
            .finish_non_exhaustive()
    }
}

impl Host {
    /// A machine before its first input.
    pub(crate) fn new(peer: Peer, worker: Worker) -> Self {
        Self {
            peer,
            stores: Stores::default(),
            open_pushes: Vec::new(),
            worker,
            lanes: [LaneState::default(), LaneState::default()],
            forward: Forward::default(),
            feed: None,
            heads: BTreeMap::new(),
            joined: JoinedGroups::default(),
            finder: None,
        }
    }

    pub(crate) fn lane(&mut self, lane: Lane) -> &mut LaneState {
        match lane {
            Lane::Train => &mut self.lanes[0],
            Lane::Mix => &mut self.lanes[1],
        }
    }

    pub(crate) fn orders(&self) -> usize {
        self.lanes.iter().map(LaneState::len).sum()
    }

    /// Push-sum weight that this peer holds, without the weight of its pushes in flight.
    pub(crate) fn mass(&self) -> f64 {
        self.peer.weight_held()
    }

    /// Performs an order; training takes `steps` inner steps.
    pub(crate) fn perform(&mut self, order: &Order, steps: u32) -> Option<Done> {
        let mut done = self.work(order, steps);
        if let Order::Train {
            blocks: Some(blocks),
            ..
        } = order
            && let (Some(feed), Some(Done::Trained(summary))) = (&mut self.feed, &mut done)
        {
            feed.take(blocks);
            feed.train(summary);
        }
        done
    }

    fn work(&mut self, order: &Order, steps: u32) -> Option<Done> {
        if let Order::Release { slice } = order {
            self.heads.remove(slice);
        }
        let executor = match &mut self.worker {
            Worker::Executor(executor) => executor,
            Worker::Timing(timing) => return timing.perform(order, steps, &self.stores),
        };
        if !matches!(order, Order::Train { .. }) {
            return executor.perform(order, &self.stores);
        }
        let mut order = order.clone();
        if let Order::Train { budget, .. } = &mut order {
            // The number of inner steps follows from virtual time.
            *budget = StepBudget::Steps(steps);
        }
        executor.perform(&order, &self.stores)
    }

    pub(crate) fn slices(&self) -> usize {
        self.stores.slices()
    }

    /// Contents of a checkpoint.
    pub(crate) fn save(&mut self, snapshot: Arc<Snapshot>) -> Result<Checkpoint, String> {
        let kept = match &mut self.worker {
            Worker::Timing(timing) => Kept::Digests(timing.digests()),
            Worker::Executor(executor) => {
                let mut state = MemoryState::default();
                executor
                    .save(&mut state)
                    .map_err(|error| error.to_string())?;
                Kept::Tensors(state)
            }
        };
        let feed = self.feed.clone();
        Ok(Checkpoint {
            kept,
            snapshot,
            feed,
        })
    }

    /// All parameters at the start of the round; empty without tensors.
    pub(crate) fn parameters(&self) -> Vec<f32> {
        match &self.worker {
            Worker::Executor(executor) => executor.anchor().to_vec(),
            Worker::Timing(_) => Vec::new(),
        }
    }

    /// The bytes of a slice to push. Keeps its header for peers that fetch it.
    pub(crate) fn pushed(&mut self, slice: SliceId, meta: SliceMeta) -> Option<Bytes> {
        if slice.part.is_decided() {
            self.note(slice, meta);
        }
        self.stores.get(&slice)
    }

    pub(crate) fn handle(&mut self, at: Time, input: Input) -> Result<(), PeerError> {
        let result = self.peer.handle(at, input);
        self.joined.note(self.peer.round(), self.peer.group());
        result
    }

    /// Others that fetch a slice get this header.
    fn note(&mut self, slice: SliceId, meta: SliceMeta) {
        let pushed = false;
        let head = self.heads.entry(slice);
        head.or_insert(Head { meta, pushed }).meta = meta;
    }

    /// A pushed slice is complete. Returns whether it is stored: an earlier one may be here.
    pub(crate) fn arrived(&mut self, slice: SliceId, meta: SliceMeta, bytes: Bytes) -> bool {
        let here = self.heads.get(&slice).filter(|head| head.pushed);
        if here.is_some_and(|here| !self.joined.replaces(&slice, here.meta.tag, meta.tag)) {
            return false;
        }
        let pushed = true;
        self.heads.insert(slice, Head { meta, pushed });
        self.stores.put(slice, bytes);
        true
    }

    /// The bytes that this machine can give to a fetching machine.
    pub(crate) fn donate(&self, what: &FetchId) -> Option<(Option<SliceMeta>, Bytes)> {
        match what {
            FetchId::Slice(slice) => {
                let head = self.heads.get(slice);
                let head = head.filter(|_| slice.part.is_decided());
                Some((head.map(|head| head.meta), self.stores.get(slice)?))
            }
            FetchId::State(state) => Some((None, self.stores.pinned(state)?)),
        }
    }

    pub(crate) fn fetched(&mut self, what: &FetchId, meta: Option<SliceMeta>, bytes: Bytes) {
        match what {
            FetchId::Slice(slice) => {
                if let Some(meta) = meta {
                    self.note(*slice, meta);
                }
                self.stores.put(*slice, bytes);
            }
            FetchId::State(state) => {
                self.stores.keep_fetched(*state, bytes);
            }
        }
    }
}

/// A machine: what survives its crashes, and the host while it is up.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: PeerId,
    pub(crate) host: Option<Box<Host>>,
    /// Increases with every crash. Orders of an earlier life are void.
    pub(crate) life: u32,
    pub(crate) checkpoint: Option<Checkpoint>,
    /// Factor on the time of its inner steps.
    pub(crate) slowness: f64,
    pub(crate) drift: Drift,
    /// Offset of its clock.
    pub(crate) ahead: Duration,
    /// Its lie, and until when.
    pub(crate) lying: Option<Lying>,
    /// The last round in which it signed something.
    pub(crate) signed: Option<Round>,
    /// The same of earlier lives.
    pub(crate) forgotten: Option<Round>,
    /// With which parameters it began its rounds, in all its lives.
    pub(crate) opened: Vec<Base>,
    /// The owner's directives that it knows, in all its lives.
    pub(crate) directives: Directives,
    /// Signatures that it made and checked.
    pub(crate) memory: SealMemory,
    /// Material for its lies.
    pub(crate) forger: Forger,
    /// Records that it made in this life.
    pub(crate) records: u64,
    /// The earliest scheduled wake-up.
    pub(crate) wake_at: Option<Time>,
    pub(crate) paused_until: Time,
    pub(crate) finished: bool,
    /// Faults that wait for a phase of this machine.
    pub(crate) waiting_faults: Vec<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    last: Option<(Box<[u8]>, Arc<Snapshot>)>,
}

impl Snapshots {
    /// Reads a snapshot. One with the same bytes as the last is the same.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Arc<Snapshot>, String> {
        if let Some((last, snapshot)) = &self.last
            && **last == *bytes
        {
            return Ok(snapshot.clone());
        }
        let snapshot = Snapshot::from_bytes(bytes).map_err(|error| error.to_string())?;
        let snapshot = Arc::new(snapshot);
        self.last = Some((bytes.into(), snapshot.clone()));
        Ok(snapshot)
    }
}
