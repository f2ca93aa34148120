//! The vitals that a daemon has, shared by its driver, the network's task and the tasks of streams.

use super::table::{Elsewhere, SeenElsewhere, SeenVitals, Table, in_messages, is_signed};
use crate::net::Membership;
use crate::net::bucket::Budget;
use libp2p::identity::Keypair;
use murmurate_protocol::vitals::{Heard, Known, SignedVitals, Vitals, VitalsMessage};
use murmurate_protocol::wire::WireError;
use murmurate_protocol::{PeerId, Signature, SortedMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Time between two lists of the vitals here, each to the next linked peer.
pub(in crate::net) const GOSSIP_EVERY: Duration = Duration::from_secs(1);

/// Messages that may wait in the queue to one peer: own vitals, a list, and the answer to one.
const WAITING_MAX: usize = 12;

/// What one peer may cost in a burst, and per second after that: the bytes that it sends.
const BURST_BYTES: u32 = 256 << 10;
const BYTES_PER_SECOND: u32 = 64 << 10;

/// What waits to be written to one peer.
pub(super) type Queue = mpsc::Receiver<Arc<[u8]>>;

/// The vitals of the swarm, as this daemon knows them.
#[derive(Clone)]
pub struct VitalsBoard(Arc<Shared>);

struct Shared {
    identity: Keypair,
    membership: Arc<Membership>,
    budget: Budget,
    state: Mutex<State>,
    /// Bytes sent and received on streams of vitals.
    bytes: [AtomicU64; 2],
}

struct State {
    table: Table,
    queues: SortedMap<PeerId, mpsc::Sender<Arc<[u8]>>>,
    /// The peer that was told last how new the vitals here are.
    told: Option<PeerId>,
    sequence: u64,
    elsewhere: Elsewhere,
}

impl fmt::Debug for VitalsBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VitalsBoard").finish_non_exhaustive()
    }
}

impl VitalsBoard {
    pub(in crate::net) fn new(identity: Keypair, membership: Arc<Membership>) -> Self {
        Self::since(Instant::now(), identity, membership)
    }

    /// As [`Self::new`], of a daemon that began its life then.
    pub(super) fn since(born: Instant, identity: Keypair, membership: Arc<Membership>) -> Self {
        let table = Table::new(membership.me());
        Self(Arc::new(Shared {
            identity,
            membership,
            budget: Budget::new(BURST_BYTES, BYTES_PER_SECOND),
            state: Mutex::new(State {
                table,
                queues: SortedMap::new(),
                told: None,
                sequence: 0,
                elsewhere: Elsewhere::new(born),
            }),
            bytes: [AtomicU64::new(0), AtomicU64::new(0)],
        }))
    }

    /// What peers may cost.
    pub(super) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Signs what this daemon says of itself and sends it to all linked peers. Sets its peer and its
    /// sequence number, which follows the clock and so grows over restarts.
    pub fn say(&self, mut vitals: Vitals) {
        let now = Instant::now();
        let mut state = self.lock();
        state.sequence = vitals.unix_ms.max(state.sequence.saturating_add(1));
        vitals.sequence = state.sequence;
        let sequence = state.sequence;
        state.elsewhere.says(sequence);
        vitals.peer = self.0.membership.me();
        let statement = SignedVitals::statement(&self.0.membership.run().id, &vitals);
        // Ed25519 keys can always sign, and other kinds were refused at the start.
        let signature = self.0.identity.sign(&statement).ok();
        let signature = signature.and_then(|bytes| bytes.try_into().ok());
        let Some(signature) = signature.map(Signature::from_bytes) else {
            return;
        };
        let signed = SignedVitals { vitals, signature };
        if let Err(error) = signed.check() {
            tracing::warn!(%error, "this daemon's vitals are not sent");
            return;
        }
        state.table.say(signed, now);
        let Some(mine) = state.table.mine(now) else {
            return;
        };
        let message: Arc<[u8]> = VitalsMessage::Vitals(vec![mine]).encode().into();
        for queue in state.queues.values() {
            // A full queue drops them: newer ones follow.
            let _ = queue.try_send(Arc::clone(&message));
        }
    }

    /// What another daemon with this identity said last, if there is one.
    pub fn elsewhere(&self) -> Option<SeenElsewhere> {
        self.lock().elsewhere.last().cloned()
    }

    /// As [`Self::say`], so that another daemon with this identity hears it.
    pub fn say_to_the_other(&self, vitals: Vitals) {
        let mut state = self.lock();
        state.sequence = state.elsewhere.outbid(state.sequence);
        drop(state);
        self.say(vitals);
    }

    /// The vitals of all other peers.
    pub fn seen(&self) -> Vec<SeenVitals> {
        let now = Instant::now();
        self.lock().table.seen(now)
    }

