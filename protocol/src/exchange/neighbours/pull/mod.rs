//! Gossip by pulling: ask the round's partners, mix what they published last. No peer pushes
//! unasked, and no peer waits for another's training.
//!
//! At the end of its inner steps a peer encodes its parameters once and publishes them, asks the
//! peers whose parameters its row of W names, and takes
//!
//! ```text
//! x_i <- (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j)
//! ```
//!
//! over the partners j whose answers came by the deadline. A peer that is asked answers at once
//! with the parameters that it published last, of any round; one that has published none yet answers
//! as soon as it has.
//!
//! **Guarantee.** Every row is a convex combination, even if answers are late, lost, refused or
//! arrive twice. So values stay within the range of the peers' values, and equal values stay equal.
//! The sum over all peers is kept only where W is doubly stochastic and all answers arrive and are
//! of the same round: unlike pushes, answers carry no mass. A lost answer has no effect in one
//! round, and nothing has to be returned.
//!
//! **Bounds**, all off unless the plan sets them ([`PullPlan`]):
//!
//! - `staleness` s: an answer is at most s rounds behind the asker's round. A peer that has
//!   published nothing as new holds the question until it has. So in a run without faults no peer
//!   is more than s + 1 rounds ahead of a partner that it waits for.
//! - `backup` b: with d partners, a round ends with d - b answers, at least one. The others keep
//!   their share with the asker, and what they answer later is dropped.
//! - `lead`: a partner that is this many rounds behind, as far as is known, is no backup. This is
//!   what Hop's queues of tokens bound.
//! - `skip`: a peer that is this many rounds behind the median of the others continues in their
//!   round. It has mixed what they published, so it does not carry old parameters there.
//! - `sync_every` tau: one in tau rounds is the mean over all live peers of that very round. It
//!   waits for all of them, until the deadline.
//!
//! Deadlines come before all bounds: a peer that is dead or silent past them is suspected, and the
//! others go on.
//!
//! **Queues** ([`PullAnswers::OfTheRound`](crate::PullAnswers), Hop). A question names the asker's
//! round k, and the answer is the iterate of round k, or where the partner is behind, its newest
//! one, at most s rounds old. For partners that are behind a peer keeps its last iterates by round:
//! [`PullPlan::queue`] of them, as many as the bounds let a partner be behind. So with s = 0 a mean
//! has iterates of one round only, also where partners are ahead. An iterate enters a mean once: a
//! partner that has published nothing newer since says so ([`PullMessage::Unchanged`]), and nothing
//! of it is mixed in that round. Answers count by their age, and what did not come counts nothing,
//! where without queues its share stays with the asker. A peer that is `skip` rounds behind all its
//! partners first renews its parameters: it asks for the iterates of the round that they have all
//! published, in which its own counts nothing if it is too old, and continues behind that round.
//!
//! The queues of the paper are at the receiver, and senders push; here they are at the sender, and
//! receivers ask, so that a peer keeps each iterate once and not once for each neighbour, and one
//! that asks in vain has lost a small message. The paper's other difference: with s > 0 it takes the
//! newest iterate that has come, which may be of a later round than k.
//!
//! Cost per peer and round with d partners: d small questions, and d pushes of one encoded fragment
//! in answer to those that ask; two latencies. A peer waits for the answers of its live partners
//! until the deadline, never longer; half-way there it asks those that have not answered once more.
//! For push-pull, where either end of a link moves by what both have, see [`pairwise`].
//!
//! [`pairwise`]: crate::exchange::neighbours::pairwise
//!
//! **Source:** Demers et al. 1987, "Epidemic algorithms for replicated database maintenance",
//! section 1.3 (push, pull, push-pull); Karp et al. 2000, "Randomized rumor spreading", section 1;
//! asynchronous averaging by rows: Tsitsiklis, Bertsekas and Athans 1986, "Distributed asynchronous
//! deterministic and stochastic gradient optimization algorithms", section II. Bounds: Li et al.
//! 2021, "Breaking (global) barriers in parallel stochastic optimization with wait-avoiding group
//! averaging" (IEEE TPDS), algorithm 2; Luo et al. 2019, "Hop: heterogeneity-aware decentralized
//! training" (ASPLOS), sections 4 and 5.

