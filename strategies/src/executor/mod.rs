//! The Executor: performs every work order of a peer. The only implementation of the arithmetic;
//! the daemon runs its two lanes on threads, the simulator calls it inline.
//!
//! ```text
//!            Train, Evaluate                     Encode, Combine, Apply, Settle, Pin, Load
//!   TrainLane (trainer, inner optimizer)   MixLane (anchor, residual, outer optimizer, shards)
//!            |<------ frame: parameters to take over --------|
//!            |------- frame: this round's cut -------------->|
//! ```
//!
//! One buffer travels between the lanes, so that neither waits for the other: the mix lane lends
//! it with the parameters to take over when training begins and gets it back with the cut.

mod apply;
mod center;
mod codec_state;
mod combine;
mod eager;
mod encode;
mod frame;
mod gathered;
mod gradients;
mod handover;
mod host;
mod late;
mod layered;
mod mix_lane;
mod relay;
mod replicas;
mod robust;
mod squeezed;
mod train_lane;
mod transfer;

pub use center::CenterRule;
pub use host::{Host, StateStore, Stopwatch, manifest_of};
pub use late::{Blend, Late};
pub use mix_lane::MixLane;
pub use replicas::Keeps;
pub use train_lane::{TrainLane, TrainSignals};

use crate::aggregate::Aggregator;
use crate::compress::Codec;
use crate::correct::{Companion, Correction};
use crate::grid::Strategy;
use crate::inner::InnerOptimizer;
use crate::outer::OuterOptimizer;
use crate::state::{StateError, StateSink, StateSource};
use crate::trainer::Trainer;
use murmurate_protocol::{
    Contribution, Digest, Done, ExchangeKind, FragmentId, Layers, Order, Plan, PlanHash,
};
use std::ops::Range;

/// What an Executor is made of, beside its trainer.
pub struct Parts {
    /// The plan's hash: states of other plans are refused.
    pub plan: PlanHash,
    /// Who exchanges with whom.
    pub exchange: ExchangeKind,
    /// What a contribution is.
    pub contribution: Contribution,
    /// What travels beside the parameters, after them.
    pub companion: Companion,
    /// Where the fragments lie in the flat parameters and their companion.
    pub fragments: Vec<Range<usize>>,
    /// Encodes contributions.
    pub codec: Box<dyn Codec>,
    /// Whether what the codec leaves out is kept for the next round.
    pub error_feedback: bool,
    /// How a center takes arrivals in.
    pub center: CenterRule,
    /// How far neighbours with replicas of each other move towards each other, and what they keep.
    pub replicas: Option<(f32, Keeps)>,
    /// How late results meet what was trained meanwhile; `None` where they come between rounds.
    pub late: Option<Late>,
    /// Makes the own part of the outer step, where the trainer goes on from that before a late result.
    pub eager: Option<Box<dyn OuterOptimizer>>,
    /// When the fragments of a gradient leave.
    pub layers: Layers,
    /// Whether parameters are more than the anchor between rounds.
    pub goes_on: bool,
    /// How contributions become one; `None` is the weighted mean.
    pub rule: Option<Box<dyn Aggregator>>,
    /// Moves the anchor by an aggregated delta.
    pub outer: Box<dyn OuterOptimizer>,
    /// Moves the anchor by an aggregated gradient; only for methods that exchange gradients.
    pub inner: Option<Box<dyn InnerOptimizer>>,
    /// Corrects the gradients of the trainer's inner steps.
    pub correction: Option<Box<dyn Correction>>,
}

impl Parts {
    /// What a strategy's Executor is made of, for `len` flat parameters.
    pub fn new(strategy: &Strategy, plan: &Plan, len: usize) -> Self {
        let gradients = strategy.contribution() == Contribution::Gradient;
        let keeps = |corrects: bool| match (corrects, strategy.error_feedback()) {
            (true, _) => Keeps::Moves,
            (false, true) => Keeps::Residual,
            (false, false) => Keeps::Replicas,
        };
        Self {
            plan: plan.hash(),
            exchange: strategy.exchange(),
            contribution: strategy.contribution(),
            companion: strategy.companion(),
            fragments: plan.ranges(),
            codec: strategy.codec(),
            center: strategy.center(),
            // Between neighbours what is left out is kept for each by itself.
            error_feedback: strategy.error_feedback() && strategy.replicas().is_none(),
            replicas: strategy
                .replicas()
                .map(|(rate, corrects)| (rate, keeps(corrects))),
            late: Late::new(strategy.blend(), plan),
            eager: (strategy.blend() == Blend::Eager).then(|| strategy.outer(len)),
            layers: plan.overlap.layers,
            goes_on: plan.overlap.stagger > 1 || plan.overlap.late_steps > 0,
            rule: strategy.aggregation().build(),
            outer: strategy.outer(len),
            inner: gradients.then(|| strategy.inner(len)),
            correction: strategy.correction(len),
        }
    }
}

