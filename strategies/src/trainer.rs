//! The trainer takes inner steps. `tasks` implements it with burn, [`toy`](crate::toy) in plain
//! Rust.

use crate::inner::StepRule;
use crate::state::{StateError, StateSink, StateSource};
use crate::{DataReport, Layout, NamedScores};
use murmurate_protocol::{Blocks, Digest, Evaluation, InnerStep, Participants, Pool, Round};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The decision of the caller of [`Trainer::steps`] before each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    /// Take the inner step.
    Go,
    /// Stop before it.
    Stop,
}

/// Observes a stretch of training and decides when it ends. The ranks of an island share one among threads.
pub trait StepControl: Send {
    /// Called before every inner step, from zero.
    fn before(&mut self, step: InnerStep) -> Proceed;

    /// Called after every inner step with the samples it saw.
    fn after(&mut self, step: InnerStep, samples: u64) {
        let _ = (step, samples);
    }

    /// Set where [`StepControl::correct`] may change a gradient. If not, a trainer on another device
    /// need not copy gradients to the host.
    fn corrects(&self) -> bool {
        true
    }

    /// Called in every inner step for each tensor that has a gradient, before the inner optimizer
    /// uses it: changes the gradient in place. `offset` is where the tensor lies in the flat
    /// parameters, `values` are its parameters.
    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        let _ = (offset, values, gradient);
    }

    /// The rule of an inner step, which the trainer gives to its inner optimizer before the step:
    /// the factor on the learning rate, and the tensors without weight decay.
    fn rule(&self, step: InnerStep) -> StepRule {
        let _ = step;
        StepRule::default()
    }
}

/// The result of a stretch of training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainReport {
    /// Inner steps taken.
    pub steps: u64,
    /// Samples seen.
    pub samples: u64,
    /// Mean loss over these inner steps, in nats.
    pub loss: f64,
}

/// Why training failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The loss or a gradient is NaN or infinite.
    #[error(
        "the training loss is no longer finite (lower the learning rate, which is `strategy.inner.lr` or your own \
         loop's, or try preset = \"local-adam\")"
    )]
    NotFinite,
    /// Device or data failed.
    #[error("{0}")]
    Backend(String),
    /// The trainer has no held sample.
    #[error("this trainer has no held sample on which contributions can be scored")]
    NoHeldSample,
    /// This rank of an island is gone, and its parameters are as they were. The others go on.
    #[error("the rank is away")]
    Away,
    /// The trainer has failed and does not come back.
    #[error("{0}")]
    Gone(String),
}

/// The parameters of a forward pass that begins before all of them are decided.
pub trait Gate: Send + Sync {
    /// Waits until the parameters of a range are decided, and copies them. False where they may stay
    /// undecided: then the forward pass is given up.
    fn read(&self, range: Range<usize>, into: &mut [f32]) -> bool;
}

/// Called with the place of each piece of the parameters or of their gradient, and its values.
pub type Visit<'a> = &'a mut dyn FnMut(usize, &mut [f32]);

/// Takes inner steps on parameters that it owns.
///
/// The flat parameters are those of [`Trainer::layout`], row-major f32. All methods run on the
/// train lane, one at a time.
pub trait Trainer: Send {
    /// Names, shapes and offsets of the parameters; they never change.
    fn layout(&self) -> &Layout;

    /// Takes inner steps with the trainer's inner optimizer until `control` stops it, on
    /// gradients that `control` has corrected.
    ///
    /// # Errors
    /// When the loss is not finite or the backend fails; parameters are then undefined.
    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError>;

    /// Says who trains beside this peer. A trainer whose data is divided among the peers trains its
    /// own part from now on; others ignore it. Called before each stretch of training, and cheap when
    /// nothing has changed.
    fn deal(&mut self, participants: &Participants) {
        let _ = participants;
    }

    /// The data set that this trainer shares with others, if it can train it in blocks. Peers with the same
    /// one agree on who trains which block.
    fn pool(&self) -> Option<Pool> {
        None
    }

    /// Says which blocks of its pool to train from now on. Called before each stretch of training instead of
    /// [`Trainer::deal`], where peers agree on the data.
    fn train_blocks(&mut self, blocks: &Blocks) {
        let _ = blocks;
    }

    /// How many of these blocks, and of those behind them, are finished.
    fn finished_blocks(&self) -> u64 {
        0
    }