mod message;
#[cfg(test)]
mod tests;

use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices::{self, SliceLedger, release};
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, broke, foreign_message, foreign_tag};
use crate::limits::PULL_QUEUE_BYTES_MAX;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Checked, Event, FragmentId, Part, PeerId, PullPlan, PushOutcome, Round, SliceId, SliceMeta,
    Source, StoreId, Tag, Time, Topology, Wait,
};
pub use message::PullMessage;

/// The rule of pulling.
pub(super) struct Pull {
    topology: Box<dyn Topology>,
    bounds: PullPlan,
    /// Set where questions name the iterate that they want.
    queues: bool,
    published: Published,
    /// This round's row of W: who is asked, and what each answer counts.
    row: SortedMap<PeerId, f64>,
    /// When the wait for answers ends.
    deadline: Time,
    /// Set until those that have not answered are asked again, before the deadline.
    asks_again: bool,
    /// The round that is asked for.
    target: Round,
    /// With queues: partners that had no iterate newer than the one mixed already.
    unchanged: SortedSet<PeerId>,
    /// With queues: the newest round of which an iterate of each partner was mixed.
    taken: SortedMap<PeerId, Round>,
}

/// One fragment in one round: the answers, each with its weight.
pub(super) type Answers = SortedMap<PeerId, (SliceId, f64)>;

impl Pull {
    /// With `queues`, a question is answered with the iterate of its round, or the newest one before it;
    /// otherwise with what a peer published last.
    pub(super) fn new(topology: Box<dyn Topology>, bounds: PullPlan, queues: bool) -> Self {
        Self {
            topology,
            bounds,
            queues,
            published: Published::new(bounds, queues),
            row: SortedMap::new(),
            deadline: Time::ZERO,
            asks_again: false,
            target: Round(0),
            unchanged: SortedSet::new(),
            taken: SortedMap::new(),
        }
    }

    /// The round whose iterates are asked for: this peer's own. With queues, one that is `skip` rounds
    /// behind all partners of its row asks for those that they have all published, and continues
    /// behind them: the tokens of the paper (section 5), which say how far each partner is ahead.
    fn find_target(&self, cx: &Context) -> Round {
        let partners = self.row.keys().filter_map(|peer| cx.view.get(*peer));
        let slowest = partners.map(|remote| remote.round).min();
        let others = slowest.unwrap_or(cx.round);
        let behind = others.since(cx.round);
        if self.queues && self.bounds.skip > 0 && behind >= u64::from(self.bounds.skip) {
            // Behind the slowest, so that an iterate of that round is there at each partner.
            Round(others.0 - 1)
        } else {
            cx.round
        }
    }

    /// This peer's row of W. A topology gives columns: the weight of an answer is the share that
    /// its sender would push here.
    fn find_row(&self, cx: &Context) -> SortedMap<PeerId, f64> {
        let ranks = Ranks::live(cx);
        if self.bounds.syncs(cx.round) {
            let share = 1.0 / ranks.count() as f64;
            let others = (0..ranks.count()).filter_map(|rank| ranks.other(rank));
            return others.map(|peer| (peer, share)).collect();
        }
        let asked = ranks.partners(&*self.topology, cx).receive;
        let weight = |rank: usize| {
            let pushes = ranks.partners_of(rank, &*self.topology, cx).send;
            pushes.into_iter().find(|(to, _)| *to == ranks.me())
        };
        let row = asked.into_iter();
        row.filter_map(|rank| Some((ranks.other(rank)?, weight(rank)?.1)))
            .collect()
    }

