//! Differences: every peer sends all neighbours the same numbered differences, and every neighbour
//! keeps a copy of it that they move.
//!
//! In a round peer i encodes one difference to its own copy and pushes it to every neighbour. Both
//! ends move the copy by the same bytes, so the copy of i is the same at all who hold it, i
//! included. Then i mixes the copies, its own among them:
//!
//! ```text
//! h_i <- h_i + C(x_i - h_i)          x_i <- h_i + sum_j W_ij (h_j - h_i)
//! ```
//!
//! What C leaves out of x_i is dropped (DCD-PSGD: the copy is the parameters), or x_i stays exact
//! and its copies are estimates (ECD-PSGD); the Executor knows which.
//!
//! **Lost slices.** A difference moves a copy only if it is the next one. Differences count from
//! the first on, so a receiver sees a gap. It mixes the copy that it has, and sender and receiver
//! repair the gap:
//!
//! - The sender pushes a difference again that did not arrive. It keeps the last
//!   [`DIFFERENCES_KEPT`] of them for that.
//! - Where a neighbour lacks an older one, or holds no copy, the sender pushes its copy whole
//!   (`Part::Aggregate`), with the number of the next difference.
//! - A receiver without a copy, or without the base of a difference that it holds, asks for the
//!   whole copy ([`PullMessage::Ask`]).
//!
//! **Guarantee.** A copy is bit for bit what its peer's own copy was after some number of differences:
//! it may be late, or early where the peer is a round ahead, and is never wrong. A mix is a combination of copies whose weights
//! sum to one. The sum over the peers changes by what the codec leaves out, and where one
//! copy is late.
//!
//! Cost per peer and round with d neighbours: one difference is encoded and pushed d times, no
//! control message; one latency. A new neighbour costs one push of 4 bytes a value. A peer waits
//! for its neighbours' differences until the deadline, never longer.
//!
//! **Source:** Tang, Gan, Zhang, Zhang, Liu 2018, "Communication Compression for Decentralized
//! Training" (NeurIPS), algorithms 1 and 2. Numbers, gaps and whole copies are our own: there
//! nothing is lost.

mod copy;
mod sent;

use super::mix::{FragmentMix, Mixture};
use super::pull::PullMessage;
use super::ranks::Ranks;
use super::rule::{Encoded, MixesOf, Rule};
use super::slices::{self, is_linked, release};
use crate::core::context::Context;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, broke, foreign_message};
use crate::limits::{NEIGHBOURS_MAX, PATIENCE_ROUNDS, ROUNDS_AHEAD_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    FragmentId, Order, Part, PeerError, PeerId, SliceId, Source, StoreId, Topology, Unneeded,
};
use copy::{Came, Copy};
use sent::{Made, Sending};

/// The slices that a mix moves each neighbour's copy by.
pub(super) type Taken = SortedMap<PeerId, Vec<SliceId>>;

pub(super) struct Differences {
    topology: Box<dyn Topology>,
    /// The round's partners, each with its share.
    partners: Vec<(PeerId, f64)>,
    sending: Sending,
    /// State of each neighbour's copy.
    copies: SortedMap<(FragmentId, PeerId), Copy>,
}

