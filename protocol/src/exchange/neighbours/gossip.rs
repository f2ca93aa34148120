//! Gossip: push a share of this peer's mass to the round's partners, mix what arrived by the
//! deadline.
//!
//! Push-sum over any column-stochastic W. Peer i holds parameters z_i and weight w_i (mass
//! w_i z_i). In a round it encodes z_i once as zh_i and pushes (zh_i, W_ji w_i) to each partner j;
//! then
//!
//! ```text
//! z_i <- (w_i z_i - sum_j W_ji w_i zh_i + sum_k m_k zh_k) / (w_i - sum_j W_ji w_i + sum_k m_k)
//! ```
//!
//! over the slices k that arrived with masses m_k. With a doubly stochastic W and no loss every
//! weight stays one and this is D-PSGD's `X W`. The sums of mass and weight over live peers plus
//! unacknowledged transfers are conserved, also if slices are late, lost or refused: a push that
//! certainly failed goes back into the sender's mix.
//!
//! Cost per peer and round with d partners: d pushes of one encoded fragment, no control message;
//! one latency. A peer waits for the expected partners of the same round until the deadline, never
//! longer; what comes later is mixed in a later round. `ExchangeKind::Push` does not wait: it costs
//! no latency, and mixes whatever has arrived, of any round (overlapped SGP, GoSGD).
//!
//! **Source:** Assran et al. 2019, "Stochastic Gradient Push", algorithm 1; Kempe, Dobra, Gehrke
//! 2003, "Gossip-Based Computation of Aggregate Information", protocol Push-Sum; Lian et al. 2017
//! (D-PSGD) for the doubly stochastic case; Blot et al. 2016, GoSGD, for pushes without a wait.

use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices::{self, SliceLedger, release};
use crate::core::Event;
use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, PushSum, broke, forbid, foreign_tag};
use crate::limits::{INBOX_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Checked, FragmentId, Part, PeerError, PeerId, Plan, PushOutcome, Round, SliceId, SliceMeta,
    Source, StoreId, Tag, Topology,
};

/// The largest mass of one push. Weights are one on average, and no usual topology lets a peer push
/// four times that, so the bound costs nothing; and a liar's slice outweighs an honest peer's own
/// parameters at most four to one. A peer that has gathered more keeps the rest for the next round.
const MASS_MAX: f64 = 4.0;

/// Slices of one sender and fragment in one mix, where peers wait for each other: this round's, and
/// three that were late. More of them wait for the next mix.
const MIXED_PER_SENDER_MAX: usize = 4;

pub(super) struct Gossip {
    topology: Box<dyn Topology>,
    /// Set where peers wait for the round's partners.
    waits: bool,
    /// Push-sum weight of each fragment.
    weights: Vec<f64>,
    account: Account,
    inbox: Inbox,
    /// The round's partners, each with its share of the mass.
    partners: Vec<(PeerId, f64)>,
}

/// One fragment in one round.
#[derive(Debug, Default)]
pub(super) struct Pushed {
    /// The name of this peer's contribution.
    slice: Option<SliceId>,
    /// Mass pushed in this round.
    sent: f64,
    /// Slices of others in the mix. Their bytes are needed until the round ends, for a repetition.
    taken: Vec<Waiting>,
    /// The weight before the mix.
    keep: f64,
    /// What the mix reads, with the masses.
    inputs: Vec<(SliceId, f64)>,
}

impl Gossip {
    pub(super) fn new(plan: &Plan, topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            waits: plan.exchange.waits(),
            weights: vec![1.0; plan.fragments.len()],
            account: Account::default(),
            inbox: Inbox::default(),
            partners: Vec::new(),
        }
    }

    fn weight(&mut self, fragment: FragmentId) -> Option<&mut f64> {
        self.weights.get_mut(usize::from(fragment.0))
    }

    /// Finds the round's partners; gives those whose push is awaited.
    fn find_partners(&mut self, cx: &Context) -> Vec<PeerId> {
        let ranks = Ranks::live(cx);
        let partners = ranks.partners(&*self.topology, cx);
        self.partners = ranks.shares(partners.send);
        // Beyond a complete view every peer ranks the others differently than its partner does: a
        // peer that would be awaited here pushes somewhere else.
        if !self.waits || !cx.view.is_complete() {
            return Vec::new();
        }
        let receive = partners.receive.into_iter();
        receive.filter_map(|rank| ranks.other(rank)).collect()
    }
}