    /// Waits for no more answers where enough are here, and no partner is too far behind.
    fn leave_backup(&self, cx: &Context, mixes: &mut MixesOf<Self>) {
        if self.bounds.backup == 0 || self.bounds.syncs(cx.round) {
            return;
        }
        let enough = self.row.len().saturating_sub(self.bounds.backup as usize);
        let near = |peer: &PeerId| {
            let remote = cx.view.get(*peer);
            let behind = remote.map_or(0, |remote| cx.round.since(remote.round));
            behind < u64::from(self.bounds.lead)
        };
        for mix in mixes.iter_mut() {
            let answered = mix.own.len() + self.unchanged.len();
            // One far behind is waited for: leaving it out each time would let it drift away.
            if answered >= enough.max(1) && mix.expected.iter().all(near) {
                mix.expected.clear();
            }
        }
    }

    /// Asks one partner of the round.
    fn ask_one(&self, cx: &mut Context, peer: PeerId) {
        let round = self.target;
        let message = if self.queues {
            let taken = self.taken.get(&peer).copied();
            PullMessage::AskSince { round, taken }
        } else {
            PullMessage::Ask { round }
        };
        cx.send(peer, message);
    }

    /// Asks the partners of the round, and sets the timer to when they are asked again.
    fn ask(&mut self, cx: &mut Context) {
        for peer in self.row.keys() {
            self.ask_one(cx, *peer);
        }
        if !self.row.is_empty() {
            let allowed = cx.deadlines.allow(Wait::Partners, self.row.keys().copied());
            self.deadline = cx.wait(Wait::Partners, allowed);
            self.asks_again = true;
            cx.timers.set(Timer::Exchange, cx.now + allowed / 2);
        }
    }

    /// The weights of this peer's own parameters and of the answers in the mean of a round.
    ///
    /// Without queues an answer has its share of the row, and the share of a missing one stays with this
    /// peer: `(1 - sum_j W_ij, W_ij)`. With queues an iterate u counts
    /// `W_iu (u.round - (k - s) + 1)` in round k, this peer's own included, and `Combination::Mix` divides
    /// by the sum of these weights: Luo et al. 2019, section 4.4, with the row's shares for the
    /// paper's equal ones. An iterate of round k counts s + 1 times as much as one s rounds older;
    /// this peer's own counts nothing where it is older than that. With s = 0 it is the mean of the
    /// iterates of round k that came.
    fn weights(
        &self,
        round: Round,
        answers: &SortedMap<PeerId, (SliceId, f64)>,
    ) -> (f64, Vec<(SliceId, f64)>) {
        if !self.queues {
            let inputs: Vec<(SliceId, f64)> = answers.values().copied().collect();
            let taken: f64 = inputs.iter().map(|(_, weight)| weight).sum();
            return ((1.0 - taken).max(0.0), inputs);
        }
        let slack = u64::from(self.bounds.slack(self.target));
        let freshness = |of: Round| {
            let age = self.target.0.saturating_sub(of.0);
            (slack + 1).saturating_sub(age) as f64
        };
        let inputs = answers.values();
        let inputs = inputs.map(|(slice, share)| (*slice, share * freshness(slice.round)));
        let inputs = inputs.collect();
        let own = (1.0 - self.row.values().sum::<f64>()).max(0.0);
        (own * freshness(round), inputs)
    }
}