impl Differences {
    pub(super) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            partners: Vec::new(),
            sending: Sending::default(),
            copies: SortedMap::new(),
        }
    }

    fn is_partner(&self, peer: PeerId) -> bool {
        self.partners.iter().any(|(id, _)| *id == peer)
    }

    /// Orders what this peer sends in the round.
    fn make(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, fragment: FragmentId) {
        let store = StoreId::Replica(cx.me());
        let slice = slices::own(cx, fragment);
        if !self.sending.is_new() {
            mixes.encode(
                cx,
                Source::Store(store),
                slice,
                Made::Difference(self.sending.next(fragment)),
            );
        }
        let untold = |(peer, _): &&(PeerId, f64)| !self.sending.knows(fragment, *peer);
        let untold: SortedSet<PeerId> = self.partners.iter().filter(untold).map(|p| p.0).collect();
        if !untold.is_empty() {
            let part = Part::Aggregate;
            let number = self.sending.peek(fragment);
            let slice = SliceId { part, ..slice };
            mixes.encode(cx, Source::Store(store), slice, Made::Whole(number, untold));
        }
    }

    /// Copies that are not needed any more.
    fn end(&self, cx: &mut Context, ended: Vec<((FragmentId, PeerId), Copy)>) {
        let mut peers = SortedSet::new();
        for ((_, peer), mut copy) in ended {
            release(cx, copy.drop_all());
            peers.insert(peer);
        }
        let kept = |peer: &PeerId| self.copies.keys().any(|(_, id)| id == peer);
        for peer in peers.into_iter().filter(|peer| !kept(peer)) {
            cx.order(Order::Forget(Unneeded::Replicas(peer)));
        }
    }

    /// Asks the neighbours of whom a copy has lacked its base since an earlier round.
    fn ask(&self, cx: &mut Context) {
        let lacking = self.copies.iter().filter(|(_, copy)| copy.lacks_base());
        let peers: SortedSet<PeerId> = lacking.map(|((_, peer), _)| *peer).collect();
        let round = cx.round;
        for peer in peers.into_iter().filter(|peer| self.is_partner(*peer)) {
            if is_linked(cx, peer) {
                cx.send(peer, PullMessage::Ask { round });
            }
        }
    }
}

