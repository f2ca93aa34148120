//! The mix lane: owns anchor, residual, outer optimizer and shards; performs every order that is
//! not training. Never touches the trainer.

use super::center::Versions;
use super::codec_state::CodecState;
use super::eager::Eager;
use super::frame::MixEnd;
use super::gathered::Common;
use super::host::Host;
use super::late::Late;
use super::replicas::Replicas;
use super::robust::Robust;
use super::squeezed::Squeezed;
use super::{CenterRule, Memory, Parts};
use crate::TensorSpec;
use crate::compress::{Codec, F32, Reduction};
use crate::correct::Companion;
use crate::inner::InnerOptimizer;
use crate::outer::OuterOptimizer;
use murmurate_protocol::{
    Contribution, Digest, Done, ExchangeKind, FragmentId, Order, Part, PlanHash, Round, SliceId,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the local buffer holds of one fragment, and what the trainer is to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// Nothing of use; the trainer goes on with what it has.
    Untouched,
    /// This round's contribution.
    Contribution,
    /// Nothing of use; the trainer takes the anchor over.
    TakeAnchor,
    /// A delta that the trainer takes over on top of the anchor.
    KeepDelta,
    /// By how much the trainer moves what it has trained meanwhile.
    Shift,
    /// Nothing of use; the trainer mixes the anchor into what it has trained meanwhile.
    Blend,
}

/// Owns all parameters but the trainer's own.
pub struct MixLane {
    pub(super) exchange: ExchangeKind,
    pub(super) contribution: Contribution,
    pub(super) plan: PlanHash,
    pub(super) fragments: Vec<Range<usize>>,
    /// What comes behind the parameters in anchor, local buffer and fragments.
    pub(super) companion: Companion,
    /// The parameters' length: there the companion begins.
    pub(super) parameters: usize,
    pub(super) anchor: Vec<f32>,
    pub(super) residual: Option<Vec<f32>>,
    /// Only where neighbours have replicas of each other.
    pub(super) replicas: Option<Replicas>,
    /// `None` is the weighted mean.
    pub(super) robust: Option<Robust>,
    pub(super) outer: Box<dyn OuterOptimizer>,
    /// The shared inner optimizer of methods that exchange gradients.
    pub(super) inner: Option<Box<dyn InnerOptimizer>>,
    pub(super) local: Vec<Local>,
    /// How a late result meets what was trained meanwhile; `None` where results come between rounds.
    pub(super) late: Option<Late>,
    /// The own part of the outer step, where it is put in force at once.
    pub(super) eager: Option<Eager>,
    /// Whether parameters are more than the anchor between rounds.
    pub(super) goes_on: bool,
    /// Whether the anchor already holds this round's mix (gossip).
    pub(super) mixed: Vec<bool>,
    /// Whether this round's mix of a fragment is in the anchor (where anchors travel beside the parameters).
    pub(super) landed: Vec<bool>,
    pub(super) codec: Box<dyn Codec>,
    pub(super) codec_state: CodecState,
    /// What all members keep in common of gathered contributions; only of codecs that keep anything.
    pub(super) common: Option<Common>,
    pub(super) aggregate_codec: Box<dyn Codec>,
    /// What reductions of own shards left out; only of codecs that feed it back.
    pub(super) squeezed: Option<Squeezed>,
    pub(super) shards: BTreeMap<(FragmentId, u16), Vec<f32>>,
    /// Own shards of a parameter server's center.
    pub(super) centers: BTreeMap<(FragmentId, u16), Vec<f32>>,
    pub(super) center: CenterRule,
    /// What those shards were, for late gradients.
    pub(super) versions: BTreeMap<(FragmentId, u16), Versions>,
    /// Room of a reduction that is no longer needed.
    pub(super) spare: Vec<f32>,
    /// Own contributions encoded this round, each with its fragment's shard count.
    pub(super) encoded: BTreeMap<SliceId, u16>,
    /// The last round in which the shared inner optimizer took its step.
    pub(super) inner_round: Option<Round>,
    pub(super) buffer: Option<Vec<f32>>,
    /// Fragments of this round's gradient that have come and are not encoded yet.
    pub(super) pieces: Vec<(FragmentId, Vec<f32>)>,
    pub(super) frames: MixEnd,
}