impl Rule for Gossip {
    type Fragment = Pushed;
    type Encoding = ();

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        let receive = self.find_partners(cx);
        cx.await_partners(receive.iter().copied());
        for fragment in cx.plan.fragment_ids() {
            let slice = slices::own(cx, fragment);
            // A peer without partners encodes nothing: no push would need it.
            if !self.partners.is_empty() {
                mixes.encode(cx, Source::Store(StoreId::Local), slice, ());
                self.account.lock(slice);
            }
            if let Some(mix) = mixes.get_mut(fragment) {
                mix.own.slice = Some(slice);
                mix.expected.extend(&receive);
                // A partner that is ahead has pushed already.
                for peer in self.inbox.senders(fragment, cx.round) {
                    mix.expected.remove(&peer);
                }
            }
        }
    }

    /// Pushes the contribution to all partners, each with its share of the mass.
    fn encoded(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, encoded: Encoded<'_, ()>) {
        let slice = encoded.slice;
        // A contribution of a round that is over goes nowhere; the account releases it.
        let Some(mix) = mixes.of(slice) else {
            return;
        };
        let Some(bytes) = encoded.bytes() else {
            mix.void();
            return;
        };
        // All partners get shares of the same weight: it stays until the fragment is mixed.
        let weight = self.weight(slice.fragment).copied().unwrap_or(1.0);
        for (to, share) in &self.partners {
            let mass = (share * weight).min(MASS_MAX);
            mix.own.sent += mass;
            let meta = SliceMeta {
                of: 1,
                bytes,
                tag: Tag::Mass { weight: mass },
            };
            self.account.ledger.push(cx, *to, slice, meta, mass);
        }
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Checked {
        slices::check(cx, arrived)?;
        let (from, slice, tag) = (arrived.from, arrived.slice, arrived.meta.tag);
        let Tag::Mass { weight } = tag else {
            return Err(foreign_tag(tag, "gossip"));
        };
        forbid(
            slice.part != Part::Contribution,
            "a gossip slice must be a contribution",
        )?;
        if !(weight.is_finite() && weight > 0.0 && weight <= MASS_MAX) {
            return broke("a gossip slice's weight must be positive and at most four");
        }
        let waiting = Waiting {
            from,
            slice,
            weight,
        };
        // A repeated push must not bring its mass twice.
        let new = self.inbox.put(waiting, self.weights.len())?;
        // A slice of an earlier round is mixed too, but the partner still owes this round's.
        let due = |round| round <= slice.round;
        if new
            && mixes
                .get_mut(slice.fragment)
                .is_some_and(|mix| due(mix.round))
        {
            mixes.came(cx, slice.fragment, from);
        }
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, push: PushEnd) {
        self.account.pushed(cx, push);
    }

    fn mixture(&mut self, _cx: &mut Context, mix: &mut FragmentMix<Pushed>) -> Option<Mixture> {
        let (fragment, latest) = (mix.fragment, mix.round);
        let mut inputs = Vec::new();
        if let Some(slice) = mix.own.slice.filter(|_| mix.own.sent > 0.0) {
            inputs.push((slice, -mix.own.sent));
        }
        let waits = self.waits;
        let each = if waits {
            MIXED_PER_SENDER_MAX
        } else {
            usize::MAX
        };
        let taken = self.inbox.take(fragment, each, |round| {
            // A slice of one of the next rounds waits for that round. One from further ahead comes
            // from a peer that this one will not meet in the same round, so its mass counts now.
            let ahead = round.since(latest);
            !waits || ahead == 0 || ahead > ROUNDS_AHEAD_MAX
        });
        inputs.extend(taken.iter().map(|waiting| (waiting.slice, waiting.weight)));
        let returned = self.account.take_returned(fragment);
        if let Some(slice) = mix.own.slice.filter(|_| !returned.is_empty()) {
            // Contributions of earlier rounds are read again: nothing is released meanwhile.
            self.account.hold(slice);
        }
        inputs.extend(returned);
        let weight = self.weight(fragment)?;
        // The weight changes with the order and not with its answer: a push of the next round must
        // take its share of the new weight. `unmixed` takes the change back.
        let keep = *weight;
        *weight += inputs.iter().map(|(_, mass)| mass).sum::<f64>();
        mix.own.keep = keep;
        mix.own.taken = taken;
        mix.own.inputs.clone_from(&inputs);
        Some(Mixture {
            order: mix.mean(keep, inputs),
            neighbours: mix.own.taken.len() as u32,
            weight: *weight,
        })
    }

    /// The mass of a bad slice does not become part of this peer's weight.
    fn without(
        &mut self,
        _cx: &mut Context,
        mix: &mut FragmentMix<Pushed>,
        bad: SliceId,
    ) -> Option<Mixture> {
        let weight = self.weight(mix.fragment)?;
        let is_bad = |input: &mut (SliceId, f64)| input.0 == bad;
        let lost: Vec<(SliceId, f64)> = mix.own.inputs.extract_if(.., is_bad).collect();
        if lost.is_empty() {
            return None;
        }
        *weight -= lost.iter().map(|(_, mass)| mass).sum::<f64>();
        Some(Mixture {
            order: mix.mean(mix.own.keep, mix.own.inputs.clone()),
            neighbours: mix.own.taken.len() as u32,
            weight: *weight,
        })
    }

    fn mixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Pushed>) {
        mix.end(cx);
        self.account.unlock(mix.own.slice);
        self.account.release(cx);
    }

    /// Nothing is mixed, but what this peer pushed has left it, and what others pushed is used up.
    fn unmixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Pushed>) {
        for (slice, weight) in mix.own.inputs.drain(..) {
            let peer = slice.origin;
            cx.emit(Event::MassUncertain { peer, weight });
        }
        if let Some(weight) = self.weight(mix.fragment) {
            *weight = mix.own.keep - mix.own.sent;
        }
    }

    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        for mix in mixes.iter_mut() {
            release(cx, mix.own.taken.drain(..).map(|waiting| waiting.slice));
            self.account.unlock(mix.own.slice);
        }
        self.account.release(cx);
        if self.waits {
            cx.follow_the_others(ROUNDS_AHEAD_MAX);
        }
    }

    fn waiting(&self, _mixes: &MixesOf<Self>) -> usize {
        self.inbox.len()
    }

    fn push_sum(&self, mixes: &MixesOf<Self>) -> PushSum {
        // A push leaves the weight only when its fragment is mixed.
        let unmixed = mixes.iter().filter(|mix| mix.is_collecting());
        let sent: f64 = unmixed.map(|mix| mix.own.sent).sum();
        let (waiting, returned) = (self.inbox.mass(), self.account.returned());
        PushSum {
            weights: self.weights.clone(),
            held: self.weights.iter().sum::<f64>() - sent + waiting + returned,
        }
    }

    fn set_weights(&mut self, weights: &[f64]) {
        for (mine, weight) in self.weights.iter_mut().zip(weights) {
            *mine = *weight;
        }
    }
}