impl Rule for Pull {
    type Fragment = Answers;
    type Encoding = ();

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        // Asked before this peer's parameters are encoded: the answers do not depend on them.
        self.row = self.find_row(cx);
        self.target = self.find_target(cx);
        self.unchanged.clear();
        self.ask(cx);
        for fragment in cx.plan.fragment_ids() {
            let slice = slices::own(cx, fragment);
            mixes.encode(cx, Source::Store(StoreId::Local), slice, ());
            if let Some(mix) = mixes.get_mut(fragment) {
                mix.expected.extend(self.row.keys());
            }
        }
    }

    fn encoded(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, encoded: Encoded<'_, ()>) {
        let Some(mix) = mixes.of(encoded.slice) else {
            return;
        };
        match encoded.bytes() {
            Some(bytes) => self.published.publish(cx, encoded.slice, bytes),
            None => {
                // Parameters that cannot be encoded are not finite, and no mix would repair them.
                self.unmixed(cx, mix);
                mix.expected.clear();
                mix.void();
            }
        }
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Checked {
        let (from, slice) = (arrived.from, arrived.slice);
        cx.view.forgive(from);
        slices::check(cx, arrived)?;
        let Tag::Answer { round } = arrived.meta.tag else {
            return Err(foreign_tag(arrived.meta.tag, "pull"));
        };
        if slice.part != Part::Contribution {
            return broke("an answer must be its sender's own contribution");
        }
        let answers = mixes.get_mut(slice.fragment).map(|mix| &mix.own);
        if answers.is_some_and(|answers| answers.values().any(|(held, _)| *held == slice)) {
            return Ok(()); // a retry of what is here already
        }
        // The sender knows the bound, and holds a question that it cannot answer in time.
        if self.queues && slice.round < self.bounds.oldest(round) {
            return broke("an iterate that is older than the bound");
        }
        // An answer counts for the round that asked, because its weight is that round's.
        let current = round == self.target;
        if current && mixes.came(cx, slice.fragment, from) {
            let weight = self.row.get(&from).copied().unwrap_or(0.0);
            if let Some(mix) = mixes.get_mut(slice.fragment) {
                mix.own.insert(from, (slice, weight));
            }
        } else {
            // An answer to a round that continued without it.
            release(cx, [slice]);
        }
        self.leave_backup(cx, mixes);
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, push: PushEnd) {
        self.published.pushed(cx, push);
    }

    /// The share of a partner that did not answer stays with this peer's parameters, so the row is
    /// always a convex combination.
    fn mixture(&mut self, _cx: &mut Context, mix: &mut FragmentMix<Answers>) -> Option<Mixture> {
        let (keep, inputs) = self.weights(mix.round, &mix.own);
        if self.queues {
            let newest = mix
                .own
                .iter()
                .map(|(peer, (slice, _))| (*peer, slice.round));
            for (peer, round) in newest {
                let taken = self.taken.entry(peer).or_insert(round);
                *taken = round.max(*taken);
            }
        }
        Some(Mixture {
            neighbours: inputs.len() as u32,
            weight: 1.0,
            order: mix.mean(keep, inputs),
        })
    }

    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Answers>,
        bad: SliceId,
    ) -> Option<Mixture> {
        let all = mix.own.len();
        mix.own.retain(|_, (slice, _)| *slice != bad);
        if mix.own.len() == all {
            return None;
        }
        release(cx, [bad]);
        self.mixture(cx, mix)
    }

    fn unmixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Answers>) {
        let (round, fragment) = (mix.round, mix.fragment);
        cx.emit(Event::Voided { round, fragment });
    }

    fn heard(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        self.leave_backup(cx, mixes);
    }

    fn gone(&mut self, _cx: &mut Context, _mixes: &mut MixesOf<Self>, peer: PeerId) {
        self.published.gone(peer);
        // It may come back from a checkpoint, with other iterates of the same rounds.
        self.taken.remove(&peer);
    }

    /// Questions get lost, so half-way to the deadline those that have not answered are asked
    /// again.
    fn ask_again(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) -> Option<Time> {
        if !std::mem::take(&mut self.asks_again) {
            return None;
        }
        // One question for all fragments of a partner, so each is asked once.
        let late: SortedSet<PeerId> = mixes.expected().collect();
        for peer in late {
            self.ask_one(cx, peer);
        }
        Some(self.deadline)
    }

    /// Answers do not depend on what this peer encodes: the wait ends with the last of them.
    fn waits(&self, mix: &FragmentMix<Answers>) -> bool {
        mix.is_collecting() && !mix.expected.is_empty()
    }

    fn message(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Checked {
        // It speaks: what it did not answer was lost, or late.
        cx.view.forgive(from);
        match message {
            ExchangeMessage::Pull(PullMessage::Ask { round }) if !self.queues => {
                self.published.asked(cx, from, *round, None);
            }
            ExchangeMessage::Pull(PullMessage::AskSince { round, taken }) if self.queues => {
                self.published.asked(cx, from, *round, *taken);
                // It says where it is, sooner than its next sign of life: a token of the paper.
                if let Some(remote) = cx.view.get_mut(from) {
                    remote.round = remote.round.max(*round);
                }
                self.leave_backup(cx, mixes);
            }
            ExchangeMessage::Pull(PullMessage::Unchanged { round }) if self.queues => {
                // An answer to an earlier round, or a second one, must not count as one of this
                // round.
                if *round == self.target && mixes.expected().any(|peer| peer == from) {
                    self.unchanged.insert(from);
                    mixes.gone(from);
                    self.leave_backup(cx, mixes);
                }
            }
            other => return Err(foreign_message(other, "pull")),
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        for mix in mixes.iter_mut() {
            let answers = std::mem::take(&mut mix.own).into_values();
            release(cx, answers.map(|(slice, _)| slice));
        }
        cx.waited(Wait::Partners);
        if self.queues && self.bounds.skip > 0 {
            // It has mixed what the others published in that round.
            cx.round = cx.round.max(self.target);
            return;
        }
        // One that is behind by more than a mean over all allows has been away, and the others
        // would wait for it in every such round.
        let behind = match (self.bounds.skip, self.bounds.sync_every) {
            (0, 0) => return,
            (0, every) => u64::from(every),
            (skip, _) => u64::from(skip) - 1,
        };
        cx.follow_the_others(behind);
    }

    fn waiting(&self, mixes: &MixesOf<Self>) -> usize {
        mixes.iter().map(|mix| mix.own.len()).sum()
    }
}

/// How often an answer is pushed again at most: a second loss of the same bytes means a bad link.
const AGAIN_MAX: u8 = 1;

/// The question of a peer that waits for the answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    round: Round,
    /// The newest round of which it has mixed an iterate.
    taken: Option<Round>,
}

