//! Catching up: a newcomer or a straggler takes over the swarm's state.
//!
//! A straggler that missed a round or two replays their decisions (the encoded aggregates, a
//! fraction of a state) and keeps what it trained on top. Everybody else fetches a pinned state
//! from several donors, then replays what was decided while it was under way. Nobody else's round
//! waits for either.

use crate::exchange::slices_of;
use crate::limits::DONORS_MAX;
use crate::peer::timers::Timer;
use crate::peer::{Event, FetchId, Output, Peer, Phase, Wait};
use crate::wire::Message;
use crate::{
    Digest, Done, ExchangeKind, FragmentId, Order, OrderId, PeerId, Round, SliceId, StateId,
};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes per second below which a state transfer is given up.
const SLOWEST_RATE: u64 = 64 << 10;

/// Replayed rounds over which a straggler's own delta is kept.
const STALENESS_MAX: u32 = 2;

/// A past round that is being replayed.
#[derive(Debug, Default)]
pub(super) struct Replay {
    donor: Option<PeerId>,
    decisions: BTreeMap<FragmentId, Message>,
    fetching: BTreeMap<SliceId, Digest>,
    applies: BTreeMap<OrderId, FragmentId>,
    started: bool,
    replayed: u32,
}

/// How far the catch-up is.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// There is nothing to catch up with.
    Idle,
    /// Donors were asked.
    Asking {
        asked: BTreeSet<PeerId>,
        offers: BTreeMap<StateId, Vec<PeerId>>,
    },
    /// A state is on its way.
    Fetching(StateId),
    /// The Executor takes it over.
    Loading(OrderId, StateId),
    /// A past round is being replayed.
    Replaying(Replay),
}

impl CatchUp {
    pub(super) fn idle(&self) -> bool {
        matches!(self, Self::Idle)
    }
}

impl Peer {
    /// The swarm went on without this peer.
    pub(super) fn fall_behind(&mut self, teller: PeerId, resync: bool) {
        self.tell_alive();
        let agreed = self.cx.plan.exchange == ExchangeKind::AllReduce;
        if agreed && !resync {
            self.replay(teller, 0);
        } else {
            self.ask_state();
        }
    }

    /// Asks the peers that are furthest for their state.
    pub(super) fn ask_state(&mut self) {
        let mut donors: Vec<(Round, PeerId)> = self
            .cx
            .view
            .greeted()
            .filter(|(_, r)| r.ready)
            .map(|(id, r)| (r.round, id))
            .collect();
        donors.sort_by_key(|(round, id)| (std::cmp::Reverse(*round), *id));
        donors.truncate(DONORS_MAX);
        let newest = donors.first().map(|(round, _)| *round);
        let donors: BTreeSet<PeerId> = donors
            .into_iter()
            .filter(|(r, _)| Some(r.next()) >= newest)
            .map(|(_, id)| id)
            .collect();
        if donors.is_empty() {
            self.give_up_catching_up();
            return;
        }
        let at_least = self.cx.round;
        for peer in &donors {
            self.cx.send(*peer, Message::StateAsk { at_least });
        }
        let deadline = self.cx.now + self.cx.deadlines.answer() * 4;
        self.cx.wait(Wait::State, self.cx.deadlines.ceiling());
        self.cx.timers.set(Timer::CatchUp, deadline);
        self.catch_up = CatchUp::Asking {
            asked: donors,
            offers: BTreeMap::new(),
        };
    }

