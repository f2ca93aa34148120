//! The train lane: owns the trainer, performs `Train` and `Evaluate`.

use super::budget::Budget;
use super::frame::{Frame, Handed, Install, Lent, Taken, TrainEnd};
use super::gates::Forward;
use super::host::Stopwatch;
use super::own_trainer::OwnTrainer;
use super::pieces::Pieces;
use super::rules::Rules;
use super::signals::TrainSignals;
use crate::correct::{Correction, Work};
use crate::trainer::{TrainError, TrainReport, Trainer};
use murmurate_protocol::{
    Contribution, Done, Evaluation, FragmentId, Order, Round, StepBudget, TrainSummary, WorkError,
};
use std::ops::Range;
use std::sync::Arc;

/// Owns the trainer. Runs on a thread of its own in the daemon, inline in the simulator.
pub struct TrainLane {
    pub(super) trainer: OwnTrainer,
    contribution: Contribution,
    pub(super) correction: Option<Box<dyn Correction>>,
    /// Number of values of the companion, which come behind the parameters.
    companion: usize,
    /// Inner steps since the parameters were last agreed on.
    pub(super) steps: u64,
    pub(super) stopwatch: Box<dyn Stopwatch>,
    pub(super) signals: Arc<TrainSignals>,
    pub(super) frames: TrainEnd,
    buffer: Option<Frame>,
    /// A gradient that was computed before its round is cut.
    pub(super) ahead: Option<Frame>,
    /// Whether training continues past the anchor between rounds.
    pub(super) trains_ahead: bool,
    /// Only where gradients leave during the backward pass.
    pub(super) pieces: Option<Pieces>,
    /// Only where a forward pass begins while fragments are still exchanged.
    pub(super) forward: Option<Forward>,
    rules: Rules,
    /// The round that was trained last, and its inner steps so far.
    taken: (Round, u64),
}

impl TrainLane {
    pub(super) fn new(
        mut trainer: Box<dyn Trainer>,
        contribution: Contribution,
        (correction, companion): (Option<Box<dyn Correction>>, usize),
        stopwatch: Box<dyn Stopwatch>,
        (frames, rules): (TrainEnd, Rules),
    ) -> Self {
        let data = trainer.data_reports();
        let signals = Arc::new(TrainSignals {
            data,
            ..TrainSignals::default()
        });
        trainer.leaving(Arc::clone(&signals.interrupt));
        Self {
            trainer: OwnTrainer::new(trainer),
            contribution,
            correction,
            companion,
            steps: 0,
            stopwatch,
            signals,
            frames,
            buffer: None,
            ahead: None,
            trains_ahead: false,
            pieces: None,
            forward: None,
            rules,
            taken: (Round(0), 0),
        }
    }

    /// Sets whether training continues past the anchor; checkpoints then keep the parameters too.
    pub(super) const fn training_ahead(mut self, trains_ahead: bool) -> Self {
        self.trains_ahead = trains_ahead;
        self
    }

    /// Sets whether the trainer goes to the mix lane with each cut.
    pub(super) const fn giving_the_trainer(mut self, at_hand: bool) -> Self {
        self.trainer.set_travels(at_hand);
        self
    }

    /// Lets gradients leave during the backward pass, in these fragments.
    pub(super) fn in_pieces(mut self, fragments: Option<Vec<Range<usize>>>) -> Self {
        self.pieces = fragments.map(Pieces::new);
        self
    }

    /// Lets a forward pass begin while fragments are still exchanged.
    pub(super) fn with_forward(mut self, forward: Option<Forward>) -> Self {
        self.forward = forward;
        self
    }

    /// Counters and the interrupt, for other threads.
    pub fn signals(&self) -> Arc<TrainSignals> {
        Arc::clone(&self.signals)
    }