/// The parameters that a peer published last, or a queue of earlier ones, too, and the peers that
/// asked for them. At most one answer is under way to each peer. A peer that asks in another round
/// meanwhile is answered after it.
#[derive(Debug)]
pub(super) struct Published {
    bounds: PullPlan,
    /// Set where a question is answered with the iterate of its round.
    queues: bool,
    /// The last iterates of each fragment, each with its size: [`PullPlan::queue`] of them, or the
    /// newest one.
    iterates: SortedMap<FragmentId, SortedMap<Round, (SliceId, u64)>>,
    /// Answers under way, each with the asker's round.
    ledger: SliceLedger<Round>,
    waiting: SortedMap<PeerId, Question>,
}

impl Published {
    pub(super) fn new(bounds: PullPlan, queues: bool) -> Self {
        Self {
            bounds,
            queues,
            iterates: SortedMap::new(),
            ledger: SliceLedger::default(),
            waiting: SortedMap::new(),
        }
    }

    /// Parameters are encoded: they answer every question from now on.
    pub(super) fn publish(&mut self, cx: &mut Context, slice: SliceId, bytes: u64) {
        let queue = self.iterates.entry(slice.fragment).or_default();
        let last = queue.insert(slice.round, (slice, bytes));
        if let Some((old, _)) = last.filter(|(old, _)| *old != slice) {
            // It goes with the last answer that needs it.
            self.ledger.spare(old);
        }
        // Before the questions: none of them may choose what goes now.
        self.forget_the_oldest(slice);
        self.ledger.release(cx, |_| false);
        for (peer, question) in std::mem::take(&mut self.waiting) {
            self.asked(cx, peer, question.round, question.taken);
        }
    }

