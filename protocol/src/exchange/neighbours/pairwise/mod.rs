//! Exchanges between two: two neighbours move towards each other by the same amount. Their sum
//! stays the same, however late either of them mixes.
//!
//! In exchange k of neighbours i and j each pushes one slice and, once it has pushed its own and
//! holds the other's, moves
//!
//! ```text
//! x_i <- x_i + rate * w (h_j - h_i)        x_j <- x_j + rate * w (h_i - h_j)
//! ```
//!
//! with `w` the smaller of the two shares that the slices offer and h what both ends decode of
//! them: bit for bit the same at either end, so the two moves are exactly opposite. A peer that
//! waits for i does not wait for j. A half that is not acknowledged is pushed again, under the same
//! name, until it is or the link is gone: at most one exchange of a dead link is ambiguous, and
//! reported as `MassUncertain`.
//!
//! Two methods, by `ExchangeKind`:
//!
//! - **Replicas** (CHOCO-style): h is a replica that both ends keep, and a slice the encoded
//!   difference of the parameters to it. The first slice of a session is the parameters themselves,
//!   whole (`Part::Aggregate`). Partners of a round come from the topology and are waited for until
//!   the deadline. Cost per peer and round with d partners: d pushes of one encoded fragment, no
//!   control message; one latency. Beginning a session costs one push of 4 bytes a value each way.
//! - **Pairs** (AD-PSGD): h is the parameters as they were when the slice was encoded. Every round
//!   begins an exchange with one neighbour drawn from the topology unless one is under way (one
//!   that is late by some rounds no longer counts: its neighbour may have stalled), answers those
//!   that others began, and mixes the complete ones. It waits for no peer, so peers never wait in a
//!   circle. Cost per peer and round: at most one push begun and one answer to each that came; no
//!   latency.
//!
//! **Source:** Koloskova, Stich, Jaggi 2019, "Decentralized Stochastic Optimization and Gossip
//! Algorithms with Compressed Communication", algorithms 1 and 2 (there a peer keeps one replica of
//! itself for all neighbours; here one for each, so that a slice lost on one link holds up nothing
//! on others); Lian et al. 2018, "Asynchronous Decentralized Parallel Stochastic Gradient Descent",
//! algorithm 1.

mod edge;

use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices;
use super::slices::{is_linked, release};
use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, broke, forbid};
use crate::limits::{
    HISTORY_ROUNDS_MAX, NEIGHBOURS_MAX, PATIENCE_ROUNDS, PUSHES_AT_ONCE_MAX, ROUNDS_AHEAD_MAX,
};
use crate::sorted::SortedMap;
use crate::{
    Checked, Event, ExchangeKind, FragmentId, Order, Part, PeerError, PeerId, Plan, PushOutcome,
    SliceId, SliceMeta, Source, StoreId, Tag, Topology, Unneeded,
};
pub use edge::Standing;
use edge::{Edge, Half, Meaning, Sent, Waiting};
use rand_core::Rng;

/// The rule of exchanges between two.
pub(super) struct Pairwise {
    topology: Box<dyn Topology>,
    edges: Edges,
}

