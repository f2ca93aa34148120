//! Catching up: a newcomer or a straggler takes over the swarm's state.
//!
//! A straggler that missed a round or two replays their decisions (the encoded aggregates, a
//! fraction of a state) and keeps its delta on top. All others fetch a pinned state from several
//! donors, then replay the rounds that were decided meanwhile. No other peer's round waits for
//! either.

use crate::core::context::Anchor;
use crate::core::deadlines::Timer;
use crate::core::split::Look;
use crate::core::{Event, FetchId, Output, Phase, Wait};
use crate::exchange::Signal;
use crate::limits::{DONORS_MAX, VOUCHERS_SOUGHT_MAX};
use crate::peer::Peer;
use crate::peer::life::{CatchUp, Standing, Vouching};
use crate::peer::replay::{Helpers, Replay, STALENESS_MAX, Step, wait_for_state};
use crate::plan::Tolerance;
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{ExchangeMessage, Offer, TransferMessage};
use crate::{
    Base, Branch, Checked, Digest, Done, Order, OrderId, PeerError, PeerId, Round, SliceId, StateId,
};
use core::time::Duration;

/// Bytes per second below which a state transfer is given up.
const SLOWEST_RATE: u64 = 64 << 10;

impl Peer {
    /// The swarm continued without this peer.
    pub(super) fn fall_behind(&mut self, teller: PeerId, resync: bool) {
        // The others hear first that this peer takes part in no round, so that no group waits for
        // it.
        self.tell_alive();
        let agreed = self.cx.plan.exchange.agrees();
        // A few decisions are much less than a state, and this peer's own delta stays on top.
        if agreed && !resync {
            self.replay(teller, 0);
        } else {
            self.ask_state();
        }
    }

    /// Asks for the decisions of the round this peer is in.
    pub(super) fn replay(&mut self, donor: PeerId, replayed: u32) {
        let (round, anchor) = (self.cx.round, self.cx.anchor.before(self.cx.round));
        let began = Base { round, anchor };
        self.cx.send(donor, TransferMessage::HistoryAsk { began });
        let allowed = self.cx.deadlines.allow(Wait::Agreement, [donor]);
        wait_for_state(&mut self.cx, allowed);
        self.catch_up = CatchUp::Replaying(Replay::of(donor, replayed));
    }

    /// A decision of an exchange that a replay waits for; `None` if none does.
    pub(super) fn replay_decision(
        &mut self,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Option<Checked> {
        if !matches!(self.catch_up, CatchUp::Replaying(_)) {
            return None;
        }
        let signers_min = self.tolerance().believed_min();
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return None;
        };
        let decision = replay.awaited(&self.cx, from, message)?;
        // A part of the round may be applied already, from the same decisions.
        let known = self.exchange.history();
        let known = known.and_then(|it| it.decision(decision.round, decision.fragment));
        if self
            .cx
            .anchor
            .has_changed(decision.round, decision.fragment)
            && known.is_none_or(|known| known.plain() != decision.plain())
        {
            self.ask_state();
            return Some(Ok(()));
        }
        let step = replay.decided(&mut self.cx, &self.helpers, signers_min, decision);
        Some(step.map(|step| self.go_on(step)))
    }

    /// What follows from the last step of a replay.
    fn go_on(&mut self, step: Step) {
        match step {
            Step::Wait => {}
            Step::AskState => self.ask_state(),
            Step::AskOthers => self.ask_others(),
            Step::Replayed => self.round_replayed(),
        }
    }

    fn round_replayed(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        let shown = if replay.proofs.is_empty() {
            &mut replay.decisions
        } else {
            &mut replay.proofs
        };
        let mut decisions = std::mem::take(shown).into_values().collect::<Vec<_>>();
        // The history has those already, from when they were applied.
        decisions.retain(|it| !replay.here_before.contains(&it.fragment));
        // The round becomes part of this peer's history: other stragglers may ask for it next.
        let (replayed, in_part) = (replay.replayed + 1, replay.in_part);
        let round = self.cx.round;
        // A delta from an older anchor would pull the others back.
        let kept = replayed <= STALENESS_MAX && !self.cx.plan.ends_with(round);
        if let Some(history) = self.exchange.history_mut() {
            history.remember(&mut self.cx, round, decisions);
        }
        if in_part {
            self.caught_up(replayed);
            return;
        }
        // The straggler is where the others were when they ended the round.
        let base = Base {
            round: round.next(),
            anchor: self.cx.anchor(),
        };
        self.cx.view.split.passed(base);
        self.cx.emit(Event::Replayed { round, kept });
        self.cx.round = round.next();
        self.turn(round, kept);
        self.caught_up(replayed);
    }