    /// Keeps as many iterates as the plan says, within the bound on their bytes.
    fn forget_the_oldest(&mut self, newest: SliceId) {
        let kept = if self.queues { self.bounds.queue() } else { 1 };
        let queue = self.iterates.entry(newest.fragment).or_default();
        while queue.len() > kept {
            let oldest = queue.keys().copied().find(|round| *round != newest.round);
            let oldest = oldest.and_then(|round| queue.remove(&round));
            self.ledger.spare(oldest.expect("more than one is kept").0);
        }
        while self.bytes() > PULL_QUEUE_BYTES_MAX {
            let long = self.iterates.values_mut().filter(|queue| queue.len() > 1);
            let oldest = long.min_by_key(|queue| queue.keys().next().copied());
            let Some((_, (slice, _))) = oldest.and_then(SortedMap::pop_first) else {
                break; // the newest of each fragment stay
            };
            self.ledger.spare(slice);
        }
    }

    /// Encoded bytes of all iterates that are kept for questions to come.
    fn bytes(&self) -> u64 {
        let all = self.iterates.values().flat_map(SortedMap::values);
        all.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    /// How many iterates of a fragment are kept at most at the moment.
    #[cfg(test)]
    pub(super) fn longest(&self) -> usize {
        let queues = self.iterates.values().map(SortedMap::len);
        queues.max().unwrap_or(0)
    }

    /// The iterates that answer a question of a round; `None` where they are yet to be published.
    fn chosen(&self, cx: &Context, round: Round) -> Option<Vec<(SliceId, u64)>> {
        // An answer is of one round, so it waits until every fragment is published.
        if self.iterates.len() < cx.plan.fragments.len() {
            return None;
        }
        let newest = |queue: &SortedMap<Round, _>| queue.keys().next_back().copied();
        // All fragments have been published in this round.
        let whole = self.iterates.values().filter_map(newest).min()?;
        let of = |queue: &SortedMap<Round, (SliceId, u64)>| {
            let found = if self.queues {
                let until = queue.range(..=round.min(whole)).next_back();
                // Without one the asker is further behind than the queue is long.
                until.or(queue.iter().next())
            } else {
                queue.iter().next_back()
            };
            found.map(|(_, iterate)| *iterate)
        };
        let chosen: Option<Vec<(SliceId, u64)>> = self.iterates.values().map(of).collect();
        let oldest = self.bounds.oldest(round);
        chosen.filter(|all| all.iter().all(|(slice, _)| slice.round >= oldest))
    }

    pub(super) fn asked(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        round: Round,
        taken: Option<Round>,
    ) {
        let under_way = self.ledger.to(peer).next().map(|(_, round)| *round);
        if under_way == Some(round) {
            return; // it asks once more, and its answer is on the way
        }
        // One answer at a time to each peer: a slow link must not carry answers to rounds that are
        // over.
        let chosen = self.chosen(cx, round).filter(|_| under_way.is_none());
        let Some(chosen) = chosen else {
            self.waiting.insert(peer, Question { round, taken });
            return;
        };
        // It has mixed these: pushing them again would cost bytes and count one iterate twice.
        if chosen.iter().all(|(slice, _)| Some(slice.round) <= taken) {
            cx.send(peer, PullMessage::Unchanged { round });
            return;
        }
        for (slice, bytes) in chosen {
            self.ledger
                .push(cx, peer, slice, answer(round, bytes), round);
        }
    }

    /// A push of an answer ended. A lost one is repeated once; then the asker goes on.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return;
        };
        let queue = self.iterates.get(&slice.fragment);
        let kept = queue.and_then(|queue| queue.get(&slice.round));
        let kept = kept.is_some_and(|(kept, _)| *kept == slice);
        if outcome == PushOutcome::Lost && kept && push.again < AGAIN_MAX {
            self.ledger.push_again(cx, &end, push);
            return;
        }
        self.ledger.release(cx, |_| false);
        // Its question waits for all fragments of the answer before.
        let busy = self.ledger.to(to).next().is_some();
        if !busy && let Some(question) = self.waiting.remove(&to) {
            self.asked(cx, to, question.round, question.taken);
        }
    }

    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.remove(&peer);
    }
}

pub(in crate::exchange::neighbours) fn answer(round: Round, bytes: u64) -> SliceMeta {
    SliceMeta {
        of: 1,
        bytes,
        tag: Tag::Answer { round },
    }
}