impl Pairwise {
    pub(super) fn new(plan: &Plan, topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            edges: Edges::new(plan.exchange == ExchangeKind::Replicas),
        }
    }

    /// With whom to begin or continue an exchange in this round, and the share to offer.
    fn partners(&mut self, cx: &mut Context, fragment: FragmentId) -> Vec<(PeerId, f64)> {
        let ranks = Ranks::live(cx);
        let drawn = ranks.shares(ranks.partners(&*self.topology, cx).send);
        let begun = |edge: &Edge| edge.half == Half::Idle && edge.awaited().is_some();
        let begun_by_them: Vec<PeerId> = self
            .edges
            .of(fragment)
            .filter(|(id, edge)| begun(edge) && cx.view.live().any(|(live, _)| live == *id))
            .map(|(id, _)| id)
            .take(NEIGHBOURS_MAX)
            .collect();
        if self.edges.replicas {
            with_strangers(drawn, begun_by_them)
        } else {
            self.one_or_answers(cx, fragment, drawn, begun_by_them)
        }
    }

    /// Pairs: answers to all that others began, or one of its own if none is under way.
    fn one_or_answers(
        &mut self,
        cx: &mut Context,
        fragment: FragmentId,
        mut partners: Vec<(PeerId, f64)>,
        answered: Vec<PeerId>,
    ) -> Vec<(PeerId, f64)> {
        let busy = |edge: &Edge| edge.half != Half::Idle;
        let late = |edge: &Edge| match edge.half {
            Half::Pushed(slice, _) => cx.round.since(slice.round) >= PATIENCE_ROUNDS,
            _ => false,
        };
        let edges = self.edges.of(fragment);
        let under_way: Vec<&Edge> = edges.map(|(_, edge)| edge).filter(|e| busy(e)).collect();
        let mut open = under_way.len();
        // With enough neighbours that stall, a peer that only answers would begin nothing.
        let waits_for_one = under_way.iter().any(|edge| !late(edge));
        let mut chosen = answered;
        if !waits_for_one && chosen.is_empty() {
            let edges = &self.edges;
            partners.retain(|(id, _)| !edges.get(fragment, *id).is_some_and(busy));
            let drawn = cx.rng.next_u64().checked_rem(partners.len() as u64);
            let drawn = drawn.and_then(|at| partners.get(at as usize));
            chosen.extend(drawn.map(|(id, _)| *id));
        }
        // With m exchanges under way at a time, each moves by at most 1 / (m + 1) of the distance,
        // so that together they do not overshoot.
        let offered = chosen.into_iter().map(|id| {
            open += 1;
            (id, 1.0 / (1.0 + open as f64))
        });
        offered.collect()
    }

    /// Begins this end's half of an exchange with each partner.
    fn begin_fragment(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        fragment: FragmentId,
    ) {
        let replicas = self.edges.replicas;
        let partners = self.partners(cx, fragment);
        for (slot, (peer, share)) in partners.into_iter().enumerate() {
            let edge = self.edges.entry(fragment, peer);
            if edge.closing || edge.mixing {
                // A closing session is not continued, and exchange k + 1 begins after k is mixed.
                continue;
            }
            if !edge.open {
                let next = edge.session.max(edge.above).saturating_add(1);
                edge.begin(next);
            }
            if edge.half == Half::Idle {
                let mut slice = slices::own_of_slot(cx, fragment, slot);
                if replicas && edge.number == 0 {
                    slice.part = Part::Aggregate;
                }
                let store = if replicas {
                    StoreId::Replica(peer)
                } else {
                    StoreId::Local
                };
                let session = edge.session;
                let begun = Begun {
                    peer,
                    session,
                    share,
                };
                // The order's number tells this half from one of an earlier session that is still
                // being encoded.
                edge.half = Half::Encoding(mixes.encode(cx, Source::Store(store), slice, begun));
            }
            if replicas
                && share > 0.0
                && edge.awaited().is_none()
                && let Some(mix) = mixes.get_mut(fragment)
            {
                mix.expected.insert(peer);
            }
        }
    }
}

/// Replicas: the round's partners, and with a share of zero every other peer that took this one for
/// a partner because the views differ. Its answer moves neither end, but the exchange ends.
fn with_strangers(
    mut partners: Vec<(PeerId, f64)>,
    begun_by_them: Vec<PeerId>,
) -> Vec<(PeerId, f64)> {
    partners.truncate(NEIGHBOURS_MAX);
    let known: Vec<PeerId> = partners.iter().map(|(id, _)| *id).collect();
    let strangers = begun_by_them.into_iter().filter(|id| !known.contains(id));
    partners.extend(strangers.map(|id| (id, 0.0)));
    partners
}

