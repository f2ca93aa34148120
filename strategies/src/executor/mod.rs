//! The Executor: performs every work order of a peer. It is the only implementation of the
//! arithmetic. The daemon runs its two lanes on threads; the simulator calls it inline.
//!
//! ```text
//!            Train, Evaluate                       all other orders
//!   TrainLane (trainer, correction)        MixLane (core, and one mixer for the exchange)
//!            |<------ frame: parameters to take over --------|
//!            |------- frame: this round's cut -------------->|
//! ```
//!
//! One buffer travels between the lanes, so that neither waits for the other: the mix lane lends
//! it with the parameters to take over when training begins, and gets it back with the cut.
//!
//! - `mix_core` is what all exchanges need: `anchor`, `local` (the buffer), `codecs`, `contributions`
//!   and `late` (training that continues past the anchor). It prepares what the train lane takes over;
//!   `force` makes an aggregate the new anchor.
//! - `mixer` is what an exchange adds; `mixers` has one implementation for each family of exchanges.
//! - `merge` averages the branches of a swarm that was split, in plain f32.
//! - `transfer` writes and reads the state: for newcomers and for checkpoints.

mod anchor;
mod bundle;
mod codecs;
mod common;
mod contributions;
mod force;
mod frame;
mod gates;
mod gradients;
mod host;
mod late;
mod local;
pub(crate) mod masks;
mod merge;
mod mix_core;
mod mix_lane;
mod mixer;
mod mixers;
mod pieces;
mod places;
mod rules;
mod scored;
mod train_lane;
mod transfer;
mod two_passes;

pub use codecs::ByFragment;
pub use host::{
    Host, ManifestWriter, StateBytes, StateStore, Stopwatch, WriteState, state_in_memory,
};
pub use late::{Blend, Late};
pub use masks::{PairSecrets, Secrets};
pub use mix_lane::{Memory, MixLane};
pub use mixers::{CenterRule, Keeps, Mixing};
pub use rules::Rules;
pub use train_lane::{TrainLane, TrainSignals};
pub use transfer::STATE_HEADER_BYTES;

use crate::aggregate::Privacy;
use crate::correct::{Companion, Correction};
use crate::inner::InnerOptimizer;
use crate::outer::{OuterOptimizer, StoredOuter};
use crate::state::{StateError, StateSink, StateSource};
use crate::trainer::Trainer;
use local::AtHand;
use murmurate_protocol::{Contribution, Digest, Done, FragmentId, Layers, Order, PlanHash};
use pieces::Pieces;
use std::ops::Range;

/// Both lanes of one peer.
pub struct Executor {
    train: TrainLane,
    mix: MixLane,
}

