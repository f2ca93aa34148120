//! Exchanges between two: each pair of neighbours moves towards each other by the same amount, and the
//! sum of both stays what it was, however late either of them gets to it.
//!
//! In exchange k of neighbours i and j each pushes one slice and, once it has pushed its own and holds
//! the other's, takes
//!
//! ```text
//! x_i <- x_i + rate * w (h_j - h_i)        x_j <- x_j + rate * w (h_i - h_j)
//! ```
//!
//! with `w` the smaller of the two shares that the slices offer and h what both ends decode of them:
//! bit for bit the same at either end, so the two moves are exactly opposite. Nobody who waits for i
//! waits for j. A half that is not acknowledged is pushed again, under the same name, until it is or
//! the link is gone: one ambiguous exchange a dead link at most, reported as `MassUncertain`.
//!
//! Two methods, by `ExchangeKind`:
//!
//! - **Replicas** (CHOCO-style): h is a replica that both ends keep, and a slice the encoded difference
//!   of the parameters to it. The first slice of a session is the parameters themselves, whole
//!   (`Part::Aggregate`). Partners of a round come from the topology and are waited for until the
//!   deadline. Cost per peer and round with d partners: d pushes of one encoded fragment, no control
//!   message; one latency. Beginning a session costs one push of 4 bytes a value each way.
//! - **Pairs** (AD-PSGD): h is the parameters as they were when the slice was encoded. Every round
//!   begins an exchange with one neighbour drawn from the topology unless one is under way (one that is
//!   late for some rounds no longer counts: its neighbour may have stalled), answers
//!   those that others began, mixes what is complete and waits for nobody: nothing can wait in a
//!   circle. Cost per peer and round: at most one push begun and one answered for each that came; no
//!   latency.
//!
//! **Source:** Koloskova, Stich, Jaggi 2019, "Decentralized Stochastic Optimization and Gossip
//! Algorithms with Compressed Communication", algorithms 1 and 2 (there a peer keeps one replica of itself
//! for all neighbours; here one for each, so that a slice lost on one link holds up nothing on others);
//! Lian et al. 2018, "Asynchronous Decentralized Parallel Stochastic Gradient Descent", algorithm 1.

mod edge;
mod halves;
mod mixing;
mod standing;

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::{Ending, Exchange, Outcome, Signal, all_ended};
use crate::limits::{NEIGHBOURS_MAX, PATIENCE_ROUNDS, ROUNDS_AHEAD_MAX};
use crate::{
    ExchangeKind, FragmentId, Order, OrderId, Part, PeerError, PeerId, Plan, SliceId, StoreId,
    Time, Topology, TrainSummary, Wait,
};
pub use standing::Standing;

use edge::{Edge, Half};
use mixing::Mixing;
use rand_core::Rng;
use std::collections::BTreeMap;

/// The exchange of one peer with each of its neighbours.
pub(crate) struct Pairwise {
    /// Whether slices are differences to replicas.
    replicas: bool,
    topology: Box<dyn Topology>,
    edges: BTreeMap<(FragmentId, PeerId), Edge>,
    /// Who takes part in an Encode under way, and in which session.
    encodings: BTreeMap<OrderId, (SliceId, PeerId, u32, f64)>,
    mixings: Vec<Mixing>,
    /// When the round's exchange began.
    began: Time,
}

impl Pairwise {
    pub(crate) fn new(plan: &Plan, topology: Box<dyn Topology>) -> Self {
        Self {
            replicas: plan.exchange == ExchangeKind::Replicas,
            topology,
            edges: BTreeMap::new(),
            encodings: BTreeMap::new(),
            mixings: Vec::new(),
            began: Time::ZERO,
        }
    }

    /// The round's neighbours by id with the share that each may have.
    fn neighbours(&self, cx: &Context) -> Vec<(PeerId, f64)> {
        let mut live: Vec<PeerId> = cx.view.live().map(|(id, _)| id).collect();
        let rank = live.partition_point(|id| *id < cx.me());
        live.insert(rank, cx.me());
        let send = self.topology.partners(cx.round, rank, live.len()).send;
        let named = send.into_iter().filter_map(|(rank, share)| {
            let id = live.get(rank).copied()?;
            (id != cx.me()).then_some((id, share))
        });
        named.collect()
    }

    /// With whom to begin or go on in this round, and what to offer each.
    fn partners(&mut self, cx: &mut Context, fragment: FragmentId) -> Vec<(PeerId, f64)> {
        let mut partners = self.neighbours(cx);
        let waits = |edge: &Edge| edge.half == Half::Idle && edge.awaited().is_some();
        let answered: Vec<PeerId> = self
            .of(fragment)
            .filter(|(id, edge)| waits(edge) && cx.view.live().any(|(live, _)| live == *id))
            .map(|(id, _)| id)
            .take(NEIGHBOURS_MAX)
            .collect();
        if self.replicas {
            partners.truncate(NEIGHBOURS_MAX);
            // Whoever takes this peer for a neighbour gets an answer that moves nothing.
            let others = answered.into_iter();
            let strangers: Vec<_> = others
                .filter(|id| partners.iter().all(|(known, _)| known != id))
                .map(|id| (id, 0.0))
                .collect();
            partners.extend(strangers);
            return partners;
        }
        let busy = |edge: &Edge| edge.half != Half::Idle;
        let mut open = self.of(fragment).filter(|(_, edge)| busy(edge)).count();
        let late = |edge: &Edge| match edge.half {
            Half::Pushed(slice, _) => cx.round.since(slice.round) >= PATIENCE_ROUNDS,
            _ => false,
        };
        let waits_for_one = self.of(fragment).any(|(_, e)| busy(e) && !late(e));
        let mut chosen = answered;
        if !waits_for_one && chosen.is_empty() {
            partners.retain(|(id, _)| {
                let edge = self.edges.get(&(fragment, *id));
                edge.is_none_or(|edge| !busy(edge))
            });
            let drawn = cx.rng.next_u64().checked_rem(partners.len() as u64);
            let drawn = drawn.and_then(|at| partners.get(at as usize));
            chosen.extend(drawn.map(|(id, _)| *id));
        }
        // Of m exchanges under way at a time none moves more than 1 / (m + 1) of the distance.
        let offered = chosen.into_iter().map(|id| {
            open += 1;
            (id, 1.0 / (1.0 + open as f64))
        });
        offered.collect()
    }