    /// Releases what an abandoned replay has fetched.
    fn drop_replay(&mut self) {
        if let CatchUp::Replaying(replay) = &mut self.catch_up {
            for slice in std::mem::take(&mut replay.here) {
                self.cx.release(slice);
            }
            let blamed = replay.donor;
            // Once only: the catch-up ends, or begins again with others.
            self.catch_up = CatchUp::Idle;
            self.helpers.blame(blamed);
        }
    }

    pub(super) fn history_refused(&mut self, from: PeerId, round: Round) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        // It is the answer to a question that this peer has given up.
        if replay.donor != Some(from) || round != self.cx.round {
            return;
        }
        // Where members sign, a donor in the same round has shown its part.
        let same = self.cx.view.get(from).is_some_and(|it| it.round == round);
        let (shows, replayed) = (same && self.cx.plan.agreement.signs(), replay.replayed);
        match replay.end_in_part(&mut self.cx, &self.helpers) {
            Step::AskState if shows => self.caught_up(replayed),
            step => self.go_on(step),
        }
    }

    /// No peer can help: continues from this peer's state, or waits for another peer.
    fn give_up_catching_up(&mut self) {
        self.catch_up = CatchUp::Idle;
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State);
        let deadline = self.cx.wait(Wait::Peers, self.cx.config.start_wait);
        self.cx.timers.set(Timer::Join, deadline);
    }

    /// A donor offers its state.
    ///
    /// # Errors
    /// When it is larger than any state of this plan.
    pub(super) fn state_offered(&mut self, from: PeerId, offer: Offer) -> Checked {
        let oldest = self.oldest_wanted();
        let CatchUp::Asking { asked, offers } = &mut self.catch_up else {
            return Ok(());
        };
        // A slow donor is welcome as long as no other state is on its way.
        let late = self.helpers.late.remove(&from);
        if !asked.remove(&from) && !late {
            return Ok(());
        }
        // A late one has been waited for long enough.
        let last = asked.is_empty() || late;
        let state = offer.state;
        let fits = state.bytes <= self.cx.plan.state_bytes_max();
        // An older state would take this peer back.
        if fits && state.round >= oldest {
            offers.entry(offer).or_default().push(from);
        } else {
            self.helpers.blame([from]);
        }
        if last {
            self.choose_state();
        }
        if fits {
            Ok(())
        } else {
            let bytes = state.bytes;
            let what = format!("a state of {bytes} bytes, more than the plan allows");
            Err(PeerError::unexpected(what))
        }
    }

    pub(super) fn state_refused(&mut self, from: PeerId) {
        let CatchUp::Asking { asked, .. } = &mut self.catch_up else {
            return;
        };
        let (mine, last) = (asked.remove(&from), asked.is_empty());
        if mine {
            self.helpers.blame([from]);
        }
        if last {
            self.choose_state();
        }
    }

    /// Takes the state with most donors, whose chunks come from all at once; the newest of equals.
    fn choose_state(&mut self) {
        let CatchUp::Asking { offers, .. } = &self.catch_up else {
            return;
        };
        let best = offers
            .iter()
            .max_by_key(|(offer, donors)| (donors.len(), offer.state.round));
        let Some((offer, donors)) = best.map(|(offer, donors)| (*offer, donors.clone())) else {
            // No peer had a state: ask again when the next sign of life is due.
            self.ask_later(self.cx.deadlines.answer());
            return;
        };
        // Others have vouched for a state with which peers wait.
        let base = Base {
            round: offer.state.round,
            anchor: offer.anchor,
        };
        let known = self.standing() == Standing::Behind(base);
        if !self.tolerance().is_none() && !known {
            self.seek_vouchers(offer, donors);
        } else {
            self.fetch_state(offer, donors);
        }
    }

    fn fetch_state(&mut self, offer: Offer, donors: Vec<PeerId>) {
        let state = offer.state;
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
            from: donors.clone(),
            deadline,
        });
        wait_for_state(&mut self.cx, allowed);
        self.catch_up = CatchUp::Fetching(offer, donors);
    }

    /// While a state is on its way its donors are asked for it again with every sign of life, so
    /// that they keep it, and the rounds since, however long the download takes.
    pub(super) fn keep_donors(&mut self) {
        let (offer, donors) = match &self.catch_up {
            CatchUp::Fetching(offer, donors) => (offer, donors),
            CatchUp::Vouching(vouching) => (&vouching.offer, &vouching.donors),
            _ => return,
        };
        let at_least = offer.state.round;
        for donor in donors {
            self.cx.send(*donor, TransferMessage::StateAsk { at_least });
        }
    }

    /// A state is here, unless it was given up meanwhile.
    pub(super) fn state_fetched(&mut self, got: StateId) {
        if let CatchUp::Fetching(offer, donors) = &mut self.catch_up
            && offer.state == got
        {
            let (offer, donors) = (*offer, std::mem::take(donors));
            self.cx.timers.stop(Timer::CatchUp);
            self.cx.waited(Wait::State);
            self.load_or_keep(offer, donors);
        }
    }

    pub(super) fn state_fetch_failed(&mut self, lost: StateId) {
        if matches!(&self.catch_up, CatchUp::Fetching(offer, _) if offer.state == lost) {
            self.blame_for_the_state();
            self.ask_state();
        }
    }

    pub(super) fn slice_fetched(&mut self, slice: SliceId, digest: Option<Digest>) {
        let step = match &mut self.catch_up {
            CatchUp::Replaying(replay) => replay.fetched(&mut self.cx, slice, digest),
            _ => None,
        };
        match step {
            Some(step) => self.go_on(step),
            None => self.signal(Signal::Fetched { slice, digest }),
        }
    }

    pub(super) fn slice_fetch_failed(&mut self, slice: SliceId) {
        match &self.catch_up {
            CatchUp::Replaying(replay) if replay.fetches(&slice) => self.ask_state(),
            _ => self.signal(Signal::FetchFailed(slice)),
        }
    }

    /// The donors' state did not come or did not fit.
    fn blame_for_the_state(&mut self) {
        if let CatchUp::Fetching(_, donors) | CatchUp::Loading(_, _, donors) = &mut self.catch_up {
            let donors = std::mem::take(donors);
            self.helpers.blame(donors);
        }
    }

    /// An order of the catch-up was answered; false when it is not one.
    pub(super) fn catch_up_done(&mut self, order: OrderId, done: &Done) -> bool {
        match &mut self.catch_up {
            CatchUp::Loading(id, offer, _) if *id == order => {
                let offer = *offer;
                match done {
                    Done::Loaded { digests, note } => self.loaded(offer, digests, note),
                    other => {
                        let what = format!("cannot take over the fetched state: {other:?}");
                        self.cx.emit(Event::WorkFailed { what });
                        self.blame_for_the_state();
                        self.ask_others();
                    }
                }
                true
            }
            CatchUp::Keeping(id, offer, donors) if *id == order => {
                let (offer, donors) = (*offer, std::mem::take(donors));
                self.branch_kept(done);
                self.load(offer, donors);
                true
            }
            CatchUp::Replaying(replay) => {
                let step = replay.done(&mut self.cx, order, done);
                step.map(|step| self.go_on(step)).is_some()
            }
            _ => false,
        }
    }

    fn loaded(&mut self, offer: Offer, digests: &[Digest], note: &[u8]) {
        if let CatchUp::Loading(_, _, donors) = &self.catch_up {
            // They keep the rounds since, however large; others may have forgotten them.
            self.helpers.donors.clone_from(donors);
        }
        self.donor.drop_pin(&mut self.cx, self.exchange.as_mut());
        self.leave_branch();
        self.cx.anchor = Anchor::new(digests.to_vec());
        self.take_replicated(note);
        self.cx.round = offer.state.round;
        if self.cx.plan.agreement.signs() && self.cx.anchor() != offer.anchor {
            // The donors served other parameters than those that others vouched for.
            self.blame_for_the_state();
            self.ask_others();
            return;
        }
        let base = self.cx.base();
        self.cx.view.split.passed(base);
        // An evaluation or checkpoint of this round was of other parameters.
        self.life.evaluated_round = None;
        self.life.saved_round = None;
        let ones = vec![1.0; self.cx.plan.fragments.len()];
        // The state's parameters are plain: mass of the parameters before has no meaning for them.
        self.exchange.set_weights(&ones);
        self.caught_up(0);
    }

    /// A state is loaded or a round replayed: replays the next round, or takes part.
    fn caught_up(&mut self, replayed: u32) {
        // Each replay takes time in which the others decide more rounds, so it ends only when no
        // peer that helps is ahead.
        let live = self.cx.view.live();
        let least = live.map(|(id, _)| self.helpers.in_vain(id)).min();
        // A peer that claims to be ahead and never helps would keep this one here for ever.
        let helps = |id: PeerId| Some(self.helpers.in_vain(id)) == least;
        let ahead = self.cx.view.live().filter(|(_, r)| r.round > self.cx.round);
        let ahead = ahead.filter(|(id, _)| helps(*id));
        let kept = |id: PeerId| self.helpers.donors.contains(&id);
        // A donor of the state has promised to keep the rounds since.
        let furthest = ahead.max_by_key(|(id, r)| (kept(*id), r.round, *id));
        let furthest = furthest.map(|(id, _)| id);
        if let Some(donor) = furthest
            && self.cx.plan.exchange.agrees()
        {
            self.replay(donor, replayed);
            return;
        }
        self.catch_up = CatchUp::Idle;
        // Inner steps that were taken ahead began from an anchor that is replaced now.
        self.life.ahead.taken = None;
        // It may not know all peers yet, so it proposes no group until it has been in one.
        self.cx.this_life.newcomer = true;
        self.helpers = Helpers::default();
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State);
        if self.phase == Phase::Join {
            self.begin();
        }
    }

    pub(super) fn catch_up_gone(&mut self, peer: PeerId) {
        match &mut self.catch_up {
            CatchUp::Asking { .. } => self.state_refused(peer),
            CatchUp::Replaying(replay) if !replay.started && replay.donor == Some(peer) => {
                self.ask_state();
            }
            _ => {}
        }
    }

    pub(super) fn catch_up_expired(&mut self) {
        self.cx.waited(Wait::State);
        match &mut self.catch_up {
            CatchUp::Idle | CatchUp::Keeping(..) | CatchUp::Loading(..) => {}
            CatchUp::Asking { asked, offers } => {
                let (silent, offered) = (std::mem::take(asked), !offers.is_empty());
                self.helpers.note_late(&silent);
                self.helpers.blame(silent);
                if offered {
                    self.choose_state();
                } else {
                    self.ask_state();
                }
            }
            CatchUp::Vouching(_) => self.seek_again(),
            CatchUp::Fetching(..) => {
                self.blame_for_the_state();
                self.ask_state();
            }
            CatchUp::Replaying(replay) => {
                if !replay.fetch_from_another(&mut self.cx, &mut self.helpers) {
                    self.ask_state();
                }
            }
        }
    }
}

