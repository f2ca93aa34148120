//! Wait-avoiding group means: the peers of a group get one mean of what each published last, and no
//! peer waits for one that still trains.
//!
//! The topology deals the peers into groups, other ones in each round. For each fragment one member,
//! the highest by a hash over run, round, fragment and peer, makes the mean of the group. The first
//! member that ends its inner steps asks it for the mean of the round. That begins it: the maker
//! asks all others for what they published last (`AskPart`), and those that still train answer at
//! once with parameters of an earlier round, at most `staleness` rounds old. It sums what comes, of
//! each member once, encodes the mean once, and pushes the same bytes to all members as they ask
//! (`AskMean`), also to those that end the round later. A peer takes in
//!
//! ```text
//! x_i <- m                     where its parameters of this round are in m
//! x_i <- (n m + x_i) / (n + 1)  where older ones are, or none
//! ```
//!
//! with the mean m of n members' parameters. So members whose parameters of the round are in the
//! mean have the same bits after it, and what a late one has trained since is not lost. One in
//! `sync_every` rounds is a mean over all peers, which waits for all parameters of that round.
//!
//! A peer makes means while it trains: nothing here needs the trainer. Questions drive all of it. A
//! member asks again after each quarter of the usual wait, and the maker then asks again for parts
//! that are not here; past half of its time a member says that it cannot wait for more, and the mean
//! is that of the parts that are here. So a maker needs no clock, and lost messages cost a quarter each. A
//! maker keeps its last [`GROUP_MEANS_MAX`](crate::limits::GROUP_MEANS_MAX) means of a fragment for
//! members that are late.
//!
//! **Guarantee.** Every mix is a convex combination of parameters. A group has one mean for each
//! round and fragment while its maker lives and all members know the same peers. A member whose
//! maker is gone asks the next one by the hash, and two members may then hold means by two makers;
//! where views differ, a member may get the mean of a group of which it is no member. In both cases
//! each mean is still one of published parameters, and it takes part in it as one that is late.
//! Suspicion changes no group: a suspected member is asked for its part, though not waited for and
//! not chosen as maker.
//!
//! Cost per peer and round in groups of g: 2 (g - 1) / g pushes of each fragment on average, half
//! of them parts and half means, and as many questions; three latencies for the first member of a
//! group, two for those that come later.
//!
//! **Source:** Li et al. 2021, "Breaking (global) barriers in parallel stochastic optimization with
//! wait-avoiding group averaging" (IEEE TPDS), algorithms 1 and 2. There the members of a group sum
//! along a butterfly, each with the content of its send buffer; here one member sums for all, which
//! costs the same bytes on average over fragments and rounds, and a death costs one mean and not the
//! whole operation.

mod means;
#[cfg(test)]
mod tests;

use super::pull::PullMessage;
use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices::{self, release};
use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, broke, foreign_message, foreign_tag};
use crate::id::rendezvous;
use crate::limits::VIEW_PEERS_MAX;
use crate::sorted::SortedSet;
use crate::{
    Checked, Done, Event, OrderId, Part, PeerId, PullPlan, Round, SliceId, Source, StoreId, Tag,
    Time, Topology, Wait,
};
use core::time::Duration;
use means::{Key, Means, Parts, Stage, is_suspected};

/// A member asks again after this share of the usual wait.
const AGAIN: u32 = 4;

/// The slots of the rendezvous hash that rank makers: by fragment, apart from those of other
/// choices.
const MAKERS: u16 = 128;

/// One fragment in one round: the mean, and how it is got.
#[derive(Debug, Default)]
pub(super) struct Sought {
    /// Members that were asked for it.
    tried: SortedSet<PeerId>,
    /// Set while this peer makes the mean.
    makes: bool,
    /// The mean, how many are in it, and whether this peer's parameters of the round are.
    got: Option<(SliceId, u32, bool)>,
}

/// The rule of wait-avoiding group means.
pub(super) struct GroupMeans {
    topology: Box<dyn Topology>,
    bounds: PullPlan,
    parts: Parts,
    means: Means,
    /// When the wait for a mean ends, from when on parts are not waited for, and after which pauses
    /// it is asked for again.
    deadline: Time,
    closes: Time,
    pause: Duration,
}

