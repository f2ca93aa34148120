//! What an exchange does beyond the core: one implementation for each family of exchanges, in `mixers`.
//!
//! A [`Rule`] is how contributions to a shard are combined: their weighted mean, or a rule that compares them.

use super::codecs::Codecs;
use super::host::{Host, WorkResult};
use super::mix_core::MixCore;
use crate::aggregate::{Aggregator, Input};
use murmurate_protocol::{
    Combination, Done, FragmentId, PeerId, Piece, Round, SliceId, StoreId, WorkError,
};

/// Slices that are combined, each with its weight.
pub(super) type Inputs<'a> = &'a [(SliceId, f64)];

/// The sum of their weights.
pub(super) fn total(inputs: Inputs<'_>) -> f64 {
    inputs.iter().map(|(_, weight)| weight).sum()
}

/// What an order of the mix lane is performed with.
pub(super) struct Work<'a> {
    pub(super) core: &'a mut MixCore,
    pub(super) host: &'a dyn Host,
}

/// How a fragment's round ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    /// Set where this peer's contribution was not part of the round and stays on top of the anchor.
    pub(super) keep_local: bool,
}

/// A slice that is encoded from a store of the mixer.
pub(super) struct Stored<'a> {
    pub(super) store: StoreId,
    pub(super) slice: SliceId,
    /// Into how many shards the fragment is cut.
    pub(super) of: u16,
    pub(super) out: &'a mut Vec<u8>,
}

/// The arithmetic of one family of exchanges, with the stores that only it needs. It is chosen once
/// from the strategy and called once for each order.
pub(super) trait Mixer: Send {
    /// Performs one of the orders that combine slices: `Reduce`, `Mix`, `MixReplicas`,
    /// `ResetCenter`, `MoveCenter`.
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done>;

    /// Encodes what this peer passes on along a tree, by [`Source::Relayed`](murmurate_protocol::Source::Relayed).
    fn relay(&mut self, _: Work<'_>, _slice: SliceId, _: Inputs<'_>) -> WorkResult<Done> {
        Err(foreign("relay"))
    }

    /// Encodes a shard from any store but the local one.
    fn encode(&mut self, _core: &mut MixCore, Stored { store, .. }: Stored<'_>) -> WorkResult {
        let reason = format!("this exchange has no store {store:?} to encode from");
        Err(WorkError::Storage { reason })
    }

    /// Makes the round's result the anchor. By default it is what the round's mix has left there.
    fn apply(&mut self, work: Work<'_>, end: End, _decided: &[SliceId]) -> WorkResult {
        work.core.end_mixed(end.fragment, false);
        Ok(())
    }

    /// Makes the weighted mean of contributions the move of the anchor.
    fn gather(&mut self, _: Work<'_>, _end: End, _: Inputs<'_>) -> WorkResult {
        Err(foreign("gather"))
    }

    /// A round's cut is in the local buffer.
    fn cut(&mut self, _core: &mut MixCore) {}

    /// The round's exchange of a fragment was given up.
    fn void(&mut self, _core: &mut MixCore, _fragment: FragmentId) {}

    /// The anchor was replaced by another state: drops what belonged to the old one.
    fn start_over(&mut self, _core: &mut MixCore) {}

    /// Drops the copies of a neighbour and the vectors beside them.
    fn forget(&mut self, _core: &mut MixCore, _peer: PeerId) {}

    /// Number of f32 in copies that it and neighbours hold of each other.
    fn replicas(&self) -> usize {
        0
    }

    /// Number of f32 in its other stores.
    fn shards(&self) -> usize {
        0
    }
}

/// An order that another exchange gives.
pub(super) fn foreign(order: &str) -> WorkError {
    WorkError::Training {
        reason: format!("the order \"{order}\" belongs to another exchange"),
    }
}

/// There is no such thing to encode.
pub(super) fn missing(what: &str) -> WorkError {
    WorkError::Storage {
        reason: format!("there is no {what} to encode"),
    }
}

pub(super) struct Rule {
    /// `None` is the weighted mean, which needs no decoded contributions.
    robust: Option<Box<dyn Aggregator>>,
    /// Decoded contributions. The buffers are kept: each member's values of one shard, which is
    /// about one times the parameters for the shard of one owner.
    decoded: Vec<Vec<f32>>,
}

impl Rule {
    pub(super) const fn new(robust: Option<Box<dyn Aggregator>>) -> Self {
        Self {
            robust,
            decoded: Vec::new(),
        }
    }

    /// Number of f32 in the buffers.
    pub(super) fn len(&self) -> usize {
        self.decoded.iter().map(Vec::len).sum()
    }

    /// `acc = sum_k a_k decode(slice_k) / sum_k a_k`, or `acc = rule(decode(slice_1), ...)`, in the
    /// order given; `acc` becomes `len` long.
    pub(super) fn reduce(
        &mut self,
        codecs: &Codecs,
        acc: &mut Vec<f32>,
        len: usize,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> WorkResult {
        acc.resize(len, 0.0);
        if let Some(compared) = self.compare(codecs, None, acc, inputs, host) {
            return compared;
        }
        codecs.sum_all(acc, inputs, total(inputs), host, |_, run| run.fill(0.0))
    }

    /// `acc = rule(own, decode(slice_1), ...)`; `None` where the rule is the weighted mean. Every
    /// contribution passes the quarantine before a rule sees it.
    pub(super) fn compare(
        &mut self,
        codecs: &Codecs,
        own: Option<Input<'_>>,
        acc: &mut [f32],
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Option<WorkResult> {
        let rule = self.robust.as_mut()?;
        self.decoded.resize(inputs.len(), Vec::new());
        for (values, (slice, _)) in self.decoded.iter_mut().zip(inputs) {
            values.resize(acc.len(), 0.0);
            if let Err(error) = codecs.set_checked(values, *slice, host) {
                return Some(Err(error));
            }
        }
        let values = self.decoded.iter().map(Vec::as_slice);
        let weights = inputs.iter().map(|(_, weight)| *weight as f32);
        let all: Vec<Input<'_>> = own.into_iter().chain(values.zip(weights)).collect();
        rule.aggregate(&all, acc);
        Some(Ok(()))
    }
}