/// Which peers a newcomer or a straggler asks for their state.
impl Peer {
    pub(super) fn ask_state(&mut self) {
        self.drop_replay();
        let mut donors = self.helpful();
        donors.truncate(self.donors_max());
        donors.sort_unstable();
        if donors.is_empty() {
            self.give_up_catching_up();
            return;
        }
        self.cx.waited(Wait::State);
        self.send_asks(&donors);
        let allowed = self.cx.deadlines.answer() * 4;
        wait_for_state(&mut self.cx, allowed);
        self.catch_up = CatchUp::Asking {
            asked: donors.into_iter().collect(),
            offers: SortedMap::new(),
        };
    }

    /// While donors are asked: asks those too that were met since. A newcomer often asks the first
    /// peer that it meets, and the chunks of a state come faster from several.
    pub(super) fn ask_more_donors(&mut self) {
        let CatchUp::Asking { asked, offers } = &self.catch_up else {
            return;
        };
        // A straggler has met them all. In a grid a column may wait for this peer, and the slowest of
        // several donors takes longer to answer than one.
        if self.life.once.begun || self.has_rolls() {
            return;
        }
        let known: SortedSet<PeerId> = asked
            .iter()
            .chain(offers.values().flatten())
            .copied()
            .collect();
        let mut more = self.helpful();
        more.retain(|peer| !known.contains(peer));
        more.truncate(self.donors_max().saturating_sub(known.len()));
        self.send_asks(&more);
        if let CatchUp::Asking { asked, .. } = &mut self.catch_up {
            asked.extend(more);
        }
    }

