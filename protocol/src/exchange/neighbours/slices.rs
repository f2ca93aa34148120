//! Slices between neighbours: their names, what each must be, and which pushes of them are under way.

use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, broke, forbid, foreign_tag};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Attempt, Checked, FragmentId, Part, PeerError, PeerId, SliceId, SliceMeta, Tag};

/// The bits of an attempt that tell slices of one round apart; the others tell lives apart.
const SLOT_BITS: u32 = 6;

pub(super) fn own(cx: &Context, fragment: FragmentId) -> SliceId {
    SliceId {
        round: cx.round,
        fragment,
        shard: 0,
        part: Part::Contribution,
        origin: cx.me(),
        attempt: Attempt(cx.life()),
    }
}

/// One of several slices of a fragment that this peer encodes in a round, one for each neighbour.
pub(super) fn own_of_slot(cx: &Context, fragment: FragmentId, slot: usize) -> SliceId {
    // A slot too large must not change the bits that tell lives apart.
    let slot = slot as u8 & ((1 << SLOT_BITS) - 1);
    SliceId {
        attempt: Attempt((cx.life() << SLOT_BITS) | slot),
        ..own(cx, fragment)
    }
}

/// Checks a slice of any neighbour: its own, a whole fragment, and one of the plan.
pub(super) fn check(cx: &Context, arrived: &Arrived) -> Checked {
    let slice = arrived.slice;
    // Neighbours hand nothing on, and a weight belongs to the peer that sent it.
    forbid(
        slice.origin != arrived.from,
        "a neighbour's slice that its sender did not make",
    )?;
    if slice.shard != 0 || arrived.meta.of != 1 {
        return broke("a neighbour's slice that is not a whole fragment");
    }
    if cx.plan.fragment(slice.fragment).is_none() {
        return broke("a slice of a fragment that the plan does not have");
    }
    Ok(())
}

/// What a slice of an exchange by halves says: session, number and the share that it offers. `exchange` names
/// the exchange to a sender whose slice is of another one.
pub(super) fn half_of(tag: Tag, exchange: &'static str) -> Result<(u32, u32, f64), PeerError> {
    let Tag::Half {
        session,
        exchange: number,
        share,
    } = tag
    else {
        return Err(foreign_tag(tag, exchange));
    };
    if !(share.is_finite() && (0.0..=1.0).contains(&share)) {
        return broke("the share that a slice offers must be from 0 to 1");
    }
    Ok((session, number, share))
}

/// Set while a peer has a link and may take part in rounds.
pub(super) fn is_linked(cx: &Context, peer: PeerId) -> bool {
    cx.view.greeted().any(|(id, _)| id == peer)
}

pub(super) fn release(cx: &mut Context, slices: impl IntoIterator<Item = SliceId>) {
    for slice in slices {
        cx.release(slice);
    }
}

/// A push under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push<N> {
    pub(super) meta: SliceMeta,
    /// Number of pushes of the same bytes before this one.
    pub(super) again: u8,
    pub(super) note: N,
}

/// The ledger of pushes: which peers have not acknowledged which slice of this peer, and which slices
/// are released as soon as nothing needs them.
#[derive(Debug)]
pub(super) struct SliceLedger<N> {
    pushes: SortedMap<(SliceId, PeerId), Push<N>>,
    /// Slices that only their pushes need.
    spare: SortedSet<SliceId>,
}

impl<N> Default for SliceLedger<N> {
    fn default() -> Self {
        Self {
            pushes: SortedMap::new(),
            spare: SortedSet::new(),
        }
    }
}

impl<N> SliceLedger<N> {
    pub(super) fn push(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        note: N,
    ) {
        let push = Push {
            meta,
            again: 0,
            note,
        };
        self.pushes.insert((slice, to), push);
        cx.push(to, slice, meta, 0);
    }

    /// Pushes once more what did not arrive.
    pub(super) fn push_again(&mut self, cx: &mut Context, end: &PushEnd, mut push: Push<N>) {
        cx.push(end.to, end.slice, push.meta, 0);
        push.again += 1;
        self.pushes.insert((end.slice, end.to), push);
    }

    /// A push ended. Its slice stays until [`SliceLedger::release`].
    pub(super) fn ended(&mut self, end: &PushEnd) -> Option<Push<N>> {
        self.pushes.remove(&(end.slice, end.to))
    }

    /// Pushes under way to a peer.
    pub(super) fn to(&self, peer: PeerId) -> impl Iterator<Item = (SliceId, &N)> {
        let to_it = self.pushes.iter().filter(move |((_, to), _)| *to == peer);
        to_it.map(|((slice, _), push)| (*slice, &push.note))
    }

    /// From now on only pushes need this slice.
    pub(super) fn spare(&mut self, slice: SliceId) {
        self.spare.insert(slice);
    }

    /// Releases spare slices that neither a push nor the rule needs, in order.
    pub(super) fn release(&mut self, cx: &mut Context, reads: impl Fn(&SliceId) -> bool) {
        let pushes = &self.pushes;
        // The least key of a slice: the first push from there on tells without a walk over all.
        let first = PeerId::from_bytes([0; 32]);
        let pushed = |slice: &SliceId| {
            let mut from = pushes.range((*slice, first)..);
            from.next().is_some_and(|((next, _), _)| next == slice)
        };
        let free = |slice: &SliceId| !pushed(slice) && !reads(slice);
        release(cx, self.spare.extract_if(.., free));
    }
}