impl Rule for Pairwise {
    type Fragment = ();
    type Encoding = Begun;

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        // Old halves first: without them the other end cannot finish its exchange.
        self.edges.push_again(cx);
        for fragment in cx.plan.fragment_ids() {
            self.begin_fragment(cx, mixes, fragment);
        }
        cx.await_partners(mixes.expected());
    }

    fn encoded(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        encoded: Encoded<'_, Begun>,
    ) {
        // A half of a past round does not hold up this round's mix, but it still belongs to its
        // session.
        if let Some(mix) = mixes.of(encoded.slice) {
            mix.failed |= encoded.bytes().is_none();
        }
        self.edges.encoded(cx, &encoded);
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Checked {
        let (session, number, share) = check(cx, arrived, self.edges.replicas)?;
        let (from, slice) = (arrived.from, arrived.slice);
        let waiting = Waiting {
            slice,
            share,
            number,
        };
        if self.edges.take(cx, from, session, waiting) {
            // It does its part, however late.
            cx.view.forgive(from);
            mixes.came(cx, slice.fragment, from);
        }
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, push: PushEnd) {
        self.edges.pushed(cx, push);
    }

    /// Mixes every exchange whose two halves are here.
    fn mixture(&mut self, _cx: &mut Context, mix: &mut FragmentMix<()>) -> Option<Mixture> {
        if mix.failed {
            return None;
        }
        let (mut inputs, mut neighbours) = (Vec::new(), 0);
        let replicas = self.edges.replicas;
        for (_, edge) in self.edges.of_mut(mix.fragment) {
            let weight = edge.weight();
            let (Some(theirs), Half::Pushed(mine, _)) = (edge.awaited(), edge.half) else {
                continue;
            };
            inputs.push((theirs.slice, weight));
            if !replicas {
                inputs.push((mine, -weight));
            }
            edge.mixing = true;
            neighbours += 1;
        }
        let order = if replicas {
            mix.replicas(inputs)
        } else {
            mix.mean(1.0, inputs)
        };
        Some(Mixture {
            order,
            neighbours,
            weight: 1.0,
        })
    }

    /// The session of a bad half ends, because the two ends no longer hold the same replicas.
    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<()>,
        bad: SliceId,
    ) -> Option<Mixture> {
        // The other exchanges of this mix are as they were, and are mixed again.
        self.unmixed(cx, mix);
        self.edges.get(mix.fragment, bad.origin)?;
        self.edges.restart(cx, (mix.fragment, bad.origin));
        self.mixture(cx, mix)
    }

    fn mixed(&mut self, cx: &mut Context, mix: &mut FragmentMix<()>) {
        self.edges.mixed(cx, mix.fragment);
        mix.end(cx);
    }

    /// The exchanges stay complete, and are mixed in the next round.
    fn unmixed(&mut self, _cx: &mut Context, mix: &mut FragmentMix<()>) {
        for (_, edge) in self.edges.of_mut(mix.fragment) {
            edge.mixing = false;
        }
    }

    fn gone(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>, peer: PeerId) {
        self.edges.gone(cx, peer);
    }

    fn finish(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>) {
        self.edges.sweep(cx);
        if self.edges.replicas {
            cx.follow_the_others(ROUNDS_AHEAD_MAX);
        }
    }

    fn waiting(&self, _mixes: &MixesOf<Self>) -> usize {
        self.edges.waiting()
    }

    fn standings(&self) -> Vec<Standing> {
        self.edges.standings()
    }
}

/// What a half must be; gives its session, its number and the share it offers.
fn check(cx: &Context, arrived: &Arrived, replicas: bool) -> Result<(u32, u32, f64), PeerError> {
    slices::check(cx, arrived)?;
    let (slice, meta) = (arrived.slice, arrived.meta);
    forbid(
        slice.part == Part::Partial,
        "a partial sum between neighbours",
    )?;
    let half = slices::half_of(meta.tag, "an exchange of two")?;
    let (session, number, _) = half;
    let whole = slice.part == Part::Aggregate;
    if session == 0 || whole != (replicas && number == 0) {
        return broke("only what begins a session is whole, and sessions begin with one");
    }
    Ok(half)
}

type Key = (FragmentId, PeerId);

/// A half that is being encoded.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange::neighbours) struct Begun {
    peer: PeerId,
    session: u32,
    share: f64,
}

/// All sessions of a peer: its halves are encoded, pushed and pushed again, those of the others
/// arrive, and sessions end.
///
/// The edges to all neighbours, fragment by fragment.
#[derive(Debug)]
struct Edges {
    /// Set where slices are differences to replicas.
    replicas: bool,
    all: SortedMap<Key, Edge>,
}

impl Edges {
    const fn new(replicas: bool) -> Self {
        Self {
            replicas,
            all: SortedMap::new(),
        }
    }

    fn get(&self, fragment: FragmentId, peer: PeerId) -> Option<&Edge> {
        self.all.get(&(fragment, peer))
    }

    fn entry(&mut self, fragment: FragmentId, peer: PeerId) -> &mut Edge {
        self.all.entry((fragment, peer)).or_default()
    }