    /// Nobody is there who could help: go on from the own state, or wait for somebody to come.
    fn give_up_catching_up(&mut self) {
        self.catch_up = CatchUp::Idle;
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State, true);
        let deadline = self.cx.wait(Wait::Peers, self.cx.config.start_wait);
        self.cx.timers.set(Timer::Join, deadline);
    }

    pub(super) fn state_offered(&mut self, from: PeerId, state: StateId) {
        let CatchUp::Asking { asked, offers } = &mut self.catch_up else {
            return;
        };
        if !asked.remove(&from) {
            return;
        }
        let useful = state.bytes <= self.cx.plan.state_bytes && state.round >= self.cx.round;
        if useful {
            offers.entry(state).or_default().push(from);
        }
        if asked.is_empty() {
            self.choose_state();
        }
    }

    pub(super) fn state_refused(&mut self, from: PeerId) {
        let CatchUp::Asking { asked, .. } = &mut self.catch_up else {
            return;
        };
        asked.remove(&from);
        if asked.is_empty() {
            self.choose_state();
        }
    }

    /// Takes the state with the most donors, the newest of equals.
    fn choose_state(&mut self) {
        let CatchUp::Asking { offers, .. } = &self.catch_up else {
            return;
        };
        let best = offers
            .iter()
            .max_by_key(|(state, donors)| (donors.len(), state.round));
        let Some((state, donors)) = best.map(|(s, d)| (*s, d.clone())) else {
            // Nobody had one just now: ask again when the next sign of life is due.
            let retry = self.cx.now + self.cx.deadlines.answer();
            self.cx.timers.set(Timer::CatchUp, retry);
            return;
        };
        let allowed = Duration::from_secs(state.bytes / SLOWEST_RATE) + self.cx.deadlines.ceiling();
        let deadline = self.cx.now + allowed;
        let count = u32::try_from(donors.len()).unwrap_or(u32::MAX);
        let from = self.cx.round;
        self.cx.emit(Event::CatchUp {
            from,
            to: state.round,
            donors: count,
        });
        self.cx.put(Output::Fetch {
            what: FetchId::State(state),
            from: donors,
            deadline,
        });
        self.cx.timers.set(Timer::CatchUp, deadline);
        self.catch_up = CatchUp::Fetching(state);
    }

    /// A fetch for the catch-up ended well; false when it was not for it.
    pub(super) fn catch_up_fetched(&mut self, what: FetchId, digest: Option<Digest>) -> bool {
        match (&mut self.catch_up, what) {
            (CatchUp::Fetching(state), FetchId::State(got)) if *state == got => {
                let order = self.cx.order(Order::Load {
                    state: got,
                    keep_local: false,
                });
                self.cx.timers.stop(Timer::CatchUp);
                self.catch_up = CatchUp::Loading(order, got);
                true
            }
            (CatchUp::Replaying(replay), FetchId::Slice(slice)) => {
                match replay.fetching.remove(&slice) {
                    Some(wanted) if Some(wanted) == digest => self.apply_replay(),
                    Some(_) => self.ask_state(),
                    None => return false,
                }
                true
            }
            (_, FetchId::State(_)) => true,
            _ => false,
        }
    }

    /// A fetch for the catch-up failed; false when it was not for it.
    pub(super) fn catch_up_fetch_failed(&mut self, what: FetchId) -> bool {
        let mine = match (&self.catch_up, what) {
            (CatchUp::Fetching(state), FetchId::State(lost)) => *state == lost,
            (CatchUp::Replaying(replay), FetchId::Slice(slice)) => {
                replay.fetching.contains_key(&slice)
            }
            (_, FetchId::State(_)) => return true,
            _ => false,
        };
        if mine {
            self.ask_state();
        }
        mine
    }

    /// An order of the catch-up was answered; false when it is not one.
    pub(super) fn catch_up_done(&mut self, order: OrderId, done: &Done) -> bool {
        match &mut self.catch_up {
            CatchUp::Loading(id, state) if *id == order => {
                let state = *state;
                match done {
                    Done::Loaded { digests } => self.loaded(state, digests),
                    other => {
                        let what = format!("cannot take over the fetched state: {other:?}");
                        self.cx.emit(Event::WorkFailed { what });
                        self.ask_state();
                    }
                }
                true
            }
            CatchUp::Replaying(replay) => match replay.applies.remove(&order) {
                Some(fragment) => {
                    self.replayed(fragment, done);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn loaded(&mut self, state: StateId, digests: &[Digest]) {
        self.cx.digests = digests.to_vec();
        self.cx.round = state.round;
        let ones = vec![1.0; self.cx.plan.fragments.len()];
        self.exchange.set_weights(&ones);
        self.caught_up(0);
    }

    /// The state of some round is in force: replay what came after it, or take part.
    fn caught_up(&mut self, replayed: u32) {
        let ahead = self.cx.view.live().filter(|(_, r)| r.round > self.cx.round);
        let furthest = ahead.max_by_key(|(id, r)| (r.round, *id)).map(|(id, _)| id);
        if let Some(donor) = furthest
            && self.cx.plan.exchange == ExchangeKind::AllReduce
        {
            self.replay(donor, replayed);
            return;
        }
        self.catch_up = CatchUp::Idle;
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State, false);
        self.cx.newcomer = true;
        if self.phase == Phase::Join {
            self.begin();
        }
    }

    /// Asks for the decisions of the round this peer is in.
    fn replay(&mut self, donor: PeerId, replayed: u32) {
        let round = self.cx.round;
        self.cx.wait(Wait::State, self.cx.deadlines.ceiling());
        self.cx.send(donor, Message::HistoryAsk { round });
        let allowed = self.cx.deadlines.allow(Wait::Agreement, [donor]);
        self.cx.timers.set(Timer::CatchUp, self.cx.now + allowed);
        self.catch_up = CatchUp::Replaying(Replay {
            donor: Some(donor),
            replayed,
            ..Replay::default()
        });
    }

    /// Whether a message is a decision that the replay waits for.
    pub(super) fn replays(&self, from: PeerId, message: &Message) -> bool {
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return false;
        };
        let round = match message {
            Message::Decided { round, .. } | Message::Void { round, .. } => *round,
            _ => return false,
        };
        replay.donor == Some(from) && round == self.cx.round && !replay.started
    }

    /// One fragment's decision; with all of them, their slices are fetched.
    pub(super) fn replay_decision(&mut self, message: &Message) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        let fragment = match message {
            Message::Decided { fragment, .. } | Message::Void { fragment, .. } => *fragment,
            _ => return,
        };
        if usize::from(fragment.0) < self.cx.plan.fragments.len() {
            replay.decisions.insert(fragment, message.clone());
        }
        if replay.decisions.len() < self.cx.plan.fragments.len() {
            return;
        }
        replay.started = true;
        let donor = replay.donor;
        for decision in replay.decisions.values() {
            let Message::Decided { versions, .. } = decision else {
                continue;
            };
            let digests = versions.iter().map(|v| v.digest);
            replay
                .fetching
                .extend(slices_of(decision).into_iter().zip(digests));
        }
        let allowed = self.cx.deadlines.ceiling();
        let deadline = self.cx.now + allowed;
        self.cx.timers.set(Timer::CatchUp, deadline);
        let wanted: Vec<SliceId> = replay.fetching.keys().copied().collect();
        for slice in wanted {
            let from = donor.into_iter().collect();
            self.cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from,
                deadline,
            });
        }
        self.apply_replay();
    }

    /// All slices are here: put the round in force, with the own delta on top while it is fresh.
    fn apply_replay(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        if !replay.fetching.is_empty() || !replay.applies.is_empty() {
            return;
        }
        let (round, keep_local) = (self.cx.round, replay.replayed < STALENESS_MAX);
        for (fragment, decision) in &replay.decisions {
            if matches!(decision, Message::Decided { .. }) {
                let (fragment, aggregates) = (*fragment, slices_of(decision));
                let order = Order::Apply {
                    round,
                    fragment,
                    aggregates,
                    keep_local,
                };
                replay.applies.insert(self.cx.order(order), fragment);
            }
        }
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    fn replayed(&mut self, fragment: FragmentId, done: &Done) {
        match done {
            Done::Applied { digest } => {
                if let Some(slot) = self.cx.digests.get_mut(usize::from(fragment.0)) {
                    *slot = *digest;
                }
            }
            _ => {
                self.ask_state();
                return;
            }
        }
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return;
        };
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    fn round_replayed(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        let decisions = std::mem::take(&mut replay.decisions)
            .into_values()
            .collect();
        let replayed = replay.replayed + 1;
        let round = self.cx.round;
        self.exchange.remember(&mut self.cx, round, decisions);
        self.cx.emit(Event::CatchUp {
            from: round,
            to: round.next(),
            donors: 1,
        });
        self.cx.round = round.next();
        self.caught_up(replayed);
    }

    pub(super) fn history_refused(&mut self, from: PeerId, round: Round) {
        let mine = matches!(&self.catch_up, CatchUp::Replaying(r) if r.donor == Some(from));
        if mine && round == self.cx.round {
            self.ask_state();
        }
    }

    /// A donor is gone.
    pub(super) fn catch_up_gone(&mut self, peer: PeerId) {
        match &mut self.catch_up {
            CatchUp::Asking { .. } => self.state_refused(peer),
            CatchUp::Replaying(replay) if replay.donor == Some(peer) && !replay.started => {
                self.ask_state();
            }
            _ => {}
        }
    }

    /// The catch-up's deadline has passed.
    pub(super) fn catch_up_expired(&mut self) {
        match &self.catch_up {
            CatchUp::Idle | CatchUp::Loading(..) => {}
            CatchUp::Asking { offers, .. } if !offers.is_empty() => self.choose_state(),
            CatchUp::Asking { .. } | CatchUp::Fetching(_) | CatchUp::Replaying(_) => {
                self.ask_state();
            }
        }
    }
}