/// The account of pushed mass: mass that is not acknowledged yet, and mass that comes back because its push
/// certainly failed.
#[derive(Debug, Default)]
pub(super) struct Account {
    ledger: SliceLedger<f64>,
    /// Mass that waits to be mixed back in, with the contribution that it was pushed with.
    returned: Vec<(SliceId, f64)>,
    /// Rounds' contributions that a mix under way still reads.
    locked: SortedSet<SliceId>,
}

impl Account {
    /// A push ended. If it certainly failed, its mass is mixed back in. If its fate is unknown, the
    /// mass stays out, because it may count at the receiver already.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        if let Some(push) = self.ledger.ended(&end) {
            let weight = push.note;
            match outcome {
                PushOutcome::Delivered => {}
                PushOutcome::Unknown => cx.emit(Event::MassUncertain { peer: to, weight }),
                PushOutcome::Lost | PushOutcome::Refused => self.returned.push((slice, weight)),
            }
        }
        self.release(cx);
    }

    /// Takes what came back of one fragment. Its slices must be locked until the mix is done.
    fn take_returned(&mut self, fragment: FragmentId) -> Vec<(SliceId, f64)> {
        let of_it = |(slice, _): &mut (SliceId, f64)| slice.fragment == fragment;
        self.returned.extract_if(.., of_it).collect()
    }

    /// A contribution is encoded, and a mix will read it.
    pub(super) fn lock(&mut self, slice: SliceId) {
        self.hold(slice);
        self.ledger.spare(slice);
    }

    /// A mix of this round reads contributions that came back.
    pub(super) fn hold(&mut self, mix: SliceId) {
        self.locked.insert(mix);
    }

    /// The mix of this round has read its contribution, and older ones that came back.
    fn unlock(&mut self, slice: Option<SliceId>) {
        if let Some(slice) = slice {
            self.locked.remove(&slice);
        }
    }

    /// Releases contributions that are acknowledged or mixed back in.
    pub(super) fn release(&mut self, cx: &mut Context) {
        // A mix under way may read any of them.
        if self.locked.is_empty() {
            let returned = &self.returned;
            self.ledger
                .release(cx, |slice| returned.iter().any(|(held, _)| held == slice));
        }
    }

    /// Weight that came back and waits to be mixed back in.
    pub(super) fn returned(&self) -> f64 {
        self.returned.iter().map(|(_, mass)| mass).sum()
    }
}