impl MixLane {
    pub(super) fn new(
        parts: Parts,
        anchor: Vec<f32>,
        companion: usize,
        tensors: Vec<TensorSpec>,
        frames: MixEnd,
    ) -> Self {
        let (len, mut codec) = (anchor.len(), parts.codec);
        let properties = codec.properties();
        let tensors = if properties.matrices {
            tensors
        } else {
            Vec::new()
        };
        let fragments = parts.fragments;
        let flows = parts.companion == Companion::Flows;
        let beside = fragments
            .iter()
            .position(|range| flows && range.start >= len - companion);
        Self {
            companion: parts.companion,
            parameters: len - companion,
            exchange: parts.exchange,
            contribution: parts.contribution,
            plan: parts.plan,
            residual: parts.error_feedback.then(|| vec![0.0; len]),
            replicas: parts
                .replicas
                .map(|(rate, keeps)| Replicas::new(rate, keeps, beside)),
            robust: parts.rule.map(Robust::new),
            outer: parts.outer,
            inner: parts.inner,
            local: vec![Local::TakeAnchor; fragments.len()],
            late: parts.late,
            eager: parts
                .eager
                .map(|outer| Eager::new(outer, len - companion, fragments.len())),
            goes_on: parts.goes_on,
            mixed: vec![false; fragments.len()],
            landed: vec![false; fragments.len()],
            codec_state: CodecState::new(properties.planes, len, tensors),
            aggregate_codec: match parts.exchange {
                // The center itself travels, and not a move of it; what a session begins with goes whole.
                ExchangeKind::Center(_) | ExchangeKind::Replicas => Box::new(F32),
                _ => codec.aggregate(),
            },
            common: codec.gathering().map(|_| Common::new(fragments.len())),
            squeezed: (properties.reduction == Reduction::Squeezed).then(Squeezed::default),
            codec,
            buffer: Some(vec![0.0; len]),
            shards: BTreeMap::new(),
            centers: BTreeMap::new(),
            center: parts.center,
            versions: BTreeMap::new(),
            spare: Vec::new(),
            encoded: BTreeMap::new(),
            inner_round: None,
            pieces: Vec::new(),
            frames,
            fragments,
            anchor,
        }
    }

    /// Performs an order of this lane. `Train` and `Evaluate` come here too, first: the lane hands
    /// the train lane its buffer. `None` where nothing is answered.
    pub fn perform(&mut self, order: &Order, host: &dyn Host) -> Option<Done> {
        let done = match order {
            Order::Train { .. } | Order::Evaluate { .. } => {
                self.hand_over(order);
                return None;
            }
            Order::Encode { store, slice, of } => self.encode(*store, *slice, *of, host),
            Order::Reduce {
                fragment,
                shard,
                of,
                inputs,
            } => self.reduce(*fragment, *shard, *of, inputs, host),
            Order::Mix {
                fragment,
                keep,
                inputs,
                ..
            } => self.mix(*fragment, *keep, inputs, host),
            Order::MixReplicas {
                fragment, inputs, ..
            } => self.mix_replicas(*fragment, inputs, host),
            Order::ResetCenter {
                fragment,
                shard,
                of,
                copy,
            } => self.seed(*fragment, *shard, *of, *copy, host),
            Order::Apply {
                round,
                fragment,
                aggregates,
                keep_local,
            } => self.apply(*round, *fragment, aggregates, *keep_local, host),
            Order::MoveCenter {
                fragment,
                shard,
                of,
                inputs,
            } => self.arrive(*fragment, *shard, *of, inputs, host),
            Order::Gather {
                round,
                fragment,
                inputs,
                keep_local,
            } => self.gather(*round, *fragment, inputs, *keep_local, host),
            Order::EncodeRelayed { slice, inputs } => self.relay(*slice, inputs, host),
            Order::Void { fragment, .. } => Ok(self.void(*fragment, host)),
            Order::Settle { slice, outcome } => {
                self.settle(*slice, *outcome, host);
                return None;
            }
            Order::Release { slice } => {
                host.remove(slice);
                return None;
            }
            Order::ForgetReplicas { peer } => {
                if let Some(replicas) = &mut self.replicas {
                    replicas.forget(*peer);
                }
                self.sum_flows();
                return None;
            }
            Order::Pin { round } => Ok(self.pin(*round, host)),
            Order::Unpin { round } => {
                host.unpin(*round);
                return None;
            }
            Order::Load { state } => self.load_state(state, host),
            Order::Save { .. } => return None,
        };
        Some(done.unwrap_or_else(Done::Failed))
    }