    fn of(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let edges = self.edges.iter();
        edges
            .filter(move |((of, _), _)| *of == fragment)
            .map(|((_, id), edge)| (*id, edge))
    }

    /// Begins the own half of an exchange with each partner, and pushes again what did not arrive.
    fn begin_fragment(&mut self, cx: &mut Context, fragment: FragmentId) -> Mixing {
        let partners = self.partners(cx, fragment);
        let mut mixing = Mixing::new(cx.round, fragment);
        for (slot, (peer, share)) in partners.into_iter().enumerate() {
            let edge = self.edges.entry((fragment, peer)).or_insert_with(Edge::new);
            if edge.closing || edge.mixing {
                continue;
            }
            if !edge.open {
                let next = edge.session.max(edge.above).saturating_add(1);
                edge.begin(next);
            }
            if edge.half == Half::Idle {
                let whole = self.replicas && edge.number == 0;
                let slice = SliceId {
                    round: cx.round,
                    fragment,
                    shard: 0,
                    part: if whole {
                        Part::Aggregate
                    } else {
                        Part::Contribution
                    },
                    origin: cx.me(),
                    attempt: (cx.life << 6) | (slot as u8 & 63),
                };
                let store = match self.replicas {
                    true => StoreId::Replica(peer),
                    false => StoreId::Local,
                };
                let order = cx.order(Order::Encode {
                    store,
                    slice,
                    of: 1,
                });
                edge.half = Half::Encoding(order);
                self.encodings
                    .insert(order, (slice, peer, edge.session, share));
                mixing.encoding += 1;
            }
            if self.replicas && share > 0.0 && edge.awaited().is_none() {
                mixing.expected.insert(peer);
            }
        }
        mixing
    }
}

impl Exchange for Pairwise {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        self.began = cx.now;
        self.push_again(cx);
        let fragments: Vec<_> = cx.plan.fragment_ids().collect();
        self.mixings = fragments
            .into_iter()
            .map(|fragment| self.begin_fragment(cx, fragment))
            .collect();
        cx.await_partners(self.mixings.iter().flat_map(|m| m.expected.iter().copied()));
        self.advance(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        match signal {
            Signal::Arrived {
                from, slice, meta, ..
            } => {
                let result = self.arrived(cx, from, slice, meta);
                if result.is_err() {
                    cx.order(Order::Release { slice });
                }
                return result;
            }
            Signal::Pushed { to, slice, outcome } => self.pushed(cx, to, slice, outcome),
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => self.gone(cx, peer),
            Signal::Timeout => {
                cx.waited(Wait::Partners, true);
                let late: Vec<PeerId> = self
                    .mixings
                    .iter_mut()
                    .flat_map(|m| std::mem::take(&mut m.expected))
                    .collect();
                late.into_iter().for_each(|peer| cx.suspect(peer));
                self.advance(cx);
            }
            Signal::Message { .. } => {
                return Err(PeerError::Unexpected {
                    what: "an all-reduce message in a run of pairwise exchanges".to_owned(),
                });
            }
            Signal::Fetched { .. } | Signal::FetchFailed { .. } | Signal::Heard(_) => {}
        }
        Ok(())
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        all_ended(self.mixings.iter().map(|m| (m.fragment, m.ending())))
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let all = self.mixings.iter().all(|m| m.ending().is_some());
        (all && !self.mixings.is_empty()).then_some(Outcome::Ended)
    }

    fn finish(&mut self, cx: &mut Context) {
        self.mixings.clear();
        cx.timers.stop(Timer::Exchange);
        // Of peers that nobody knows any more nothing is left.
        let unknown = |cx: &Context, peer: &PeerId| cx.view.get(*peer).is_none();
        let mut ended = Vec::new();
        for ((_, peer), edge) in &mut self.edges {
            if edge.open && !edge.mixing && unknown(cx, peer) {
                ended.push(*peer);
                for slice in edge.end() {
                    cx.order(Order::Release { slice });
                }
            }
        }
        ended.into_iter().for_each(|peer| self.forget(cx, peer));
        self.edges
            .retain(|(_, peer), edge| edge.mixing || !unknown(cx, peer));
        if self.replicas {
            cx.follow_the_others(ROUNDS_AHEAD_MAX);
        }
    }

    fn standings(&self) -> Vec<Standing> {
        let open = self
            .edges
            .iter()
            .filter(|(_, edge)| edge.open && !edge.closing);
        let standings = open.map(|((fragment, peer), edge)| Standing {
            peer: *peer,
            fragment: *fragment,
            session: edge.session,
            exchanges: edge.number,
            weight: edge.mixed,
        });
        standings.collect()
    }

    fn waiting(&self) -> usize {
        self.edges.values().map(|edge| edge.theirs.len()).sum()
    }
}