    /// The edges of one fragment, in `PeerId` order.
    fn of(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let of_it = self.all.iter().filter(move |((of, _), _)| *of == fragment);
        of_it.map(|((_, id), edge)| (*id, edge))
    }

    fn of_mut(&mut self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &mut Edge)> {
        let all = self.all.iter_mut();
        let of_it = all.filter(move |((of, _), _)| *of == fragment);
        of_it.map(|((_, id), edge)| (*id, edge))
    }

    /// Pushes halves again that may be lost. Ends a session whose half is lost for long.
    fn push_again(&mut self, cx: &mut Context) {
        let mut stuck = Vec::new();
        for ((fragment, peer), edge) in &mut self.all {
            // A push that is under way may still arrive; a second one would only cost bytes.
            let due = edge.unheard.iter_mut().filter(|sent| !sent.under_way);
            let linked = is_linked(cx, *peer);
            for sent in due.filter(|_| linked) {
                (sent.under_way, sent.again) = (true, 0);
                cx.push(*peer, sent.slice, sent.meta, 0);
            }
            let rounds = |sent: &Sent| cx.round.since(sent.slice.round);
            let old = |sent: &Sent| !sent.under_way && rounds(sent) > HISTORY_ROUNDS_MAX as u64;
            // The other end has answered none of it for long, so it is in no session with this one.
            if !edge.mixing && edge.unheard.iter().any(old) {
                stuck.push((*fragment, *peer));
            }
        }
        for key in stuck {
            self.restart(cx, key);
        }
    }

    /// The ends no longer know what the other holds: the session ends, and a later one begins.
    fn restart(&mut self, cx: &mut Context, key: Key) {
        let Some(edge) = self.all.get_mut(&key) else {
            return;
        };
        report(cx, key.1, edge);
        release(cx, edge.end());
    }

    /// Takes a half of the other end in; true where it waits for its exchange now.
    fn take(&mut self, cx: &mut Context, from: PeerId, session: u32, waiting: Waiting) -> bool {
        let (slice, number) = (waiting.slice, waiting.number);
        let key = (slice.fragment, from);
        let edge = self.entry(slice.fragment, from);
        // A mix under way reads slices of the old session. It ends first, and the other end pushes
        // its half again.
        if session > edge.session && number == 0 && !edge.mixing && !edge.closing {
            // The other end has started a new session, in which this end's old slices are void.
            report(cx, from, edge);
            release(cx, edge.begin(session));
        }
        match edge.take(session, waiting) {
            Meaning::Kept => {
                // It answers what this end pushed before: those halves have arrived.
                release(cx, edge.heard(|sent| sent.number < number));
                return true;
            }
            Meaning::Repeated => {
                // The same slice lies where the first does. Another one under its number is void.
                if edge.theirs.iter().all(|waiting| waiting.slice != slice) {
                    release(cx, [slice]);
                }
            }
            Meaning::Past => release(cx, [slice]),
            Meaning::Gap => {
                // A missing half would leave the replicas of the two ends different for ever. Only
                // a new session, which begins with the complete parameters, makes them equal again.
                release(cx, [slice]);
                // The next session must have a number that the other end has not used.
                edge.above = edge.above.max(session);
                if !edge.mixing && !edge.closing {
                    self.restart(cx, key);
                }
            }
        }
        false
    }

    /// This end's half is encoded, or cannot be.
    fn encoded(&mut self, cx: &mut Context, encoded: &Encoded<'_, Begun>) {
        let (slice, begun, bytes) = (encoded.slice, encoded.note, encoded.bytes());
        let edge = self.all.get_mut(&(slice.fragment, begun.peer));
        // An order of a session that ended meanwhile names a half that no one waits for.
        let edge = edge.filter(|edge| edge.half == Half::Encoding(encoded.order));
        match (edge, bytes) {
            (Some(edge), Some(bytes)) if edge.session == begun.session => {
                let meta = SliceMeta {
                    of: 1,
                    bytes,
                    tag: Tag::Half {
                        session: begun.session,
                        exchange: edge.number,
                        share: begun.share,
                    },
                };
                edge.half = Half::Pushed(slice, begun.share);
                edge.unheard.push(Sent {
                    slice,
                    meta,
                    number: edge.number,
                    under_way: true,
                    again: 0,
                });
                cx.push(begun.peer, slice, meta, 0);
            }
            (Some(edge), None) => edge.half = Half::Idle,
            // Its session ended while it was encoded.
            (_, Some(_)) => release(cx, [slice]),
            (None, None) => {}
        }
    }