/// A slice that arrived and is not mixed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) from: PeerId,
    pub(super) slice: SliceId,
    pub(super) weight: f64,
}

/// Slices that arrived and are not mixed yet, bounded for each sender.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    slices: Vec<Waiting>,
    count_of: SortedMap<PeerId, usize>,
}

impl Inbox {
    /// Takes a slice in; false where it is here already.
    ///
    /// # Errors
    /// When its sender has too many slices here for a plan with this number of fragments.
    pub(super) fn put(&mut self, waiting: Waiting, fragments: usize) -> Result<bool, PeerError> {
        if self.slices.iter().any(|w| w.slice == waiting.slice) {
            return Ok(false);
        }
        let count = self.count_of.entry(waiting.from).or_default();
        forbid(
            *count >= INBOX_SLICES_MAX * fragments,
            "too many gossip slices at once",
        )?;
        *count += 1;
        self.slices.push(waiting);
        Ok(true)
    }

    /// Who has pushed a fragment of this round or a later one.
    pub(super) fn senders(
        &self,
        fragment: FragmentId,
        round: Round,
    ) -> impl Iterator<Item = PeerId> {
        let here = self
            .slices
            .iter()
            .filter(move |w| w.slice.fragment == fragment);
        here.filter(move |w| w.slice.round >= round).map(|w| w.from)
    }

    /// Takes a fragment's slices of some rounds out, the oldest `each` of every sender, in `PeerId`
    /// order: sums must not depend on which slice came first.
    pub(super) fn take(
        &mut self,
        fragment: FragmentId,
        each: usize,
        due: impl Fn(Round) -> bool,
    ) -> Vec<Waiting> {
        self.slices.sort_by_key(|w| (w.from, w.slice));
        let mut counted: Option<(PeerId, usize)> = None;
        let wanted = |w: &mut Waiting| {
            if w.slice.fragment != fragment || !due(w.slice.round) {
                return false;
            }
            let count = match counted {
                Some((from, count)) if from == w.from => count + 1,
                _ => 1,
            };
            counted = Some((w.from, count));
            count <= each
        };
        let taken: Vec<Waiting> = self.slices.extract_if(.., wanted).collect();
        for waiting in &taken {
            if let Some(count) = self.count_of.get_mut(&waiting.from) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.count_of.remove(&waiting.from);
                }
            }
        }
        taken
    }

    /// Weight that waits here.
    pub(super) fn mass(&self) -> f64 {
        self.slices.iter().map(|w| w.weight).sum()
    }

    /// Slices that wait here.
    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }
}