    /// Performs an order of this lane; `None` for others. Where gradients leave during the backward
    /// pass, `on_cut(fragment, samples of the batch)` is called for each fragment once the mix lane
    /// can have it.
    pub fn perform(
        &mut self,
        order: &Order,
        on_cut: &mut dyn FnMut(FragmentId, u64),
    ) -> Option<Done> {
        match order {
            Order::Train {
                round,
                budget,
                cut,
                peers,
                blocks,
                rules,
            } => {
                self.rules.direct(*rules);
                self.install();
                self.keep_forward_of(*round, peers);
                let trainer = match self.trainer.here() {
                    Ok(trainer) => trainer,
                    Err(error) => return Some(failed(error)),
                };
                match blocks {
                    Some(blocks) => trainer.train_blocks(blocks),
                    None => trainer.deal(peers),
                }
                self.find_place(*round, *budget, *cut);
                let trained = match self.contribution {
                    Contribution::Gradient if order.begins_forward() => {
                        self.forward_ahead(*round, peers)
                    }
                    Contribution::Gradient if self.pieces.is_some() => {
                        self.gradient_in_pieces(on_cut)
                    }
                    Contribution::Gradient => self.gradient(*budget, *cut),
                    Contribution::Delta | Contribution::Parameters => self.steps(*budget, *cut),
                };
                let trained = trained.map(|trained| {
                    let blocks = self.trainer.finished_blocks();
                    TrainSummary { blocks, ..trained }
                });
                self.hand_over_trainer(*cut && trained.is_ok());
                Some(trained.map_or_else(failed, Done::Trained))
            }
            Order::Measure { round, batches } => {
                let measured = self.measure(*round, *batches);
                Some(measured.map_or_else(failed, |loss| Done::Measured { loss }))
            }
            Order::Evaluate { .. } => {
                Some(self.evaluate().map_or_else(unmeasured, Done::Evaluated))
            }
            _ => None,
        }
    }

    /// Training is over: the mix lane gets the trainer, for [`MixLane::close`](super::MixLane::close).
    pub fn close(mut self) {
        if let Some(trainer) = self.trainer.take() {
            self.frames.send(Handed::Back(trainer));
        }
    }

    /// Finds how many inner steps of the round an order continues after.
    fn find_place(&mut self, round: Round, budget: StepBudget, cut: bool) {
        if self.taken.0 != round {
            self.taken = (round, 0);
        }
        if cut {
            // After a restart the order alone tells what was trained ahead: it asks for the rest.
            let before = self.rules.steps_before(round, budget);
            self.taken.1 = self.taken.1.max(before);
        }
    }