    /// Peers that can help, the furthest ahead first. Only those that failed to help least often
    /// count: a peer that claims to be ahead and never helps must not be asked for ever.
    fn helpful(&self) -> Vec<PeerId> {
        let at_rest = self.holders_at_rest();
        let ready = self.cx.view.of_this_branch();
        let ready = ready.filter(|(id, r)| r.ready || at_rest.contains(id));
        let donors: Vec<(u32, Round, PeerId)> = ready
            .map(|(id, r)| (self.helpers.in_vain(id), r.round, id))
            .collect();
        let least = donors.iter().map(|(vain, ..)| *vain).min();
        let donors = donors.into_iter().filter(|(vain, ..)| Some(*vain) == least);
        let mut donors: Vec<(Round, PeerId)> = donors.map(|(_, round, id)| (round, id)).collect();
        donors.sort_by_key(|(round, id)| (std::cmp::Reverse(*round), *id));
        // A state that opens an earlier round would mean more rounds to replay. Those that may lie do
        // not count, however far ahead they claim to be.
        let tolerance = if at_rest.is_empty() {
            self.tolerance()
        } else {
            Tolerance::NONE
        };
        let newest = tolerance.credible(&donors).or(donors.last());
        let newest = newest.map(|(round, _)| *round);
        donors.retain(|(round, _)| Some(round.next()) >= newest);
        donors.into_iter().map(|(_, id)| id).collect()
    }