/// Bytes that the mix lane keeps, by store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last parameters agreed on.
    pub anchor: u64,
    /// The buffer that travels between the lanes.
    pub local: u64,
    /// What error feedback keeps.
    pub residual: u64,
    /// What the codec itself keeps.
    pub codec: u64,
    /// Outer and shared inner optimizer.
    pub outer: u64,
    /// What neighbours and this peer know of each other.
    pub replicas: u64,
    /// Reductions of own shards, own shards of a center, and what robust rules decode for them.
    pub shards: u64,
}

impl Memory {
    /// All of it.
    pub const fn total(&self) -> u64 {
        let kept = self.residual + self.codec + self.outer + self.replicas;
        self.anchor + self.local + kept + self.shards
    }
}

/// Both lanes of one peer.
pub struct Executor {
    train: TrainLane,
    mix: MixLane,
}

impl Executor {
    /// Takes the trainer's parameters as the first anchor.
    ///
    /// # Panics
    /// When the fragments do not cover the trainer's layout and its companion in order.
    pub fn new(
        mut trainer: Box<dyn Trainer>,
        mut parts: Parts,
        stopwatch: Box<dyn Stopwatch>,
    ) -> Self {
        let len = trainer.layout().len();
        let companion = parts.companion.len(len);
        let ends = parts
            .fragments
            .iter()
            .try_fold(0, |at, r| (r.start == at).then_some(r.end));
        assert_eq!(
            ends,
            Some(len + companion),
            "the fragments cover the parameters in order"
        );
        let tensors = trainer.layout().tensors().to_vec();
        let mut anchor = vec![0.0; len + companion];
        trainer.visit(0..len, &mut |offset, piece| {
            anchor[offset..offset + piece.len()].copy_from_slice(piece);
        });
        if let Companion::Anchors { .. } = parts.companion {
            anchor.copy_within(..len, len);
        }
        let (train_end, mix_end) = frame::pair(parts.fragments.len());
        let in_pieces = parts.layers != Layers::Together;
        let pieces = in_pieces.then(|| parts.fragments.clone());
        let correction = parts.correction.take();
        let train = TrainLane::new(
            trainer,
            parts.contribution,
            (correction, companion),
            stopwatch,
            train_end,
        )
        .going_on(parts.goes_on)
        .in_pieces(pieces);
        Self {
            train,
            mix: MixLane::new(parts, anchor, companion, tensors, mix_end),
        }
    }

    /// Performs an order, inline. `None` where nothing is answered: `Settle`, `Release`, `Unpin`, `Forget`,
    /// and `Save`, which the host performs with [`Executor::save`].
    pub fn perform(&mut self, order: &Order, host: &dyn Host) -> Option<Done> {
        self.perform_cutting(order, host, &mut |_, _| {})
    }

    /// As [`Executor::perform`]; `on_cut(fragment, samples of the batch)` is called for each fragment that
    /// leaves under the backward pass.
    pub fn perform_cutting(
        &mut self,
        order: &Order,
        host: &dyn Host,
        on_cut: &mut dyn FnMut(FragmentId, u64),
    ) -> Option<Done> {
        match self.mix.perform(order, host) {
            Some(done) => Some(done),
            None => self.train.perform(order, on_cut),
        }
    }

    /// The two lanes, for two threads. Every `Train` and `Evaluate` goes to both; `Save` is the
    /// host's business with both.
    pub fn split(self) -> (TrainLane, MixLane) {
        (self.train, self.mix)
    }

    /// Hashes of the anchor, fragment by fragment.
    pub fn digests(&self) -> Vec<Digest> {
        self.mix.digests()
    }

    /// The last parameters agreed on; in gossip those that opened the round.
    pub fn anchor(&self) -> &[f32] {
        self.mix.anchor()
    }

    /// Writes both lanes' state.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.mix.save(sink)?;
        self.train.save(sink)
    }

    /// Takes both lanes' state back.
    ///
    /// # Errors
    /// When something is missing, does not fit or is not finite; nothing has changed then.
    pub fn restore(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let saved = self.mix.read(source)?;
        self.train.load(source)?;
        self.mix.take(saved);
        Ok(())
    }
}
