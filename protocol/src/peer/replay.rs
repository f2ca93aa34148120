//! Replaying: a straggler that missed a round or two fetches their decisions (the encoded
//! aggregates, a fraction of a state) and applies them in order. It keeps its delta on top.

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::core::{Event, FetchId, Output, Wait};
use crate::exchange::{admit, digests_of, inputs_of, proven, scores_of, slices_of};
use crate::limits::{DONORS_MAX, GRID_VIEW_PEERS_MAX, VIEW_PEERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{AgreedMessage, ExchangeMessage, FragmentMessage, Scoped};
use crate::{
    Digest, Done, Ending, FragmentId, Order, OrderId, PeerError, PeerId, Scores, SliceId, Time,
};
use core::time::Duration;

/// Replayed rounds over which a straggler's own delta is kept.
pub(super) const STALENESS_MAX: u32 = 2;

/// What this catch-up has learnt about the peers that help.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// How often each peer failed to help.
    vain: SortedMap<PeerId, u32>,
    /// The donors of the state that was loaded last. They keep the rounds since.
    pub(super) donors: Vec<PeerId>,
    /// How often a replay or a state failed although donors answered.
    pub(super) failures: u32,
    /// Donors that did not answer in time. What they offer later is welcome: a donor that exchanges a round
    /// answers when that has ended, and a path or a machine may be slower than the wait.
    pub(super) late: SortedSet<PeerId>,
}

impl Helpers {
    /// These donors did not answer in time.
    pub(super) fn note_late(&mut self, donors: &SortedSet<PeerId>) {
        let room = GRID_VIEW_PEERS_MAX.saturating_sub(self.late.len());
        self.late.extend(donors.iter().take(room));
    }

    /// How often a peer failed to help in this catch-up.
    pub(super) fn in_vain(&self, peer: PeerId) -> u32 {
        self.vain.get(&peer).copied().unwrap_or(0)
    }

    /// These peers did not help.
    pub(super) fn blame(&mut self, donors: impl IntoIterator<Item = PeerId>) {
        for peer in donors {
            if self.vain.len() < VIEW_PEERS_MAX || self.vain.contains_key(&peer) {
                let vain = self.vain.entry(peer).or_default();
                *vain = vain.saturating_add(1);
            }
        }
    }
}

/// What the catch-up does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits for decisions, slices or orders.
    Wait,
    /// The replay leads nowhere: it asks for a state.
    AskState,
    /// Bytes were wrong: it asks other peers.
    AskOthers,
    /// The round is applied.
    Replayed,
}

/// A past round that is being replayed.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) donor: Option<PeerId>,
    pub(super) here_before: SortedSet<FragmentId>,
    /// Earlier donors, which owed slices for too long.
    debtors: SortedSet<PeerId>,
    pub(super) decisions: SortedMap<FragmentId, Scoped>,
    /// The same with their proofs, where members sign.
    pub(super) proofs: SortedMap<FragmentId, Scoped>,
    fetching: SortedMap<SliceId, Digest>,
    /// Time until which the last donor may owe slices.
    until: Time,
    /// Fetched slices, until the round is applied and the history keeps them.
    pub(super) here: Vec<SliceId>,
    /// Where contributions are scored, orders that read the members' scores; `None` until they are given.
    reads: Option<SortedMap<OrderId, PeerId>>,
    scores: SortedMap<PeerId, Scores>,
    applies: SortedMap<OrderId, FragmentId>,
    pub(super) started: bool,
    /// Set where the donor knows only a part of the round.
    pub(super) in_part: bool,
    /// Rounds that were replayed before this one.
    pub(super) replayed: u32,
}

impl Replay {
    pub(super) fn of(donor: PeerId, replayed: u32) -> Self {
        Self {
            donor: Some(donor),
            replayed,
            ..Self::default()
        }
    }

