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

use super::pull::PullMessage;
use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices::{self, SliceLedger, is_linked, release};
use crate::core::context::Context;
use crate::exchange::{Arrived, ExchangeMessage, PushEnd, broke, foreign_message};
use crate::limits::{
    DIFFERENCES_KEPT, DIFFERENCES_WAITING_MAX, NEIGHBOURS_MAX, PATIENCE_ROUNDS, PUSHES_AT_ONCE_MAX,
    ROUNDS_AHEAD_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Checked, FragmentId, Order, Part, PeerError, PeerId, PushOutcome, Round, SliceId,
    SliceMeta, Source, StoreId, Tag, Topology, Unneeded,
};

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
    ) -> Checked {
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
    ) -> Checked {
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

/// What an arrived slice means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It waits for the mix; these slices are no longer needed.
    Kept(Vec<SliceId>),
    /// It is here already.
    Repeated,
    /// The copy has it in it, or there is no room for it.
    Useless,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Base {
    life: Attempt,
    next: u32,
    /// The slice that moved it last. It names the copy in a mix, so its bytes stay.
    last: SliceId,
}

/// Progress of one neighbour's copy, and the slices that wait to move it.
#[derive(Debug, Default)]
pub(super) struct Copy {
    base: Option<Base>,
    /// A whole copy that waits, and the number of the difference after it.
    whole: Option<(SliceId, u32)>,
    waiting: SortedMap<u32, SliceId>,
    /// The share that the neighbour offered last.
    pub(super) share: f64,
    /// Its link is gone, while a mix reads the copy.
    pub(super) gone: bool,
    /// Set at the end of a round in which the copy lacked its base.
    lacked: bool,
}

impl Copy {
    pub(super) fn take(&mut self, slice: SliceId, number: u32, share: f64) -> Came {
        let held = self.base.as_ref().map(|base| base.last);
        let whole = self.whole.as_ref().map(|(whole, _)| *whole);
        if self
            .waiting
            .values()
            .copied()
            .chain(held)
            .chain(whole)
            .any(|known| known == slice)
        {
            return Came::Repeated;
        }
        // The number of a whole copy is that of the difference after it.
        let past = |(life, next): (Attempt, u32)| life == slice.attempt && number < next;
        let reached = self.reached();
        if slice.part == Part::Aggregate {
            // A whole copy in which nothing is new is no repair either.
            if reached.is_some_and(past) || (reached == Some((slice.attempt, number))) {
                return Came::Useless;
            }
            let mut free: Vec<SliceId> = whole.into_iter().collect();
            let old =
                |at: &u32, waits: &mut SliceId| waits.attempt != slice.attempt || *at < number;
            free.extend(self.waiting.extract_if(.., old).map(|(_, waits)| waits));
            self.whole = Some((slice, number));
            (self.share, self.lacked) = (share, false);
            return Came::Kept(free);
        }
        let full = self.waiting.len() >= DIFFERENCES_WAITING_MAX;
        if reached.is_some_and(past) || full || self.waiting.contains_key(&number) {
            return Came::Useless;
        }
        self.waiting.insert(number, slice);
        self.share = share;
        Came::Kept(Vec::new())
    }

    /// The neighbour's life and next difference, once the whole copy that waits is taken in.
    fn reached(&self) -> Option<(Attempt, u32)> {
        let base = self.base.as_ref().map(|base| (base.life, base.next));
        let whole = self.whole.map(|(whole, next)| (whole.attempt, next));
        whole.or(base)
    }

    /// The slices that move the copy to its newest, in order; where none does, the one that moved
    /// it last. None where there is no copy.
    pub(super) fn ready(&self) -> Vec<SliceId> {
        let Some((life, first)) = self.reached() else {
            return Vec::new();
        };
        let whole = self.whole.map(|(whole, _)| whole);
        let next = (first..).map_while(|number| self.waiting.get(&number));
        let next = next.copied().take_while(|slice| slice.attempt == life);
        let mut slices: Vec<SliceId> = whole.into_iter().chain(next).collect();
        if slices.is_empty() {
            slices.extend(self.base.as_ref().map(|base| base.last));
        }
        slices
    }

    /// The copy is moved by all that was ready; gives the slices that are no longer needed. What
    /// has arrived since the order was given was not ready then.
    pub(super) fn moved(&mut self, taken: &[SliceId]) -> Vec<SliceId> {
        let Some(last) = taken.last().copied() else {
            return Vec::new();
        };
        let mut free = Vec::new();
        let before = self.base.take();
        let mut base = before.unwrap_or(Base {
            life: last.attempt,
            next: 0,
            last,
        });
        if let Some((whole, next)) = self.whole.take_if(|(whole, _)| taken.contains(whole)) {
            (base.life, base.next) = (whole.attempt, next);
            free.push(whole);
        }
        let done = |_: &u32, slice: &mut SliceId| taken.contains(slice);
        for (number, slice) in self.waiting.extract_if(.., done) {
            base.next = number.saturating_add(1);
            free.push(slice);
        }
        free.extend(before.map(|before| before.last));
        base.last = last;
        self.base = Some(base);
        free.retain(|slice| *slice != last);
        free
    }

    /// The neighbour should be asked for the whole copy: a round has passed in which there
    /// was no copy, or a difference was missing that others wait for.
    pub(super) const fn lacks_base(&self) -> bool {
        self.lacked
    }

    pub(super) fn round_over(&mut self) {
        let next = self.reached().map(|(_, next)| next);
        let gap = next.is_some_and(|next| {
            let mut waiting = self.waiting.keys();
            waiting.next().is_some_and(|first| *first > next)
        });
        self.lacked = next.is_none() || gap;
    }

    pub(super) fn newest(&self) -> Option<Round> {
        let whole = self.whole.map(|(whole, _)| whole);
        let last = self.base.map(|base| base.last);
        let waiting = self.waiting.values().copied();
        waiting
            .chain(whole)
            .chain(last)
            .map(|slice| slice.round)
            .max()
    }

    /// Drops the copy; gives all of its slices.
    pub(super) fn drop_all(&mut self) -> Vec<SliceId> {
        let waiting = core::mem::take(&mut self.waiting).into_values();
        let whole = self.whole.take().map(|(whole, _)| whole);
        let last = self.base.take().map(|base| base.last);
        self.lacked = true;
        waiting.chain(whole).chain(last).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() + usize::from(self.whole.is_some())
    }
}

/// An encoding under way.
#[derive(Clone, Debug)]
pub(in crate::exchange::neighbours) enum Made {
    /// The difference of this number.
    Difference(u32),
    /// The copy as it is before the difference of this number, for these peers.
    Whole(u32, SortedSet<PeerId>),
}

fn meta(cx: &Context, bytes: u64, number: u32, share: f64) -> SliceMeta {
    let tag = Tag::Half {
        session: u32::from(cx.life()) + 1,
        exchange: number,
        share,
    };
    SliceMeta { of: 1, bytes, tag }
}

/// What this peer sends: its differences by number, the last of which it keeps, and how far each
/// neighbour is with them.
#[derive(Debug, Default)]
pub(super) struct Sending {
    next: SortedMap<FragmentId, u32>,
    /// The last differences of each fragment by number, with their sizes.
    kept: SortedMap<(FragmentId, u32), (SliceId, u64)>,
    /// For each neighbour that was told the whole copy: the differences since that are not under
    /// way to it and have not arrived.
    told: SortedMap<PeerId, SortedMap<FragmentId, SortedSet<u32>>>,
    /// Pushes under way, each with its number.
    ledger: SliceLedger<u32>,
    /// Set in the round in which a new copy begins.
    new: bool,
}

impl Sending {
    /// A round begins. True where none of its partners holds the copy, so that a new one begins.
    pub(super) fn begin(&mut self, cx: &mut Context, partners: &[PeerId]) -> bool {
        self.new = !partners.iter().any(|peer| self.told.contains_key(peer));
        if self.new {
            self.told.clear();
            for fragment in cx.plan.fragment_ids() {
                // Numbers skip one, so that a peer that still holds the old copy sees a gap.
                let next = self.next(fragment).saturating_add(1);
                self.drop_before(cx, fragment, next);
            }
        }
        self.new
    }

    /// A new copy begins in this round, with a whole one.
    pub(super) const fn is_new(&self) -> bool {
        self.new
    }

    /// The number of the difference that is made now.
    pub(super) fn next(&mut self, fragment: FragmentId) -> u32 {
        let next = self.next.entry(fragment).or_default();
        let number = *next;
        *next = number.saturating_add(1);
        number
    }

    /// The number of the difference after those that were made.
    pub(super) fn peek(&self, fragment: FragmentId) -> u32 {
        self.next.get(&fragment).copied().unwrap_or(0)
    }

    /// A neighbour holds the copy, or will once it has the differences that are kept.
    pub(super) fn knows(&self, fragment: FragmentId, peer: PeerId) -> bool {
        let due = self.told.get(&peer).and_then(|told| told.get(&fragment));
        due.is_some_and(|due| self.keeps(fragment, due))
    }

    fn keeps(&self, fragment: FragmentId, numbers: &SortedSet<u32>) -> bool {
        let mut numbers = numbers.iter();
        numbers.all(|number| self.kept.contains_key(&(fragment, *number)))
    }

    /// A slice is encoded, or cannot be.
    pub(super) fn made(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        bytes: Option<u64>,
        made: Made,
        partners: &[(PeerId, f64)],
    ) {
        let fragment = slice.fragment;
        match (made, bytes) {
            (Made::Difference(number), Some(bytes)) => {
                self.kept.insert((fragment, number), (slice, bytes));
                for told in self.told.values_mut() {
                    if let Some(due) = told.get_mut(&fragment) {
                        due.insert(number);
                    }
                }
                // Before the oldest go: a partner that lacks one gets it now or not at all.
                self.push_due(cx, fragment, partners);
                let oldest = number.saturating_sub(DIFFERENCES_KEPT - 1);
                self.drop_before(cx, fragment, oldest);
            }
            (Made::Whole(number, to), Some(bytes)) => {
                for (peer, share) in partners.iter().filter(|(peer, _)| to.contains(peer)) {
                    let told = self.told.entry(*peer).or_default();
                    told.insert(fragment, SortedSet::new());
                    let meta = meta(cx, bytes, number, *share);
                    self.ledger.push(cx, *peer, slice, meta, number);
                }
                self.ledger.spare(slice);
            }
            // The number is used up: all that hold the copy need a whole one.
            (Made::Difference(_), None) => {
                for told in self.told.values_mut() {
                    told.remove(&fragment);
                }
            }
            (Made::Whole(..), None) => {}
        }
        self.ledger.release(cx, |_| false);
    }

    /// Pushes to each partner the differences that it lacks.
    fn push_due(&mut self, cx: &mut Context, fragment: FragmentId, partners: &[(PeerId, f64)]) {
        for (peer, share) in partners {
            let told = self.told.get_mut(peer);
            let Some(due) = told.and_then(|told| told.get_mut(&fragment)) else {
                continue;
            };
            let kept = &self.kept;
            let held = |number: &u32| kept.contains_key(&(fragment, *number));
            for number in due.extract_if(.., held) {
                let (slice, bytes) = kept[&(fragment, number)];
                let meta = meta(cx, bytes, number, *share);
                self.ledger.push(cx, *peer, slice, meta, number);
            }
        }
    }

    /// A push ended. A lost one is repeated, at once a few times, then with the next.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return;
        };
        let told = self.told.get_mut(&to);
        if outcome != PushOutcome::Delivered
            && let Some(told) = told
            && let Some(due) = told.get_mut(&slice.fragment)
        {
            let at_once = outcome != PushOutcome::Refused && push.again < PUSHES_AT_ONCE_MAX;
            let kept = self.kept.get(&(slice.fragment, push.note));
            if at_once {
                self.ledger.push_again(cx, &end, push);
            } else if kept.is_some_and(|(kept, _)| *kept == slice) {
                due.insert(push.note);
            } else {
                told.remove(&slice.fragment);
            }
        }
        self.ledger.release(cx, |_| false);
    }

    /// A neighbour asks for the whole copy, or is gone, and its copy with it.
    pub(super) fn untell(&mut self, peer: PeerId) {
        self.told.remove(&peer);
    }

    /// A round is over: forgets the neighbours that lack more than is kept.
    pub(super) fn forget(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        told.retain(|_, told| {
            told.retain(|fragment, due| self.keeps(*fragment, due));
            !told.is_empty()
        });
        self.told = told;
    }

    /// Differences before this one are kept no longer. Their pushes end first.
    fn drop_before(&mut self, cx: &mut Context, fragment: FragmentId, number: u32) {
        let old = (fragment, 0)..(fragment, number);
        for (_, (slice, _)) in self.kept.extract_if(old, |_, _| true) {
            self.ledger.spare(slice);
        }
        self.ledger.release(cx, |_| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FragmentId, PeerId};

    fn named(round: u64, part: Part, life: u8) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part,
            origin: PeerId::from_bytes([2; 32]),
            attempt: Attempt(life),
        }
    }

    fn difference(round: u64) -> SliceId {
        named(round, Part::Contribution, 0)
    }

    fn whole(round: u64) -> SliceId {
        named(round, Part::Aggregate, 0)
    }

    /// A copy that was told whole in round 4, before difference 7.
    fn told() -> Copy {
        let mut copy = Copy::default();
        assert_eq!(copy.take(whole(4), 7, 0.3), Came::Kept(vec![]));
        let taken = copy.ready();
        assert_eq!(taken, [whole(4)]);
        assert_eq!(copy.moved(&taken), []);
        copy
    }

    #[test]
    fn only_the_next_difference_moves_a_copy() {
        let mut copy = told();
        assert_eq!(copy.take(difference(6), 8, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.ready(), [whole(4)]);
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Repeated);
        let taken = copy.ready();
        assert_eq!(taken, [difference(5), difference(6)]);
        // What comes while they are mixed waits for the next mix.
        assert_eq!(copy.take(difference(7), 9, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.moved(&taken), [difference(5), whole(4)]);
        assert_eq!(copy.take(difference(6), 8, 0.3), Came::Repeated);
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Useless);
        assert_eq!(copy.ready(), [difference(7)]);
    }

    #[test]
    fn a_gap_is_asked_about_after_a_round_and_a_whole_copy_closes_it() {
        let mut copy = told();
        copy.round_over();
        assert!(!copy.lacks_base());
        copy.take(difference(6), 8, 0.3);
        assert!(!copy.lacks_base());
        copy.round_over();
        assert!(copy.lacks_base());
        assert_eq!(
            copy.take(whole(7), 10, 0.3),
            Came::Kept(vec![difference(6)])
        );
        assert!(!copy.lacks_base());
        copy.take(difference(8), 10, 0.3);
        let taken = copy.ready();
        assert_eq!(taken, [whole(7), difference(8)]);
        assert_eq!(copy.moved(&taken), [whole(7), whole(4)]);
        copy.round_over();
        assert!(!copy.lacks_base());
    }

    #[test]
    fn differences_of_another_life_do_not_move_a_copy() {
        let mut copy = told();
        let other = named(9, Part::Contribution, 1);
        copy.take(other, 7, 0.3);
        assert_eq!(copy.ready(), [whole(4)]);
        let again = named(10, Part::Aggregate, 1);
        assert_eq!(copy.take(again, 3, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.ready()[0], again);
        assert_eq!(copy.ready().len(), 1);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut copy = told();
        for at in 0..DIFFERENCES_WAITING_MAX as u32 {
            let slice = difference(u64::from(20 + at));
            assert_eq!(copy.take(slice, 20 + at, 0.3), Came::Kept(vec![]));
        }
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Useless);
        assert_eq!(copy.drop_all().len(), DIFFERENCES_WAITING_MAX + 1);
        assert!(copy.lacks_base() && copy.waiting() == 0);
    }
}