impl Executor {
    /// Takes the trainer's parameters as the first anchor.
    ///
    /// # Panics
    /// When the fragments do not cover the trainer's layout and its companion in order, or the run promises
    /// privacy and the host gives no key for the noise.
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
        trainer.read(0, &mut anchor[..len]);
        if let Companion::Anchors { .. } = parts.companion {
            anchor.copy_within(..len, len);
        }
        let (train_end, mix_end) = frame::pair(parts.fragments.len());
        let at_hand = (parts.leaves_trainer_free && trainer.is_at_hand()).then(AtHand::default);
        let in_pieces = parts.overlap.layers != Layers::Together;
        let gates = parts.overlap.layers.reach_forward();
        let gates = gates.then(|| gates::pair(&parts.fragments));
        let (forward, keeper) = gates.unzip();
        let pieces = in_pieces.then(|| Pieces::new(parts.fragments.clone()));
        let correction = parts.correction.take();
        parts.rules = parts.rules.of_layout(trainer.layout());
        let rules = parts.rules.clone();
        let mut train = TrainLane::new(trainer, parts.contribution, rules, stopwatch, train_end);
        (train.correction, train.companion) = (correction, companion);
        train.trains_ahead = parts.overlap.trains_ahead;
        train.trainer.travels = at_hand.is_some();
        (train.pieces, train.forward) = (pieces, forward);
        let mut executor = Self {
            train,
            mix: MixLane::new(parts, anchor, companion, tensors, mix_end, at_hand),
        };
        executor.mix.core.keeper = keeper;
        executor.bring_home();
        executor
    }

    /// Where the trainer is at hand it begins with the mix lane.
    fn bring_home(&mut self) {
        if let Some(at_hand) = &mut self.mix.core.local.at_hand
            && let Some(trainer) = self.train.trainer.take()
        {
            at_hand.put(trainer, false);
        }
    }

    /// Performs an order, inline. `None` where nothing is answered: `Settle`, `Release`, `Unpin`,
    /// `Forget`, and `Save`, which the host performs with [`Executor::save`].
    pub fn perform(&mut self, order: &Order, host: &dyn Host) -> Option<Done> {
        self.perform_cutting(order, host, &mut |_, _| {})
    }

    /// As [`Executor::perform`]; `on_cut(fragment, samples of the batch)` is called for each
    /// fragment that leaves under the backward pass.
    pub fn perform_cutting(
        &mut self,
        order: &Order,
        host: &dyn Host,
        on_cut: &mut dyn FnMut(FragmentId, u64),
    ) -> Option<Done> {
        match self.mix.perform(order, host) {
            Some(done) => Some(done),
            None => {
                if order.begins_forward() {
                    // Inline, nothing can come while it waits.
                    self.mix.core.close_forward();
                }
                self.train.perform(order, on_cut)
            }
        }
    }

    /// A forward pass that begins now has all that it needs. Inline, one that has not is given up.
    pub fn forward_is_ready(&self) -> bool {
        let keeper = self.mix.core.keeper.as_ref();
        keeper.is_none_or(gates::GateKeeper::all_ended)
    }

    /// The two lanes, for two threads. Every `Train`, `Evaluate` and `Measure` goes to both; `Save` is the
    /// host's business with both.
    pub fn split(self) -> (TrainLane, MixLane) {
        (self.train, self.mix)
    }

    /// Returns `true` if the result of training is copied for the exchange: the trainer is not at hand, or trains on.
    pub const fn copies_what_is_trained(&self) -> bool {
        self.mix.core.local.at_hand.is_none()
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
        self.mix.begin_save();
        self.train.begin_save();
        let saved = self.train.save(sink);
        self.train.end_save();
        saved
    }

    /// Takes both lanes' state back.
    ///
    /// # Errors
    /// When something is missing, does not fit or is not finite; nothing has changed then.
    pub fn restore(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let saved = self.mix.read(source)?;
        if let Some(at_hand) = &mut self.mix.core.local.at_hand
            && let Some(trainer) = at_hand.take()
        {
            self.train.trainer.put(trainer);
        }
        let loaded = self.train.load(source);
        self.bring_home();
        loaded?;
        self.mix.take(saved);
        Ok(())
    }
}

/// What an Executor is made of, beside its trainer.
pub struct Parts {
    /// The plan's hash: states of other plans are refused.
    pub plan: PlanHash,
    /// What a contribution is.
    pub contribution: Contribution,
    /// What travels beside the parameters, behind them.
    pub companion: Companion,
    /// The ranges of the fragments in the parameters and their companion.
    pub fragments: Vec<Range<usize>>,
    /// Encode contributions.
    pub codecs: ByFragment,
    /// Set where what the codec leaves out is kept for the next round.
    pub error_feedback: bool,
    /// How the exchange combines contributions.
    pub mixing: Mixing,
    /// How training overlaps with the exchange.
    pub overlap: Overlap,
    /// Moves the anchor by an aggregated delta.
    pub outer: StoredOuter,
    /// Moves the anchor by an aggregated gradient; only for methods that exchange gradients.
    pub inner: Option<InnerOptimizer>,
    /// Corrects the gradients of the trainer's inner steps.
    pub correction: Option<Box<dyn Correction>>,
    /// The decay of a moving average of the anchor; `None` keeps none. It is this peer's own affair.
    pub ema: Option<f64>,
    /// The rates of inner steps, and which tensors decay.
    pub rules: Rules,
    /// How contributions are hidden before they leave.
    pub hidden: Hidden,
    /// Set where the trainer has nothing to do between the cut and the round's end, and its parameters are
    /// only read for contributions.
    pub leaves_trainer_free: bool,
}

/// How training overlaps with the exchange.
pub struct Overlap {
    /// When the fragments of a gradient leave.
    pub layers: Layers,
    /// Set where the trainer continues past the anchor between rounds.
    pub trains_ahead: bool,
    /// How late results meet the training since the cut; `None` where results come between rounds.
    pub late: Option<Late>,
    /// Makes this peer's part of the outer step, where the trainer starts from that before a late result.
    pub eager: Option<OuterOptimizer>,
}

/// How a peer's contributions are hidden before they leave it.
#[derive(Default)]
pub struct Hidden {
    /// They are clipped and noised, where the run promises privacy.
    pub noised: Option<Privacy>,
    /// They are masked: others can read their sums alone.
    pub masked: bool,
    /// The secrets of this peer. A host must give it before it makes an Executor that hides something.
    pub secrets: Option<Secrets>,
}