    /// How many donors are asked: more than those that may lie.
    fn donors_max(&self) -> usize {
        DONORS_MAX.max(self.tolerance().believed_min())
    }

    fn send_asks(&mut self, donors: &[PeerId]) {
        let at_least = self.oldest_wanted();
        for peer in donors {
            self.cx.send(*peer, TransferMessage::StateAsk { at_least });
        }
    }
}

/// Doublings of the pause after a catch-up whose bytes were wrong.
const PAUSE_DOUBLINGS_MAX: u32 = 4;

/// Which claims of others are believed. Links are authenticated: a liar cannot speak for two peers.
impl Peer {
    pub(super) fn believes(&self, count: usize) -> bool {
        self.tolerance().believes(count)
    }

    /// How many of the peers that take part may lie. Until a peer has met the run it may have met
    /// liars only, so for a while it counts all peers that it knows of.
    fn tolerance(&self) -> Tolerance {
        if !self.cx.plan.agreement.signs() {
            return Tolerance::NONE;
        }
        let greeted = 1 + self.cx.view.greeted().count();
        let config = &self.cx.config;
        let young =
            !self.life.once.begun && self.cx.now.since(self.life.started) < config.start_wait;
        if !young {
            return self.cx.plan.tolerance(greeted);
        }
        let known = self.cx.view.iter().filter(|(_, r)| !r.banned).count() + 1;
        let expected = config.start_with.max(config.companions + 1);
        let members = greeted.max(known).max(expected);
        self.cx.plan.tolerance_at_first(members)
    }

    /// Asks the others whether an offered state is the run's.
    fn seek_vouchers(&mut self, offer: Offer, donors: Vec<PeerId>) {
        self.catch_up = CatchUp::Vouching(Vouching {
            offer,
            donors,
            said: SortedMap::new(),
            asked: 0,
        });
        self.seek_again();
    }