    /// Reports on its data, for other threads: at most one for each rank.
    fn data_reports(&self) -> Vec<Arc<DataReport>> {
        Vec::new()
    }

    /// What [`Trainer::evaluate`] measures beside loss and accuracy, for other threads. An island has the numbers of
    /// its first rank.
    fn named_scores(&self) -> NamedScores {
        NamedScores::default()
    }

    /// Samples of one inner step.
    fn batch(&self) -> u64;

    /// One forward and backward pass on one batch. `on_ready(offset, gradient)` is called once for
    /// each tensor with the gradient of the mean loss, in any order; together they cover the
    /// layout. Where the trainer can, it calls as soon as the backward pass has computed a tensor,
    /// so that the gradient leaves while the rest is computed. The parameters do not change.
    ///
    /// # Errors
    /// As [`Trainer::steps`].
    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError>;

    /// The forward pass of the batch that the next [`Trainer::gradients`] is of, which then computes
    /// only the rest. Each layer takes its parameters from the gate before it computes, and so do
    /// parameters that no layer uses: they become the trainer's own. False where the trainer has taken
    /// none, or a gate did not open: then the caller writes those that are decided, and calls
    /// [`Trainer::drop_forward`]. A state that is saved meanwhile is that of before. A trainer may drop the
    /// pass when its parameters are read or written. The default begins nothing.
    ///
    /// # Errors
    /// As [`Trainer::steps`].
    fn forward(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        let _ = gate;
        Ok(false)
    }

    /// Drops what [`Trainer::forward`] has computed, if it has. The next batch is the same one again.
    fn drop_forward(&mut self) {}

    /// Calls `f(offset, values)` for the pieces of `range` in ascending order. What `f` writes
    /// becomes the parameters. In place where the backend allows.
    fn visit(&mut self, range: Range<usize>, f: Visit<'_>);

    /// As [`Trainer::visit`], and changes nothing.
    fn view(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &[f32])) {
        self.visit(range, &mut |offset, piece| f(offset, piece));
    }

    /// Set where [`Trainer::visit`] reaches the parameters for no more than the cost of a copy, between any
    /// two stretches of training. Then no second copy of the trained parameters is kept during an exchange.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Copies the parameters from `offset` on.
    fn read(&mut self, offset: usize, into: &mut [f32]) {
        self.visit(offset..offset + into.len(), &mut |at, piece| {
            into[at - offset..at - offset + piece.len()].copy_from_slice(piece);
        });
    }

    /// Replaces the parameters from `offset` on.
    fn write(&mut self, offset: usize, values: &[f32]) {
        self.visit(offset..offset + values.len(), &mut |at, piece| {
            piece.copy_from_slice(&values[at - offset..at - offset + piece.len()]);
        });
    }

    /// Hash of what makes the model another one beside the parameters of the layout: values that it holds and
    /// never trains, such as the weights below adapters, and what its inputs and outputs stand for. `None` if
    /// there is nothing.
    fn frozen(&self) -> Option<Digest> {
        None
    }

    /// Called once, before training. The flag becomes true when the peer leaves: a trainer that waits for
    /// something else than its own computation stops waiting then.
    fn leaving(&mut self, leaving: Arc<AtomicBool>) {
        let _ = leaving;
    }

    /// Training is over. These are the parameters that were agreed on last: a trainer that someone goes on
    /// to use takes them over.
    fn finish(&mut self, agreed: &[f32]) {
        let _ = agreed;
    }

    /// Loss and accuracy on held-out data.
    ///
    /// # Errors
    /// When the backend fails.
    fn evaluate(&mut self) -> Result<Evaluation, TrainError>;

    /// Set where [`Trainer::held_loss`] measures.
    fn holds_a_sample(&self) -> bool {
        false
    }

    /// Mean loss of the parameters on a held sample of this trainer's own data: this number of batches that are
    /// not trained on, others in every round, and the same ones within a round. The training continues as if
    /// it had not been asked. Where contributions are scored, it is called for each of them.
    ///
    /// # Errors
    /// When the trainer has no such sample, or the backend fails.
    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        let _ = (round, batches);
        Err(TrainError::NoHeldSample)
    }

    /// Writes what a resumed trainer needs beside the parameters: inner optimizer, data position.
    /// Names must start with `trainer.`.
    ///
    /// # Errors
    /// The sink's.
    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError>;

    /// Takes back what [`Trainer::save`] wrote.
    ///
    /// # Errors
    /// When something is missing or does not fit; nothing has changed then.
    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError>;
}