impl Rule for Differences {
    type Fragment = Taken;
    type Encoding = Made;

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        let ranks = Ranks::live(cx);
        self.partners = ranks.shares(ranks.partners(&*self.topology, cx).send);
        self.partners.truncate(NEIGHBOURS_MAX);
        if self.partners.is_empty() {
            return;
        }
        self.ask(cx);
        let partners: Vec<PeerId> = self.partners.iter().map(|(peer, _)| *peer).collect();
        if self.sending.begin(cx, &partners) {
            // No peer holds the copy any more: a new one begins at the parameters.
            cx.order(Order::Forget(Unneeded::Replicas(cx.me())));
        }
        // Beyond a complete view a peer that would be awaited here may push somewhere else.
        let awaited = cx.view.is_complete();
        for fragment in cx.plan.fragment_ids() {
            self.make(cx, mixes, fragment);
            if let Some(mix) = mixes.get_mut(fragment).filter(|_| awaited) {
                let copies = &self.copies;
                let here = |peer: &PeerId| {
                    let copy = copies.get(&(fragment, *peer));
                    copy.is_some_and(|copy| copy.newest() >= Some(cx.round))
                };
                mix.expected
                    .extend(partners.iter().filter(|peer| !here(peer)));
            }
        }
        cx.await_partners(mixes.expected());
    }

    fn encoded(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, encoded: Encoded<'_, Made>) {
        let bytes = encoded.bytes();
        if let Some(mix) = mixes.of(encoded.slice) {
            mix.failed |= bytes.is_none();
        }
        // A difference of a past round still belongs to the copy.
        let (slice, made) = (encoded.slice, encoded.note);
        self.sending.made(cx, slice, bytes, made, &self.partners);
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError> {
        let (number, share) = check(cx, arrived)?;
        let (from, slice) = (arrived.from, arrived.slice);
        if !is_linked(cx, from) {
            // Its link went down after the push, and with it the copy.
            release(cx, [slice]);
            return Ok(());
        }
        let copy = self.copies.entry((slice.fragment, from)).or_default();
        match copy.take(slice, number, share) {
            Came::Kept(free) => {
                release(cx, free);
                // It does its part, however late.
                cx.view.forgive(from);
                let due = mixes.get_mut(slice.fragment);
                if due.is_some_and(|mix| mix.round <= slice.round) {
                    mixes.came(cx, slice.fragment, from);
                }
            }
            Came::Repeated => {}
            Came::Useless => release(cx, [slice]),
        }
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, push: PushEnd) {
        self.sending.pushed(cx, push);
    }

    /// Moves the copies by all that is next of them, and mixes those of the round's partners.
    fn mixture(&mut self, _cx: &mut Context, mix: &mut FragmentMix<Taken>) -> Option<Mixture> {
        if mix.failed {
            return None;
        }
        let mut inputs = Vec::new();
        mix.own.clear();
        for (peer, share) in &self.partners {
            let Some(copy) = self.copies.get(&(mix.fragment, *peer)) else {
                continue;
            };
            let taken = copy.ready();
            if taken.is_empty() {
                continue;
            }
            // The copy counts once, as it is after the last of them.
            inputs.extend(taken.iter().map(|slice| (*slice, 0.0)));
            if let Some((_, weight)) = inputs.last_mut() {
                *weight = share.min(copy.share);
            }
            mix.own.insert(*peer, taken);
        }
        Some(Mixture {
            order: mix.replicas(inputs),
            neighbours: mix.own.len() as u32,
            weight: 1.0,
        })
    }

    /// The copy that a bad slice would have moved is dropped, and asked for as a whole.
    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Taken>,
        bad: SliceId,
    ) -> Option<Mixture> {
        let was_input = mix.own.contains_key(&bad.origin);
        let copy = self.copies.get_mut(&(mix.fragment, bad.origin))?;
        release(cx, copy.drop_all());
        was_input.then(|| self.mixture(cx, mix))?
    }

    fn mixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<Taken>) {
        for (peer, taken) in &mix.own {
            if let Some(copy) = self.copies.get_mut(&(mix.fragment, *peer)) {
                release(cx, copy.moved(taken));
            }
        }
        mix.end(cx);
    }

    /// The copies are where they were, or moved by slices that will be named again.
    fn unmixed(&mut self, _cx: &mut Context, mix: &mut FragmentMix<Taken>) {
        mix.own.clear();
    }

    fn gone(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, peer: PeerId) {
        self.sending.untell(peer);
        // What a mix under way reads stays until the round is over.
        let read = |fragment: FragmentId| {
            let mut all = mixes.iter();
            all.any(|mix| mix.fragment == fragment && mix.own.contains_key(&peer))
        };
        let of_it = |(fragment, id): &(FragmentId, PeerId), copy: &mut Copy| {
            let ends = *id == peer && !read(*fragment);
            copy.gone |= *id == peer;
            ends
        };
        let ended: Vec<_> = self.copies.extract_if(.., of_it).collect();
        self.end(cx, ended);
    }

    fn message(
        &mut self,
        cx: &mut Context,
        _mixes: &mut MixesOf<Self>,
        from: PeerId,
        message: &ExchangeMessage,
    ) -> Result<(), PeerError> {
        match message {
            ExchangeMessage::Pull(PullMessage::Ask { .. }) => {
                cx.view.forgive(from);
                self.sending.untell(from);
                Ok(())
            }
            other => Err(foreign_message(other, "differences")),
        }
    }

    fn finish(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        mixes.iter_mut().for_each(|mix| mix.own.clear());
        // Copies of peers that are gone, or that are no neighbours any more.
        let (round, partners) = (cx.round, &self.partners);
        let over = |(_, peer): &(FragmentId, PeerId), copy: &mut Copy| {
            let partner = partners.iter().any(|(id, _)| id == peer);
            let newest = copy.newest();
            let old = newest.is_none_or(|newest| round.since(newest) > PATIENCE_ROUNDS);
            copy.gone || (!partner && old)
        };
        let ended: Vec<_> = self.copies.extract_if(.., over).collect();
        self.end(cx, ended);
        self.copies.values_mut().for_each(Copy::round_over);
        self.sending.forget();
        cx.follow_the_others(ROUNDS_AHEAD_MAX);
    }

    fn waiting(&self, _mixes: &MixesOf<Self>) -> usize {
        self.copies.values().map(Copy::waiting).sum()
    }
}

/// What a slice must be; gives its number and the share that it offers.
fn check(cx: &Context, arrived: &Arrived) -> Result<(u32, f64), PeerError> {
    slices::check(cx, arrived)?;
    let (slice, meta) = (arrived.slice, arrived.meta);
    if !matches!(slice.part, Part::Contribution | Part::Aggregate) {
        return broke("neighbours send differences and whole copies only");
    }
    let (_, number, share) = slices::half_of(meta.tag, "differences")?;
    Ok((number, share))
}