    fn pushed(&mut self, cx: &mut Context, push: PushEnd) {
        let PushEnd { to, slice, outcome } = push;
        let Some(edge) = self.all.get_mut(&(slice.fragment, to)) else {
            return;
        };
        if outcome == PushOutcome::Delivered {
            release(cx, edge.heard(|sent| sent.slice == slice));
        } else if let Some(sent) = edge.unheard.iter_mut().find(|s| s.slice == slice) {
            // A few times at once, then with the next round: by then a dead link is known to be
            // dead.
            sent.under_way = sent.again < PUSHES_AT_ONCE_MAX;
            if sent.under_way {
                sent.again += 1;
                let meta = sent.meta;
                cx.push(to, slice, meta, 0);
            }
        }
    }

    /// The mix of a fragment is made: its exchanges are done.
    fn mixed(&mut self, cx: &mut Context, fragment: FragmentId) {
        let (mut free, mut over) = (Vec::new(), Vec::new());
        for (peer, edge) in self.of_mut(fragment).filter(|(_, edge)| edge.mixing) {
            let weight = edge.weight();
            free.extend(edge.advance(weight));
            if edge.closing {
                // The link went down during the mix; the session was kept open for it only.
                free.extend(edge.end());
                over.push(peer);
            }
        }
        release(cx, free);
        for peer in over {
            self.forget(cx, peer);
        }
    }

    /// A link is gone. A complete exchange is mixed, as the other end may have; the rest goes.
    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        let mut freed = Vec::new();
        for (_, edge) in self.all.iter_mut().filter(|((_, id), _)| *id == peer) {
            report(cx, peer, edge);
            if edge.complete() || edge.mixing {
                edge.closing = true;
                let number = edge.number;
                let later = edge.theirs.extract_if(.., |w| w.number != number);
                freed.extend(later.map(|w| w.slice));
                freed.extend(edge.heard(|_| true));
            } else {
                freed.extend(edge.end());
            }
        }
        release(cx, freed);
        self.forget(cx, peer);
    }

    /// Ends the sessions with peers that the view no longer holds.
    fn sweep(&mut self, cx: &mut Context) {
        let unknown = |cx: &Context, peer: &PeerId| cx.view.get(*peer).is_none();
        let mut ended = Vec::new();
        for ((_, peer), edge) in &mut self.all {
            // The slices of a mix under way must stay until it is done.
            if edge.open && !edge.mixing && unknown(cx, peer) {
                ended.push(*peer);
                release(cx, edge.end());
            }
        }
        ended.into_iter().for_each(|peer| self.forget(cx, peer));
        self.all
            .retain(|(_, peer), edge| edge.mixing || !unknown(cx, peer));
    }

    /// Drops the replicas of a peer once no session with it is open.
    fn forget(&self, cx: &mut Context, peer: PeerId) {
        let mut of_it = self.all.iter().filter(|((_, id), _)| *id == peer);
        let open = of_it.any(|(_, edge)| edge.open);
        if self.replicas && !open {
            cx.order(Order::Forget(Unneeded::Replicas(peer)));
        }
    }

    fn waiting(&self) -> usize {
        self.all.values().map(|edge| edge.theirs.len()).sum()
    }

    /// How far this peer is on every edge whose session is open.
    fn standings(&self) -> Vec<Standing> {
        let edges = self.all.iter();
        let open = edges.filter(|(_, edge)| edge.open && !edge.closing);
        let standings = open.map(|((fragment, peer), edge)| Standing {
            peer: *peer,
            fragment: *fragment,
            session: edge.session,
            exchanges: edge.number,
            weight: edge.mixed,
        });
        standings.collect()
    }
}

/// A session ends with a half of unknown fate: the other end may have mixed it, or not.
fn report(cx: &mut Context, peer: PeerId, edge: &Edge) {
    if let Some(sent) = edge.unheard.first()
        && let Tag::Half { share: weight, .. } = sent.meta.tag
    {
        cx.emit(Event::MassUncertain { peer, weight });
    }
}
