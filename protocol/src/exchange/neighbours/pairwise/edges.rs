//! All sessions of a peer: its halves are encoded, pushed and pushed again, those of the others
//! arrive, and sessions end.

use super::edge::{Edge, Half, Meaning, Sent, Standing, Waiting};
use crate::core::context::Context;
use crate::exchange::PushEnd;
use crate::exchange::neighbours::rule::Encoded;
use crate::exchange::neighbours::slices::{is_linked, release};
use crate::limits::{HISTORY_ROUNDS_MAX, PUSHES_AT_ONCE_MAX};
use crate::sorted::SortedMap;
use crate::{Event, FragmentId, Order, PeerId, PushOutcome, SliceMeta, Tag, Unneeded};

type Key = (FragmentId, PeerId);

/// A half that is being encoded.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange::neighbours) struct Begun {
    pub(super) peer: PeerId,
    pub(super) session: u32,
    pub(super) share: f64,
}

/// The edges to all neighbours, fragment by fragment.
#[derive(Debug)]
pub(super) struct Edges {
    /// Set where slices are differences to replicas.
    pub(super) replicas: bool,
    all: SortedMap<Key, Edge>,
}

impl Edges {
    pub(super) const fn new(replicas: bool) -> Self {
        Self {
            replicas,
            all: SortedMap::new(),
        }
    }

    pub(super) fn get(&self, fragment: FragmentId, peer: PeerId) -> Option<&Edge> {
        self.all.get(&(fragment, peer))
    }

    pub(super) fn entry(&mut self, fragment: FragmentId, peer: PeerId) -> &mut Edge {
        self.all.entry((fragment, peer)).or_default()
    }

    /// The edges of one fragment, in `PeerId` order.
    pub(super) fn of(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let of_it = self.all.iter().filter(move |((of, _), _)| *of == fragment);
        of_it.map(|((_, id), edge)| (*id, edge))
    }

    pub(super) fn of_mut(
        &mut self,
        fragment: FragmentId,
    ) -> impl Iterator<Item = (PeerId, &mut Edge)> {
        let all = self.all.iter_mut();
        let of_it = all.filter(move |((of, _), _)| *of == fragment);
        of_it.map(|((_, id), edge)| (*id, edge))
    }

    /// Pushes halves again that may be lost. Ends a session whose half is lost for long.
    pub(super) fn push_again(&mut self, cx: &mut Context) {
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
    pub(super) fn restart(&mut self, cx: &mut Context, key: Key) {
        let Some(edge) = self.all.get_mut(&key) else {
            return;
        };
        report(cx, key.1, edge);
        release(cx, edge.end());
    }

    /// Takes a half of the other end in; true where it waits for its exchange now.
    pub(super) fn take(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        session: u32,
        waiting: Waiting,
    ) -> bool {
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
    pub(super) fn encoded(&mut self, cx: &mut Context, encoded: &Encoded<'_, Begun>) {
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

    pub(super) fn pushed(&mut self, cx: &mut Context, push: PushEnd) {
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
    pub(super) fn mixed(&mut self, cx: &mut Context, fragment: FragmentId) {
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
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
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
    pub(super) fn sweep(&mut self, cx: &mut Context) {
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

    pub(super) fn waiting(&self) -> usize {
        self.all.values().map(|edge| edge.theirs.len()).sum()
    }

    /// How far this peer is on every edge whose session is open.
    pub(super) fn standings(&self) -> Vec<Standing> {
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