    /// Hash of every fragment's anchor.
    pub fn digests(&self) -> Vec<Digest> {
        let ids = (0..self.fragments.len()).map(|f| FragmentId(f as u16));
        ids.map(|f| self.digest(f)).collect()
    }

    /// The anchor: the last parameters agreed on, or, in gossip, those that opened the round.
    pub fn anchor(&self) -> &[f32] {
        &self.anchor[..self.parameters]
    }

    /// What it keeps, by store.
    pub fn memory(&self) -> Memory {
        let values = |len: usize| (len * size_of::<f32>()) as u64;
        let inner = self.inner.as_ref().map_or(0, |inner| inner.state().len());
        let eager = self.eager.as_ref().map_or(0, Eager::len);
        let decoded = self.robust.as_ref().map_or(0, Robust::len);
        let squeezed = self.squeezed.as_ref().map_or(0, Squeezed::len);
        let reduced = self.shards.values().map(Vec::len).sum::<usize>();
        let versions = self.versions.values().flatten();
        let centers = self.centers.values().chain(versions);
        let centers = centers.map(Vec::len).sum::<usize>();
        Memory {
            anchor: values(self.anchor.len()),
            local: values(self.anchor.len()),
            residual: values(self.residual.as_ref().map_or(0, Vec::len)),
            codec: values(self.codec_state.len() + self.common.as_ref().map_or(0, Common::len)),
            replicas: values(self.replicas.as_ref().map_or(0, Replicas::len)),
            outer: values(self.outer.state().len() + inner + eager),
            shards: values(decoded + reduced + centers + squeezed + self.spare.len()),
        }
    }

    /// A reduction is encoded: of an all-reduce everybody, its owner too, goes on with those bytes, and of
    /// a partial sum the next member. The next reduction takes its room: kept, the reductions of a round
    /// would be another model in as many parts as there are owners.
    pub(super) fn reduction_encoded(&mut self, slice: &SliceId) {
        if slice.part == Part::Partial || self.exchange.agrees() {
            let reduction = self.shards.remove(&(slice.fragment, slice.shard));
            self.spare = reduction.unwrap_or_default();
        }
    }

    pub(super) fn digest(&self, fragment: FragmentId) -> Digest {
        Digest::of(bytemuck::cast_slice(&self.anchor[self.range(fragment)]))
    }

    pub(super) fn range(&self, fragment: FragmentId) -> Range<usize> {
        self.fragments[usize::from(fragment.0)].clone()
    }

    /// Whether a fragment is of the companion.
    pub(super) fn is_companion(&self, fragment: FragmentId) -> bool {
        self.range(fragment).start >= self.parameters
    }

    /// Where a shard lies: `of` pieces whose lengths differ by at most one.
    pub(super) fn shard_range(&self, fragment: FragmentId, shard: u16, of: u16) -> Range<usize> {
        let fragment = self.range(fragment);
        let (len, of) = (fragment.len(), usize::from(of.max(1)));
        let at = |i: usize| fragment.start + len * i.min(of) / of;
        at(usize::from(shard))..at(usize::from(shard) + 1)
    }

    /// The local buffer; a fresh one when it is lent out.
    pub(super) fn take_local(&mut self) -> Vec<f32> {
        self.collect();
        self.buffer
            .take()
            .unwrap_or_else(|| vec![0.0; self.anchor.len()])
    }

    pub(super) fn put_local(&mut self, values: Vec<f32>) {
        self.buffer = Some(values);
    }
}
