//! The fragments of one round, and this peer's slices that are being encoded for them.

use super::mix::FragmentMix;
use crate::core::context::Context;
use crate::{FragmentId, Order, OrderId, PeerId, SliceId, Time, Wait};
use std::collections::BTreeMap;

/// All fragments of one round. A rule keeps `F` of each of them, and notes `E` with every order to
/// encode.
pub(super) struct Mixes<F, E> {
    /// When the round's exchange began.
    began: Time,
    /// One for each fragment of the plan, in its order.
    fragments: Vec<FragmentMix<F>>,
    /// Orders to encode that are not answered, with what the rule notes of each. They may outlive
    /// their round.
    encodings: BTreeMap<OrderId, (SliceId, E)>,
}

impl<F, E> Default for Mixes<F, E> {
    fn default() -> Self {
        Self {
            began: Time::ZERO,
            fragments: Vec::new(),
            encodings: BTreeMap::new(),
        }
    }
}

impl<F: Default, E> Mixes<F, E> {
    /// A round begins.
    pub(super) fn begin(&mut self, cx: &Context) {
        self.began = cx.now;
        let ids = cx.plan.fragment_ids();
        self.fragments = ids.map(|id| FragmentMix::new(cx.round, id)).collect();
    }

    /// The round is over.
    pub(super) fn clear(&mut self) {
        self.fragments.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FragmentMix<F>> {
        self.fragments.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut FragmentMix<F>> {
        self.fragments.iter_mut()
    }

    pub(super) fn at(&mut self, index: usize) -> Option<&mut FragmentMix<F>> {
        self.fragments.get_mut(index)
    }

    /// A fragment of this round; none between two rounds.
    pub(super) fn get_mut(&mut self, fragment: FragmentId) -> Option<&mut FragmentMix<F>> {
        self.at(usize::from(fragment.0))
    }

    /// The fragment that this peer's slice was encoded for; `None` after its round.
    pub(super) fn of(&mut self, slice: SliceId) -> Option<&mut FragmentMix<F>> {
        let mix = self.get_mut(slice.fragment)?;
        (mix.round == slice.round).then_some(mix)
    }

    /// The fragment that waits for the answer to an order to combine.
    pub(super) fn combining(&self, order: OrderId) -> Option<usize> {
        let mut fragments = self.fragments.iter();
        fragments.position(|mix| mix.is_combining(order))
    }

    /// Orders the encoding of a slice that its fragment waits for.
    pub(super) fn encode(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        order: Order,
        note: E,
    ) -> OrderId {
        let id = cx.order(order);
        self.encodings.insert(id, (slice, note));
        if let Some(mix) = self.of(slice) {
            mix.encoding += 1;
        }
        id
    }

    /// An order to encode was answered: its fragment no longer waits for it.
    pub(super) fn take_encoding(&mut self, order: OrderId) -> Option<(SliceId, E)> {
        let taken = self.encodings.remove(&order)?;
        if let Some(mix) = self.of(taken.0) {
            mix.encoding = mix.encoding.saturating_sub(1);
        }
        Some(taken)
    }

    /// All peers that are waited for, by fragment.
    pub(super) fn expected(&self) -> impl Iterator<Item = PeerId> {
        self.fragments.iter().flat_map(|mix| &mix.expected).copied()
    }

    /// A partner's slice is here: notes how long it took if the partner was awaited.
    pub(super) fn came(&mut self, cx: &mut Context, fragment: FragmentId, from: PeerId) -> bool {
        let waited = cx.now.since(self.began);
        let mix = self.get_mut(fragment);
        let awaited = mix.is_some_and(|mix| mix.expected.remove(&from));
        if awaited {
            cx.deadlines.record(Wait::Partners, from, waited);
        }
        awaited
    }

    /// A peer is gone: no fragment waits for it.
    pub(super) fn gone(&mut self, peer: PeerId) {
        for mix in &mut self.fragments {
            mix.expected.remove(&peer);
        }
    }
}