    /// The decision in a message, if the replay waits for it.
    pub(super) fn awaited<'a>(
        &self,
        cx: &Context,
        from: PeerId,
        message: &'a ExchangeMessage,
    ) -> Option<&'a Scoped> {
        let ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) = message else {
            return None;
        };
        // Once the slices are asked for, the decisions are fixed.
        let waits = self.donor == Some(from) && !self.started;
        // Where members sign, only a decision with its proof counts.
        let shown = scoped.body.ends() && scoped.body.is_signed() == cx.plan.agreement.signs();
        (waits && shown && scoped.round == cx.round).then_some(scoped)
    }

    /// One fragment's decision; with all of them, their slices are fetched. Where members sign, one
    /// donor is enough: the decision carries its proof, by `signers_min` members at least.
    ///
    /// # Errors
    /// When the decision cannot be one of this peer's round.
    pub(super) fn decided(
        &mut self,
        cx: &mut Context,
        helpers: &Helpers,
        signers_min: usize,
        message: &Scoped,
    ) -> Result<Step, PeerError> {
        let mut plain = message.clone();
        if cx.plan.agreement.signs() {
            let Some(proven) = proven(cx, message) else {
                return Err(PeerError::unexpected("a decision without its proof"));
            };
            if proven.signers < signers_min {
                // Its teller counts fewer peers than this one, and need not lie.
                return Ok(Step::AskOthers);
            }
            if proven.anchor != cx.anchor.before(cx.round) {
                // The run has another state than this peer: no replay leads there.
                return Ok(Step::AskState);
            }
            plain = proven.plain;
        }
        let fragment = message.fragment;
        if cx.anchor.has_changed(cx.round, fragment) {
            self.here_before.insert(fragment);
        }
        if !fits_the_plan(cx, fragment, &plain.body) {
            let what = "a decision that does not fit the plan";
            return Err(PeerError::unexpected(what));
        }
        if plain != *message {
            // The next straggler believes this peer only with the proof.
            self.proofs.insert(fragment, message.clone());
        }
        self.decisions.insert(fragment, plain);
        if self.decisions.len() < cx.plan.fragments_of(cx.round).count() {
            return Ok(Step::Wait);
        }
        Ok(self.begin(cx, helpers))
    }

    /// The donor knows no more of the round: its decisions so far are applied. The round is not over with that.
    pub(super) fn end_in_part(&mut self, cx: &mut Context, helpers: &Helpers) -> Step {
        if self.started || missing(&self.decisions, &self.here_before).next().is_none() {
            return Step::AskState;
        }
        self.in_part = true;
        self.begin(cx, helpers)
    }

    /// From now on decisions of the donor are no part of the replay: it has all that it needs.
    fn begin(&mut self, cx: &mut Context, helpers: &Helpers) -> Step {
        self.started = true;
        for decision in missing(&self.decisions, &self.here_before) {
            let named = digests_of(cx.plan.exchange, decision);
            self.fetching.extend(named);
        }
        self.fetch_owed(cx, helpers);
        self.apply(cx)
    }

    /// Asks the donor for the slices that have not come, and others where it has not got them. It has the time in
    /// which it usually hands out a round; while it is the only one ahead, as much as a transfer may take.
    fn fetch_owed(&mut self, cx: &mut Context, helpers: &Helpers) {
        let others = self.other_holders(cx, helpers);
        let deadline = cx.now + cx.deadlines.ceiling();
        self.until = deadline;
        let from: Vec<PeerId> = self.donor.into_iter().chain(others).collect();
        for slice in self.fetching.keys() {
            cx.put(Output::Fetch {
                what: FetchId::Slice(*slice),
                from: from.clone(),
                deadline,
            });
        }
        self.wait_for_owed(cx);
    }

    fn wait_for_owed(&self, cx: &mut Context) {
        let allowed = cx.deadlines.allow(Wait::Agreement, self.donor);
        wait_for_state(cx, allowed.min(self.until.since(cx.now)));
    }

    /// Peers that have the round, but those that were asked: keepers first, then the most helpful.
    fn other_holders(&self, cx: &Context, helpers: &Helpers) -> Vec<PeerId> {
        let asked = |id: &PeerId| self.donor == Some(*id) || self.debtors.contains(id);
        let ahead = cx.view.live().filter(|(_, r)| r.round > cx.round);
        let mut others: Vec<PeerId> = ahead.map(|(id, _)| id).filter(|id| !asked(id)).collect();
        others.sort_by_key(|id| (!helpers.donors.contains(id), helpers.in_vain(*id), *id));
        others.truncate(DONORS_MAX);
        others
    }

    /// Slices are owed for too long: asks another peer for them, and blames only the one that owes them. Another one
    /// may be ahead only now. False if none is left to ask.
    pub(super) fn fetch_from_another(&mut self, cx: &mut Context, helpers: &mut Helpers) -> bool {
        let next = self.other_holders(cx, helpers).first().copied();
        if self.fetching.is_empty() || (next.is_none() && cx.now >= self.until) {
            return false;
        }
        if next.is_none() {
            self.wait_for_owed(cx);
            return true;
        }
        let debtor = std::mem::replace(&mut self.donor, next);
        self.debtors.extend(debtor);
        helpers.blame(debtor);
        self.fetch_owed(cx, helpers);
        true
    }

    pub(super) fn fetches(&self, slice: &SliceId) -> bool {
        self.fetching.contains_key(slice)
    }

    /// A slice is here; `None` if it is not one of the replay.
    pub(super) fn fetched(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        digest: Option<Digest>,
    ) -> Option<Step> {
        let wanted = self.fetching.remove(&slice)?;
        // It is released with the replay, whatever becomes of that.
        self.here.push(slice);
        Some(if Some(wanted) == digest {
            self.apply(cx)
        } else {
            // The donor served other bytes than those that were decided.
            Step::AskOthers
        })
    }

    /// All slices are here: applies the round, with this peer's own delta while it is recent.
    fn apply(&mut self, cx: &mut Context) -> Step {
        // The fragments of a round are applied together: a round that is applied in part can be
        // neither replayed nor trained on.
        if !self.fetching.is_empty() || !self.applies.is_empty() {
            return Step::Wait;
        }
        let (round, kind) = (cx.round, cx.plan.exchange);
        // After the last round there is no later one that would take in what is kept.
        let keep_local = self.replayed < STALENESS_MAX && !cx.plan.ends_with(round);
        if cx.plan.scores() && !self.scores_are_read(cx) {
            return Step::Wait;
        }
        // Those of the round, not those of the peer's present.
        let rules = cx.with_codec(cx.directed.all.in_force(round).training);
        for decision in missing(&self.decisions, &self.here_before) {
            if !matches!(
                decision.body,
                FragmentMessage::Decided { .. } | FragmentMessage::Collected { .. }
            ) {
                continue;
            }
            let fragment = decision.fragment;
            let inputs = if cx.plan.scores() {
                admit(cx, decision, &self.scores)
            } else {
                inputs_of(decision)
            };
            if cx.plan.scores() && inputs.is_empty() {
                // The members admitted no one: their anchor stayed.
                continue;
            }
            let ending = if kind.facts().shows_contributions {
                Ending::Gather(inputs)
            } else {
                Ending::Apply(slices_of(kind, decision))
            };
            let order = Order::Apply {
                round,
                fragment,
                ending,
                keep_local,
                rules,
            };
            self.applies.insert(cx.order(order), fragment);
        }
        self.when_applied()
    }

    fn when_applied(&self) -> Step {
        if self.applies.is_empty() {
            Step::Replayed
        } else {
            Step::Wait
        }
    }

    /// Orders the members' scores to be read; false until they are here.
    fn scores_are_read(&mut self, cx: &mut Context) -> bool {
        let decisions = self.decisions.values();
        let reads = self.reads.get_or_insert_with(|| {
            let slices = decisions.flat_map(scores_of);
            let reads = slices.map(|slice| (cx.order(Order::Read { slice }), slice.origin));
            reads.collect()
        });
        reads.is_empty()
    }

    /// An order was answered; `None` if it is not one of the replay.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) -> Option<Step> {
        let Some(fragment) = self.applies.remove(&order) else {
            return self.scores_read(cx, order, done);
        };
        let Done::Applied { digest, note } = done else {
            let what = format!("cannot apply a fetched round: {done:?}");
            cx.emit(Event::WorkFailed { what });
            return Some(Step::AskOthers);
        };
        cx.fragment_applied(fragment, *digest, note);
        Some(self.when_applied())
    }

    /// An order that reads scores was answered; `None` if it is not one.
    fn scores_read(&mut self, cx: &mut Context, order: OrderId, done: &Done) -> Option<Step> {
        let scorer = self.reads.as_mut()?.remove(&order)?;
        let Done::Read { bytes } = done else {
            let what = format!("cannot read the scores of a fetched round: {done:?}");
            cx.emit(Event::WorkFailed { what });
            return Some(Step::AskOthers);
        };
        let members = self
            .decisions
            .values()
            .find_map(|decision| match &decision.body {
                FragmentMessage::Decided { members, .. } => Some(members.len()),
                _ => None,
            });
        // The same bytes are no scores at every member, so no member counts them.
        if let Some(said) = Scores::from_bytes(bytes, members.unwrap_or_default()) {
            self.scores.insert(scorer, said);
        }
        Some(self.apply(cx))
    }
}