    /// Evaluates the trainer's parameters, or the anchor where training continues past it.
    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        if !self.trains_ahead {
            self.install();
            return self.trainer.here()?.evaluate();
        }
        let received = self.frames.receive();
        let trainer = self.trainer.here()?;
        let Some(Some(Lent::Values(mut agreed))) = received else {
            return trainer.evaluate();
        };
        // The trainer evaluates the anchor, then gets its parameters back.
        swap(trainer, &mut agreed.values);
        let evaluated = trainer.evaluate();
        swap(trainer, &mut agreed.values);
        evaluated
    }

    /// Gives the trainer to the mix lane with the round's cut, where it is at hand.
    fn hand_over_trainer(&mut self, cut: bool) {
        if self.trainer.travels()
            && cut
            && let Some(trainer) = self.trainer.take()
        {
            self.frames.send(Handed::Trained(trainer));
        }
    }

    /// Makes the trainer take over what the mix lane has sent.
    pub(super) fn install(&mut self) {
        let received = self.frames.receive().flatten();
        let left = received.and_then(|lent| self.trainer.receive(lent));
        let whole = self.trainer.parameters();
        let (Some(Lent::Values(mut frame)), Ok(trainer)) = (left, self.trainer.here()) else {
            return;
        };
        if !frame.install.is_empty() {
            Self::drop_forward(&mut self.forward, trainer);
        }
        let (values, steps) = (&frame.values, self.steps);
        for Install { range, taken: how } in &frame.install {
            let correction = &mut self.correction;
            if let Some(at) = range.start.checked_sub(whole) {
                if let Some(correction) = correction {
                    correction.companion_taken(at, &values[range.clone()]);
                }
                continue;
            }
            if correction.is_none() && how.replaces() {
                trainer.write(range.start, &values[range.clone()]);
                continue;
            }
            trainer.visit(range.clone(), &mut |offset, piece| {
                let taken = &values[offset..offset + piece.len()];
                if let Some(correction) = correction {
                    let agreed = *how == Taken::Anchor;
                    correction.taken_over(offset, piece, taken, agreed, steps);
                }
                for (own, value) in piece.iter_mut().zip(taken) {
                    *own = how.of(*own, *value);
                }
            });
        }
        let parameters =
            |piece: &Install| piece.taken == Taken::Anchor && piece.range.start < whole;
        if frame.install.iter().any(parameters) {
            // The parameters are agreed on again: corrections count their steps from here.
            self.steps = 0;
        }
        // A second frame of the round replaces the first, whose buffer goes back with the cut.
        frame.room = self.buffer.take().map(|first| first.values);
        // Where the trainer goes to the mix lane, no buffer does.
        self.buffer = Some(frame).filter(|_| !self.trainer.travels());
    }

    /// Takes inner steps, then hands over the parameters as the cut, if the order asks for it.
    fn steps(&mut self, budget: StepBudget, cut: bool) -> Result<TrainSummary, TrainError> {
        self.stopwatch.start();
        let mut control = Budget {
            budget,
            stopwatch: self.stopwatch.as_mut(),
            signals: &self.signals,
            correction: self.correction.as_deref_mut(),
            rules: &self.rules,
            from: self.taken,
        };
        let report = match budget {
            StepBudget::Steps(0) => TrainReport::default(),
            _ => self.trainer.here()?.steps(&mut control)?,
        };
        self.steps += report.steps;
        self.taken.1 += report.steps;
        let seconds = self.stopwatch.elapsed(report.steps).as_secs_f64();
        if !cut || self.trainer.travels() {
            return Ok(summary(report, seconds));
        }
        let mut frame = self.take_buffer();
        let (values, companion) = frame.values.split_at_mut(self.trainer.parameters());
        self.trainer.here()?.read(0, values);
        if let Some(correction) = &mut self.correction {
            let work = Work {
                steps: report.steps,
                since_agreed: self.steps,
            };
            correction.cut(values, work, companion);
        }
        self.frames.send(Handed::Cut(frame));
        Ok(summary(report, seconds))
    }

    pub(super) fn take_buffer(&mut self) -> Frame {
        let len = self.trainer.parameters() + self.companion;
        let fresh = || Frame::new(vec![0.0; len], Vec::new());
        self.buffer.take().unwrap_or_else(fresh)
    }
}

pub(super) fn summary(report: TrainReport, seconds: f64) -> TrainSummary {
    TrainSummary {
        steps: report.steps,
        samples: report.samples,
        loss: report.loss,
        seconds,
        blocks: 0,
    }
}

/// Swaps a trainer's parameters with these values.
pub(super) fn swap(trainer: &mut dyn Trainer, values: &mut [f32]) {
    trainer.visit(0..values.len(), &mut |offset, piece| {
        piece.swap_with_slice(&mut values[offset..offset + piece.len()]);
    });
}

/// Without an evaluation training goes on, unless the trainer does not come back.
fn unmeasured(error: TrainError) -> Done {
    match error {
        TrainError::Gone(_) => failed(error),
        other => Done::Failed(WorkError::Evaluation {
            reason: other.to_string(),
        }),
    }
}

fn failed(error: TrainError) -> Done {
    Done::Failed(WorkError::Training {
        reason: error.to_string(),
    })
}