    /// Asks those that have not answered, because they have not reached the state's round or a message
    /// was lost. After some times its donors have helped in vain.
    fn seek_again(&mut self) {
        let CatchUp::Vouching(vouching) = &mut self.catch_up else {
            return;
        };
        if vouching.asked >= VOUCHERS_SOUGHT_MAX {
            let donors = std::mem::take(&mut vouching.donors);
            self.helpers.blame(donors);
            self.ask_others();
            return;
        }
        vouching.asked += 1;
        let round = vouching.offer.state.round;
        let silent = self.cx.view.greeted().map(|(id, _)| id);
        let silent = silent.filter(|id| !vouching.said.contains_key(id));
        for peer in silent.collect::<Vec<_>>() {
            self.cx.send(peer, TransferMessage::AnchorAsk { round });
        }
        let allowed = self.cx.deadlines.answer();
        wait_for_state(&mut self.cx, allowed);
    }

    pub(super) fn anchor_asked(&mut self, from: PeerId, round: Round) {
        let anchor = self.began(round);
        self.cx
            .send(from, TransferMessage::Anchor { round, anchor });
    }

    /// A peer says with which parameters it began a round, or that it did not begin it.
    pub(super) fn anchor_said(&mut self, from: PeerId, round: Round, anchor: Option<Digest>) {
        // The same answer serves a peer that waits for its first round.
        self.rest_answered(from, round, anchor);
        let (tolerance, Some(anchor)) = (self.tolerance(), anchor) else {
            return;
        };
        let CatchUp::Vouching(vouching) = &mut self.catch_up else {
            return;
        };
        if vouching.offer.state.round != round {
            return;
        }
        vouching.said.insert(from, anchor);
        // Those with this peer's own state are no news: of two halves each denies the other's state.
        let own = (round == self.cx.round).then(|| self.cx.anchor());
        let count =
            |of: &dyn Fn(Digest) -> bool| vouching.said.values().filter(|it| of(**it)).count();
        let vouch = count(&|said| said == vouching.offer.anchor);
        let deny = count(&|said| said != vouching.offer.anchor && Some(said) != own);
        if tolerance.believes(vouch) {
            let (offer, donors) = (vouching.offer, std::mem::take(&mut vouching.donors));
            self.fetch_state(offer, donors);
        } else if tolerance.believes(deny) {
            let donors = std::mem::take(&mut vouching.donors);
            self.helpers.blame(donors);
            self.ask_others();
        }
    }

    /// A round begins from a state that is proven, or this peer's own work: it vouches for that.
    pub(super) fn remember_opening(&mut self) {
        if !self.cx.plan.agreement.signs() {
            return;
        }
        let opening = self.cx.base();
        if self.donor.opened.back() != Some(&opening) {
            self.donor.open(opening);
            self.cx.put(Output::Opened(opening));
        }
    }

    /// Bytes were missing or wrong: asks others at once, and the same ones after growing pauses.
    fn ask_others(&mut self) {
        self.drop_replay();
        let ready = self.cx.view.greeted().filter(|(_, r)| r.ready);
        let fresh = ready.map(|(id, _)| self.helpers.in_vain(id)).min() == Some(0);
        if fresh {
            self.ask_state();
            return;
        }
        if !self.tolerance().is_none() && self.life.once.begun && self.helpers.failures > 0 {
            // Each that could help has failed to. This peer goes on with what it has; should that be
            // wrong, more than may lie will say so.
            self.give_up_on_others();
            return;
        }
        let pause = self.cx.deadlines.answer() * (1 << self.helpers.failures);
        self.helpers.failures = (self.helpers.failures + 1).min(PAUSE_DOUBLINGS_MAX);
        self.ask_later(pause);
    }

    fn give_up_on_others(&mut self) {
        self.catch_up = CatchUp::Idle;
        self.helpers = Helpers::default();
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State);
        self.cx.this_life.newcomer = true;
        if self.phase == Phase::Join {
            self.begin();
        }
    }

    /// Asks for a state once this time has passed.
    fn ask_later(&mut self, pause: Duration) {
        self.catch_up = CatchUp::Asking {
            asked: Default::default(),
            offers: SortedMap::new(),
        };
        wait_for_state(&mut self.cx, pause);
    }
}

