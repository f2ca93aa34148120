//! The fragments of one round, the states of each, and this peer's slices that are being encoded for
//! them.

use crate::core::context::Context;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Combination, Ending, Event, FragmentId, Order, OrderId, PeerId, Piece, Round, SliceId, Source,
    Time, Wait,
};

/// What to combine into a fragment of this peer's parameters.
#[derive(Debug)]
pub(super) struct Mixture {
    /// The order to do so; none where there is nothing to combine.
    pub(super) order: Option<Order>,
    /// How many neighbours' slices it takes, for the report of the mix.
    pub(super) neighbours: u32,
    /// The weight to report: of the push-sum afterwards, or how many peers are in the mean.
    pub(super) weight: f64,
}

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
enum MixStage {
    /// Own slices are being encoded, or partners' slices awaited.
    Collecting,
    /// The order to combine is under way.
    Combining(OrderId),
    /// Mixed, or as training left it.
    Ended(Ending),
}

/// One fragment in one round.
///
/// ```text
/// Collecting --(all encoded and arrived)------> Combining --> Ended(Apply)
///     |                                           |  ^
///     |                                           +--+  without a bad slice
///     +--------(nothing to combine)--------------------> Ended(Apply)
///     +--------(own slice not encoded)--> Ended(Void) <-- any other failure to combine
/// ```
///
/// `Apply` comes without slices: combining has already moved the parameters, and no anchor waits
/// for them.
#[derive(Debug)]
pub(super) struct FragmentMix<P> {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    /// Own slices that are being encoded.
    pub(super) encoding: usize,
    /// Set once one of them could not be encoded.
    pub(super) failed: bool,
    /// Partners whose slice is awaited.
    pub(super) expected: SortedSet<PeerId>,
    /// What the rule keeps of this fragment and round.
    pub(super) own: P,
    stage: MixStage,
    /// What the last combination took: slices of neighbours, and the weight to report.
    taken: (u32, f64),
}

impl<P: Default> FragmentMix<P> {
    pub(super) fn new(round: Round, fragment: FragmentId) -> Self {
        Self {
            round,
            fragment,
            encoding: 0,
            failed: false,
            expected: SortedSet::new(),
            own: P::default(),
            stage: MixStage::Collecting,
            taken: (0, 0.0),
        }
    }
}

impl<P> FragmentMix<P> {
    /// Slices may still be pushed and taken in for this round.
    pub(super) fn is_collecting(&self) -> bool {
        self.stage == MixStage::Collecting
    }

    /// Nothing is left to wait for.
    pub(super) fn is_ready(&self) -> bool {
        self.is_collecting() && self.encoding == 0 && self.expected.is_empty()
    }

    fn is_combining(&self, order: OrderId) -> bool {
        self.stage == MixStage::Combining(order)
    }

    /// The weighted mean of this peer's parameters, with weight `keep`, and of slices.
    pub(super) fn mean(&self, keep: f64, inputs: Vec<(SliceId, f64)>) -> Option<Order> {
        (!inputs.is_empty()).then_some(Order::Combine {
            piece: Piece::whole(self.fragment),
            how: Combination::Mix {
                round: self.round,
                keep,
                inputs,
            },
        })
    }

    /// Neighbours' copies that slices move, mixed into this peer's parameters.
    pub(super) fn replicas(&self, inputs: Vec<(SliceId, f64)>) -> Option<Order> {
        (!inputs.is_empty()).then_some(Order::Combine {
            piece: Piece::whole(self.fragment),
            how: Combination::MixReplicas {
                round: self.round,
                inputs,
            },
        })
    }

    /// Orders the mixture; with nothing to combine the fragment is mixed at once.
    pub(super) fn combine(&mut self, cx: &mut Context, mixture: Mixture) {
        self.taken = (mixture.neighbours, mixture.weight);
        match mixture.order {
            Some(order) => self.stage = MixStage::Combining(cx.order(order)),
            None => self.end(cx),
        }
    }

    pub(super) fn end(&mut self, cx: &mut Context) {
        let (inputs, weight) = self.taken;
        cx.emit(Event::Mixed {
            round: self.round,
            inputs,
            weight,
        });
        self.stage = MixStage::Ended(Ending::Apply(Vec::new()));
    }

    /// The parameters stay as training left them.
    pub(super) fn void(&mut self) {
        self.stage = MixStage::Ended(Ending::Void);
    }

    pub(super) fn ending(&self) -> Option<(FragmentId, Ending)> {
        match &self.stage {
            MixStage::Ended(ending) => Some((self.fragment, ending.clone())),
            MixStage::Collecting | MixStage::Combining(_) => None,
        }
    }
}

/// A round's fragments. A rule keeps `F` of each, and notes `E` with orders to encode.
pub(super) struct Mixes<F, E> {
    /// When the round's exchange began.
    began: Time,
    /// One for each fragment of the plan, in its order.
    fragments: Vec<FragmentMix<F>>,
    /// Unanswered orders to encode, with the rule's notes. They may outlive their round.
    encodings: SortedMap<OrderId, (SliceId, E)>,
}

impl<F, E> Default for Mixes<F, E> {
    fn default() -> Self {
        Self {
            began: Time::ZERO,
            fragments: Vec::new(),
            encodings: SortedMap::new(),
        }
    }
}

impl<F: Default, E> Mixes<F, E> {
    pub(super) fn begin(&mut self, cx: &Context) {
        self.began = cx.now;
        let ids = cx.plan.fragment_ids();
        self.fragments = ids.map(|id| FragmentMix::new(cx.round, id)).collect();
    }

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

    pub(super) fn combining(&self, order: OrderId) -> Option<usize> {
        let mut fragments = self.fragments.iter();
        fragments.position(|mix| mix.is_combining(order))
    }

    /// Orders the encoding of a whole fragment, which the fragment waits for.
    pub(super) fn encode(
        &mut self,
        cx: &mut Context,
        from: Source,
        slice: SliceId,
        note: E,
    ) -> OrderId {
        let id = cx.order(Order::Encode { slice, of: 1, from });
        self.encodings.insert(id, (slice, note));
        if let Some(mix) = self.of(slice) {
            mix.encoding += 1;
        }
        id
    }

    /// An order to encode was answered: its fragment no longer waits for it.
    pub(super) fn take_encoding(&mut self, order: OrderId) -> Option<(SliceId, E)> {
        let taken = self.encodings.remove(&order)?;
        // The round may be over since, and its next one waits for other slices.
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
        // Slices that come unasked, or again, say nothing of how long a partner takes.
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