impl GroupMeans {
    pub(super) fn new(topology: Box<dyn Topology>, bounds: PullPlan) -> Self {
        Self {
            topology,
            bounds,
            parts: Parts::new(bounds),
            means: Means::default(),
            deadline: Time::ZERO,
            closes: Time::ZERO,
            pause: Duration::ZERO,
        }
    }

    /// The other members of this peer's group of a round, among all that take part: also those that
    /// it suspects, so that peers that suspect different others deal the same groups.
    fn other_members(&self, cx: &Context, round: Round) -> Vec<PeerId> {
        let others = cx.view.of_this_branch().filter(|(_, remote)| remote.ready);
        let ranks = Ranks::among(cx.me(), others.map(|(id, _)| id));
        // One in `sync_every` rounds is a mean over all peers, so that groups cannot drift apart.
        let dealt = if self.bounds.syncs(round) {
            (0..ranks.count()).collect()
        } else {
            let partners = self.topology.partners(round, ranks.me(), ranks.count());
            partners.receive
        };
        let others = dealt.into_iter();
        others.filter_map(|rank| ranks.other(rank)).collect()
    }

    /// Begins a mean that this peer makes, unless it has. False where it is too old to begin.
    fn open(&mut self, cx: &mut Context, key: Key) -> bool {
        self.means.stage(key).is_some() || {
            let others = self.other_members(cx, key.1);
            self.means.open(cx, key, others, &self.parts)
        }
    }

    /// Asks for the mean of a fragment, or makes it.
    fn seek(&mut self, cx: &mut Context, mix: &mut FragmentMix<Sought>, others: &[PeerId]) {
        let (round, fragment) = (mix.round, mix.fragment);
        let slot = (MAKERS + fragment.0 % MAKERS) as u8;
        let rank = |peer: &PeerId| rendezvous(&cx.plan.run, round, slot, *peer);
        let candidates = others.iter().copied().chain([cx.me()]);
        let candidates =
            // One that was tried is gone, or has none: a second question would end alike.
            candidates.filter(|peer| !mix.own.tried.contains(peer) && !is_suspected(cx, *peer));
        let Some(maker) = candidates.max_by_key(rank) else {
            return;
        };
        mix.own.tried.insert(maker);
        if maker != cx.me() {
            // At first the maker may wait: only a member whose own time runs out closes the mean.
            let closes = false;
            mix.expected.insert(maker);
            let message = PullMessage::AskMean {
                round,
                fragment,
                closes,
            };
            cx.send(maker, message);
            return;
        }
        if self.open(cx, (fragment, round)) {
            // As a slice of its own that is being encoded.
            mix.own.makes = true;
            mix.encoding += 1;
        }
    }

    /// Takes the means that this peer has made for itself.
    fn take_own(&self, cx: &Context, mixes: &mut MixesOf<Self>) {
        for mix in mixes.iter_mut().filter(|mix| mix.own.makes) {
            let key = (mix.fragment, mix.round);
            match self.means.stage(key) {
                Some(Stage::Gathering | Stage::Summing { .. }) => continue,
                Some(Stage::Made { .. }) if mix.is_collecting() => {
                    let made = self.means.made(key, cx.me());
                    mix.own.got =
                        made.map(|made| (made.slice, made.parts, made.own == Some(key.1)));
                }
                _ => {}
            }
            // Made, failed or forgotten: in each case nothing more comes, and the mix must not
            // wait.
            mix.own.makes = false;
            mix.encoding = mix.encoding.saturating_sub(1);
        }
    }

    /// Releases own slices that no question, push or mean needs.
    fn release(&mut self, cx: &mut Context) {
        let means = &self.means;
        self.parts.release(cx, |slice| means.reads(slice));
    }

    /// A part arrived for a mean that this peer makes.
    fn part_arrived(&mut self, cx: &mut Context, arrived: &Arrived, round: Round) -> Checked {
        let (from, slice) = (arrived.from, arrived.slice);
        if slice.part != Part::Contribution {
            return broke("an answer must be its sender's own contribution");
        }
        // Its sender knows the bound and would have held the question.
        if slice.round < self.bounds.oldest(round) {
            return broke("parameters that are older than the bound");
        }
        if !self.means.part(cx, from, slice, round, &self.parts) {
            release(cx, [slice]);
        }
        Ok(())
    }