/// A branch that another state replaces: it is saved first.
impl Peer {
    /// Peers of another branch may have come: stops for a merge as soon as its work allows.
    pub(super) fn look_for_branches(&mut self) {
        // Every message looks, and the views of thousands are large.
        let here = !self.cx.view.split.is_whole() && self.cx.view.apart().next().is_some();
        let round = self.cx.round;
        match self.cx.view.split.look(here, self.cx.now) {
            Look::Whole => return,
            Look::Tries => {}
            Look::Met(branch) => self.cx.emit(Event::BranchesMet {
                round,
                base: branch.began(),
                weight: branch.weight,
            }),
            Look::GivenUp => {
                let given_up = true;
                self.cx.emit(Event::NotMerged { round, given_up });
                self.cx.sort_sides();
                return;
            }
        }
        if !here || !self.exchange.merge_is_due(&self.cx) {
            return;
        }
        // Otherwise it stops when the round's training or its exchange ends.
        if matches!(self.phase, Phase::Finished | Phase::Paused) {
            self.merge();
        }
    }

    /// The branch that it is in since it lost peers to a split, and how many are missing from it.
    pub fn branch(&self) -> Option<(Branch, usize)> {
        let split = &self.cx.view.split;
        let branch = split.branch()?;
        Some((branch, split.missing().count()))
    }

    /// Peers of another branch are linked.
    pub fn meets_another_branch(&self) -> bool {
        self.cx.view.apart().next().is_some()
    }

    /// The branch whose state is lost when this peer takes over another one: none while the peers that
    /// are missing from it are away, because then the other state is of the same branch.
    fn replaced_branch(&self) -> Option<Branch> {
        let split = &self.cx.view.split;
        let back = |id: PeerId| self.cx.view.is_here(id);
        let branch = split.branch().filter(|branch| branch.weight > 0.0);
        branch.filter(|_| split.missing().any(back))
    }

    /// A state is here: loads it, and saves this peer's branch before that if it has one.
    fn load_or_keep(&mut self, offer: Offer, donors: Vec<PeerId>) {
        if self.replaced_branch().is_none() {
            self.load(offer, donors);
            return;
        }
        let (round, snapshot) = (self.cx.round, self.snapshot());
        let order = Order::Save {
            round,
            snapshot,
            branch: true,
        };
        let order = self.cx.order(order);
        self.catch_up = CatchUp::Keeping(order, offer, donors);
    }

    /// The branch is saved. Without it the peer goes on too: it cannot stay with a state of its own.
    fn branch_kept(&mut self, done: &Done) {
        match (done, self.cx.view.split.branch()) {
            (Done::Saved, Some(branch)) => {
                let (round, weight) = (self.cx.round, branch.weight);
                self.cx.emit(Event::BranchSaved { round, weight });
            }
            (Done::Saved, None) => {}
            (other, _) => self.report_failure(other),
        }
    }

    pub(super) fn load(&mut self, offer: Offer, donors: Vec<PeerId>) {
        let state = offer.state;
        let order = self.cx.order(Order::Load { state });
        self.catch_up = CatchUp::Loading(order, offer, donors);
    }

    /// Another state has replaced this peer's. If it is of the same side, so is its branch.
    fn leave_branch(&mut self) {
        let CatchUp::Loading(_, _, donors) = &self.catch_up else {
            return;
        };
        let view = &self.cx.view;
        let branch_of = |id: &PeerId| {
            view.get(*id)
                .and_then(|remote| remote.contact.branch.as_deref().copied())
        };
        let mut of_donors = donors.iter().filter(|id| !view.split.misses(**id));
        let theirs = of_donors.find_map(branch_of);
        let theirs = theirs.filter(|_| self.replaced_branch().is_none());
        let own = view.split.branch();
        let away = |id: &PeerId| view.get(*id).is_none_or(|r| !r.linked);
        let missing: SortedSet<PeerId> = view.split.known().filter(away).collect();
        match (theirs, own) {
            (Some(theirs), Some(own)) if theirs.meets(&own) => {
                self.cx.view.split.took_over(&theirs);
            }
            (theirs, _) => {
                self.cx.view.split.forget();
                if let Some(theirs) = theirs {
                    self.cx.view.split.adopt(&theirs, missing);
                }
            }
        }
        self.cx.sort_sides();
    }
}
