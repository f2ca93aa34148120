//! The states of one fragment in one round.

use super::mixture::Mixture;
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::{Event, FragmentId, Order, OrderId, PeerId, Round, SliceId};
use std::collections::BTreeSet;

/// Where a fragment is.
#[derive(Clone, Debug, PartialEq)]
enum MixStage {
    /// Own slices are being encoded, or partners' slices awaited.
    Collecting,
    /// What is here is being combined.
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
    /// Whether one of them could not be encoded.
    pub(super) failed: bool,
    /// Partners whose slice is awaited.
    pub(super) expected: BTreeSet<PeerId>,
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
            expected: BTreeSet::new(),
            own: P::default(),
            stage: MixStage::Collecting,
            taken: (0, 0.0),
        }
    }
}

impl<P> FragmentMix<P> {
    /// Whether slices may still be pushed and taken in for this round.
    pub(super) fn is_collecting(&self) -> bool {
        self.stage == MixStage::Collecting
    }

    /// Whether nothing is left to wait for.
    pub(super) fn is_ready(&self) -> bool {
        self.is_collecting() && self.encoding == 0 && self.expected.is_empty()
    }

    /// Whether this is the order to combine that is under way.
    pub(super) fn is_combining(&self, order: OrderId) -> bool {
        self.stage == MixStage::Combining(order)
    }

    /// The weighted mean of this peer's parameters, with weight `keep`, and of slices.
    pub(super) fn mean(&self, keep: f64, inputs: Vec<(SliceId, f64)>) -> Option<Order> {
        (!inputs.is_empty()).then_some(Order::Mix {
            round: self.round,
            fragment: self.fragment,
            keep,
            inputs,
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

    /// The parameters are mixed.
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

    /// How it ended, once it has.
    pub(super) fn ending(&self) -> Option<(FragmentId, Ending)> {
        match &self.stage {
            MixStage::Ended(ending) => Some((self.fragment, ending.clone())),
            MixStage::Collecting | MixStage::Combining(_) => None,
        }
    }
}