/// The decisions of a round that are not applied yet.
fn missing<'a>(
    decisions: &'a SortedMap<FragmentId, Scoped>,
    here: &SortedSet<FragmentId>,
) -> impl Iterator<Item = &'a Scoped> {
    let all = decisions.iter();
    all.filter(|(fragment, _)| !here.contains(fragment))
        .map(|(_, decision)| decision)
}

/// Starts the clock of the next step of a catch-up.
pub(super) fn wait_for_state(cx: &mut Context, allowed: Duration) {
    cx.waited(Wait::State);
    let deadline = cx.wait(Wait::State, allowed);
    cx.timers.set(Timer::CatchUp, deadline);
}

fn fits_the_plan(cx: &Context, fragment: FragmentId, decision: &FragmentMessage) -> bool {
    let plan = &cx.plan;
    if !plan.overlap.exchanges(cx.round, fragment) {
        return false;
    }
    let Some(f) = plan.fragment(fragment) else {
        return false;
    };
    match decision {
        FragmentMessage::Decided {
            members, versions, ..
        } => plan.may_have_parts(versions.len() as u64, f.len, members.len()),
        FragmentMessage::Collected { known, versions } => {
            let roll = cx.rolls.roll.as_ref();
            let columns = roll.map(|roll| roll.grid().columns());
            known.iter().all(|known| *known) && Some(versions.len()) == columns
        }
        _ => true,
    }
}