    /// How long ago another peer said something, as far as it got here.
    pub(in crate::net) fn heard(&self, peer: &PeerId) -> Option<Duration> {
        self.lock().table.age_of(peer, Instant::now())
    }

    /// Bytes sent and received for vitals.
    pub fn traffic(&self) -> (u64, u64) {
        let [sent, received] = &self.0.bytes;
        (
            sent.load(Ordering::Relaxed),
            received.load(Ordering::Relaxed),
        )
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.0.bytes[0].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.0.bytes[1].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Begins a queue to a linked peer, with this daemon's own vitals, those that were heard of the peer and a list
    /// of all vitals here. A peer that hears of vitals that it did not make runs twice.
    pub(in crate::net) fn open(&self, peer: PeerId) -> Queue {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let now = Instant::now();
        let mut state = self.lock();
        let mine = state
            .table
            .mine(now)
            .map(|mine| VitalsMessage::Vitals(vec![mine]));
        let list = VitalsMessage::Known(state.table.known());
        let theirs = in_messages(state.table.of(&[Known::prefix(&peer)], now));
        let theirs = theirs.into_iter().map(VitalsMessage::Vitals);
        for message in mine.into_iter().chain(theirs).chain([list]) {
            let _ = queue.try_send(message.encode().into());
        }
        state.queues.insert(peer, queue);
        waiting
    }

    pub(in crate::net) fn close(&self, peer: &PeerId) {
        self.lock().queues.remove(peer);
    }

    /// Tells the next linked peer, in the order of ids, how new the vitals here are.
    pub(in crate::net) fn gossip(&self) {
        let now = Instant::now();
        let mut state = self.lock();
        let membership = &self.0.membership;
        state.table.tidy(now, |peer| membership.has(peer));
        let after = |peer: &PeerId| state.told.is_none_or(|told| *peer > told);
        let next = state.queues.keys().find(|peer| after(peer));
        let Some(next) = next.or_else(|| state.queues.keys().next()).copied() else {
            return;
        };
        state.told = Some(next);
        let list = VitalsMessage::Known(state.table.known());
        state.send(&next, &list);
    }

    /// Takes a message from a linked peer, and answers it.
    ///
    /// # Errors
    /// If the peer passed on vitals that were not signed by the peer that they name.
    pub(super) fn take(&self, from: PeerId, message: VitalsMessage) -> Result<(), WireError> {
        let now = Instant::now();
        match message {
            VitalsMessage::Vitals(all) => {
                return all.into_iter().try_for_each(|heard| self.hear(heard, now));
            }
            VitalsMessage::Known(theirs) => {
                let state = self.lock();
                let difference = state.table.difference(&theirs, now);
                for some in in_messages(difference.lacks) {
                    state.send(&from, &VitalsMessage::Vitals(some));
                }
                if !difference.wanted.is_empty() {
                    state.send(&from, &VitalsMessage::Wanted(difference.wanted));
                }
            }
            VitalsMessage::Wanted(wanted) => {
                let state = self.lock();
                for some in in_messages(state.table.of(&wanted, now)) {
                    state.send(&from, &VitalsMessage::Vitals(some));
                }
            }
        }
        Ok(())
    }

    /// Keeps vitals if they are of use: whose peer is no member here may be one elsewhere.
    fn hear(&self, heard: Heard, now: Instant) -> Result<(), WireError> {
        let membership = &self.0.membership;
        if heard.signed.vitals.peer == membership.me() {
            return self.hear_of_this_identity(heard, now);
        }
        if !self.lock().table.wants(&heard, now) || !membership.has(&heard.signed.vitals.peer) {
            return Ok(());
        }
        // Not under the lock, for which the driver waits.
        if !is_signed(&membership.run().id, &heard.signed) {
            return Err(WireError::Signature);
        }
        let mut state = self.lock();
        let linked = state.queues.keys().copied().collect();
        state.table.keep(heard, now, &linked);
        Ok(())
    }

    /// Vitals in this daemon's own name: those that it did not make are of another one.
    fn hear_of_this_identity(&self, heard: Heard, now: Instant) -> Result<(), WireError> {
        let state = self.lock();
        let may_be = state.elsewhere.may_be(&heard, now);
        drop(state);
        if !may_be {
            return Ok(());
        }
        if !is_signed(&self.0.membership.run().id, &heard.signed) {
            return Err(WireError::Signature);
        }
        self.lock().elsewhere.keep(heard.signed.vitals, now);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete before the lock is released.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Queues a message. A full queue drops it: a later list shows the gap.
    fn send(&self, to: &PeerId, message: &VitalsMessage) {
        if let Some(queue) = self.queues.get(to) {
            let _ = queue.try_send(message.encode().into());
        }
    }
}