    /// The mean of this peer's group arrived, or one that it no longer needs.
    fn mean_arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Checked {
        let (from, slice) = (arrived.from, arrived.slice);
        let Tag::GroupMean { round, parts, own } = arrived.meta.tag else {
            return Err(foreign_tag(arrived.meta.tag, "group means"));
        };
        if slice.part != Part::Aggregate || slice.round != round {
            return broke("a mean of a group must be named as its maker's aggregate");
        }
        if !(1..=VIEW_PEERS_MAX as u32).contains(&parts) {
            return broke("a mean of a group is that of one or more members");
        }
        let held = mixes.get_mut(slice.fragment).and_then(|mix| mix.own.got);
        if held.is_some_and(|(held, ..)| held == slice) {
            return Ok(()); // a retry of what is here already
        }
        if round == cx.round && mixes.came(cx, slice.fragment, from) {
            if let Some(mix) = mixes.get_mut(slice.fragment) {
                mix.own.got = Some((slice, parts, own == Some(round)));
            }
        } else {
            release(cx, [slice]);
        }
        Ok(())
    }
}

impl Rule for GroupMeans {
    type Fragment = Sought;
    type Encoding = ();

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        for fragment in cx.plan.fragment_ids() {
            let slice = slices::own(cx, fragment);
            mixes.encode(cx, Source::Store(StoreId::Local), slice, ());
            self.parts.begins(slice);
        }
        let others = self.other_members(cx, cx.round);
        if others.is_empty() {
            return;
        }
        for mix in mixes.iter_mut() {
            self.seek(cx, mix, &others);
        }
        let makers: SortedSet<PeerId> = mixes.expected().collect();
        let usual = cx.deadlines.allow(Wait::Partners, makers);
        let allowed = if self.bounds.syncs(cx.round) {
            cx.deadlines.ceiling()
        } else {
            usual
        };
        self.deadline = cx.wait(Wait::Partners, allowed);
        // The other half is for the sum, its encoding and the push.
        self.closes = cx.now + allowed / 2;
        self.pause = usual / AGAIN;
        cx.timers.set(Timer::Exchange, cx.now + self.pause);
        self.take_own(cx, mixes);
    }

    fn encoded(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, encoded: Encoded<'_, ()>) {
        let (slice, bytes) = (encoded.slice, encoded.bytes());
        let means = &self.means;
        self.parts
            .publish(cx, slice, bytes, |slice| means.reads(slice));
        self.means.published(cx, slice.fragment, &self.parts);
        if bytes.is_none()
            && let Some(mix) = mixes.of(slice)
        {
            // Parameters that cannot be encoded are not finite, and no mix would repair them.
            self.unmixed(cx, mix);
            mix.expected.clear();
            mix.void();
        }
        self.take_own(cx, mixes);
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Checked {
        cx.view.forgive(arrived.from);
        slices::check(cx, arrived)?;
        match arrived.meta.tag {
            Tag::Answer { round } => self.part_arrived(cx, arrived, round)?,
            _ => self.mean_arrived(cx, mixes, arrived)?,
        }
        self.take_own(cx, mixes);
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, push: PushEnd) {
        let means = &self.means;
        let reads = |slice: &SliceId| means.reads(slice);
        if !self.parts.pushed(cx, push, reads) {
            self.means.pushed(cx, push);
        }
    }

    fn done(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, order: OrderId, done: &Done) {
        self.means.done(cx, order, done, &self.parts);
        self.release(cx);
        self.take_own(cx, mixes);
    }

    /// Algorithm 2 of the paper, lines 11 to 14: without a mean the parameters stay.
    fn mixture(&mut self, _cx: &mut Context, mix: &mut FragmentMix<Sought>) -> Option<Mixture> {
        let order = mix.own.got.map(|(slice, parts, fresh)| {
            if fresh {
                mix.mean(0.0, vec![(slice, 1.0)])
            } else {
                mix.mean(1.0, vec![(slice, f64::from(parts))])
            }
        });
        Some(Mixture {
            neighbours: mix.own.got.map_or(0, |(_, parts, _)| parts),
            weight: 1.0,
            order: order.flatten(),
        })
    }

    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Sought>,
        bad: SliceId,
    ) -> Option<Mixture> {
        mix.own.got.take_if(|(slice, ..)| *slice == bad)?;
        if bad.origin != cx.me() {
            release(cx, [bad]);
        }
        self.mixture(cx, mix)
    }

    fn unmixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Sought>) {
        let (round, fragment) = (mix.round, mix.fragment);
        cx.emit(Event::Voided { round, fragment });
    }

    /// Members whose maker is gone ask the next one.
    fn gone(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, peer: PeerId) {
        self.parts.gone(peer);
        self.means.gone(cx, peer, &self.parts);
        let mut others = self.other_members(cx, cx.round);
        others.retain(|other| *other != peer);
        for mix in mixes.iter_mut() {
            // A mix that does not wait for it has its mean, or another maker.
            if mix.is_collecting() && mix.expected.remove(&peer) {
                self.seek(cx, mix, &others);
            }
        }
        self.take_own(cx, mixes);
    }

    fn ask_again(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) -> Option<Time> {
        if cx.now >= self.deadline {
            return None;
        }
        let closes = cx.now >= self.closes;
        for mix in mixes.iter().filter(|mix| mix.is_collecting()) {
            let (round, fragment) = (mix.round, mix.fragment);
            for maker in &mix.expected {
                let message = PullMessage::AskMean {
                    round,
                    fragment,
                    closes,
                };
                cx.send(*maker, message);
            }
            if mix.own.makes {
                self.means.again(cx, (fragment, round), closes, &self.parts);
            }
        }
        self.take_own(cx, mixes);
        Some(self.deadline.min(cx.now + self.pause))
    }

    fn message(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Checked {
        cx.view.forgive(from);
        let fragment = match message {
            ExchangeMessage::Pull(
                PullMessage::AskPart { fragment, .. }
                | PullMessage::AskMean { fragment, .. }
                | PullMessage::NoMean { fragment, .. },
            ) => *fragment,
            other => return Err(foreign_message(other, "group means")),
        };
        if cx.plan.fragment(fragment).is_none() {
            return broke("a question about a fragment that the plan does not have");
        }
        match message {
            ExchangeMessage::Pull(PullMessage::AskPart { round, .. }) => {
                self.parts.asked(cx, from, fragment, *round);
            }
            ExchangeMessage::Pull(PullMessage::AskMean { round, closes, .. }) => {
                // It says where it is, sooner than its next sign of life.
                if let Some(remote) = cx.view.get_mut(from) {
                    remote.round = remote.round.max(*round);
                }
                let key = (fragment, *round);
                // The first question begins the mean, also while this peer still trains.
                self.open(cx, key);
                self.means.asked(cx, from, key, *closes, &self.parts);
                self.take_own(cx, mixes);
            }
            ExchangeMessage::Pull(PullMessage::NoMean { round, .. }) => {
                if let Some(mix) = mixes.get_mut(fragment).filter(|mix| mix.round == *round) {
                    mix.expected.remove(&from);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        let me = cx.me();
        let got = mixes.iter_mut().filter_map(|mix| mix.own.got.take());
        release(cx, got.map(|(slice, ..)| slice).filter(|s| s.origin != me));
        cx.waited(Wait::Partners);
        // One that is behind by more than a mean over all allows has been away, and the others
        // would wait for it in every such round.
        let behind = match self.bounds.sync_every {
            0 => u64::from(self.bounds.staleness),
            every => u64::from(every),
        };
        cx.follow_the_others(behind);
        let staleness = u64::from(self.bounds.staleness);
        let oldest = Round(cx.round.0.saturating_sub(staleness));
        self.means.expire(cx, oldest);
        self.release(cx);
    }

    fn waiting(&self, mixes: &MixesOf<Self>) -> usize {
        let got = mixes.iter().filter(|mix| mix.own.got.is_some());
        got.count() + self.means.waiting()
    }
}
