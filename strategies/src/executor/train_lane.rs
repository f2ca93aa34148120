//! The train lane: owns the trainer, performs `Train` and `Evaluate`.

use super::budget::Budget;
use super::frame::{Frame, Handed, Install, Lent, Taken, TrainEnd};
use super::host::Stopwatch;
use super::pieces::Pieces;
use super::rules::Rules;
use super::signals::TrainSignals;
use crate::correct::{Correction, Work};
use crate::state::{StateError, StateSink, StateSource};
use crate::trainer::{TrainError, TrainReport, Trainer};
use murmurate_protocol::{
    Contribution, Done, Evaluation, FragmentId, Order, Round, StepBudget, TrainSummary, WorkError,
};
use std::ops::Range;
use std::sync::Arc;

/// A correction's state in a checkpoint, and the inner steps since the parameters were last agreed
/// on.
const CORRECTION: &str = "trainer.correction.state";
const CORRECTION_STEPS: &str = "trainer.correction.steps";

/// The parameters in a checkpoint, where training continues past the anchor.
const PARAMETERS: &str = "trainer.parameters";

/// Owns the trainer. Runs on a thread of its own in the daemon, inline in the simulator.
pub struct TrainLane {
    /// `None` while the mix lane has it.
    pub(super) trainer: Option<Box<dyn Trainer>>,
    /// Whether the trainer goes to the mix lane with each cut.
    at_hand: bool,
    /// Whether the mix lane wants the trainer back after the order.
    borrowed: bool,
    /// Number of parameters.
    parameters: usize,
    contribution: Contribution,
    correction: Option<Box<dyn Correction>>,
    /// Number of values of the companion, which come behind the parameters.
    companion: usize,
    /// Inner steps since the parameters were last agreed on.
    steps: u64,
    pub(super) stopwatch: Box<dyn Stopwatch>,
    pub(super) signals: Arc<TrainSignals>,
    pub(super) frames: TrainEnd,
    buffer: Option<Frame>,
    /// A gradient that was computed before its round is cut.
    pub(super) ahead: Option<Frame>,
    /// Whether training continues past the anchor between rounds.
    trains_ahead: bool,
    /// Only where gradients leave during the backward pass.
    pub(super) pieces: Option<Pieces>,
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
        let signals = Arc::new(TrainSignals::default());
        trainer.leaving(Arc::clone(&signals.interrupt));
        Self {
            parameters: trainer.layout().len(),
            trainer: Some(trainer),
            at_hand: false,
            borrowed: false,
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
        self.at_hand = at_hand;
        self
    }

    /// Lets gradients leave during the backward pass, in these fragments.
    pub(super) fn in_pieces(mut self, fragments: Option<Vec<Range<usize>>>) -> Self {
        self.pieces = fragments.map(Pieces::new);
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
            } => {
                self.install();
                let Some(trainer) = &mut self.trainer else {
                    return Some(failed(ended()));
                };
                match blocks {
                    Some(blocks) => trainer.train_blocks(blocks),
                    None => trainer.deal(peers),
                }
                self.find_place(*round, *budget, *cut);
                let trained = match self.contribution {
                    Contribution::Gradient if self.pieces.is_some() => {
                        self.gradient_in_pieces(on_cut)
                    }
                    Contribution::Gradient => self.gradient(*budget, *cut),
                    Contribution::Delta | Contribution::Parameters => self.steps(*budget, *cut),
                };
                let trained = trained.map(|trained| {
                    let blocks = self.trainer.as_ref().map_or(0, |t| t.finished_blocks());
                    TrainSummary { blocks, ..trained }
                });
                self.hand_over_trainer(*cut && trained.is_ok());
                Some(trained.map_or_else(failed, Done::Trained))
            }
            Order::Evaluate { .. } => Some(self.evaluate().map_or_else(failed, Done::Evaluated)),
            _ => None,
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
            return self.trainer.as_mut().ok_or_else(ended)?.evaluate();
        }
        let received = self.frames.receive();
        let trainer = self.trainer.as_deref_mut().ok_or_else(ended)?;
        let Some(Some(Lent::Values(mut agreed))) = received else {
            return trainer.evaluate();
        };
        // The trainer evaluates the anchor, then gets its parameters back.
        swap(trainer, &mut agreed.values);
        let evaluated = trainer.evaluate();
        swap(trainer, &mut agreed.values);
        evaluated
    }

    /// Receives what the mix lane gives for a `Save`, after its
    /// [`begin_save`](super::MixLane::begin_save).
    pub fn begin_save(&mut self) {
        if self.at_hand {
            self.install();
        }
    }

    /// Gives the mix lane back what it gave for a `Save`, whatever became of that.
    pub fn end_save(&mut self) {
        if std::mem::take(&mut self.borrowed)
            && let Some(trainer) = self.trainer.take()
        {
            self.frames.send(Handed::Back(trainer));
        }
    }

    /// Gives the trainer to the mix lane with the round's cut, where it is at hand.
    fn hand_over_trainer(&mut self, cut: bool) {
        if self.at_hand
            && cut
            && let Some(trainer) = self.trainer.take()
        {
            self.frames.send(Handed::Trained(trainer));
        }
    }

    /// Writes the trainer's state.
    ///
    /// # Errors
    /// The sink's; or the trainer is not here.
    pub fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        match self
            .correction
            .as_deref()
            .map_or(&[][..], Correction::state)
        {
            [] => {}
            state => {
                sink.tensor(CORRECTION, state)?;
                sink.bytes(CORRECTION_STEPS, &self.steps.to_le_bytes())?;
            }
        }
        if self.trains_ahead {
            let mut values = vec![0.0; self.parameters];
            self.here()?.read(0, &mut values);
            sink.tensor(PARAMETERS, &values)?;
        }
        self.here()?.save(sink)
    }

    /// Takes the trainer's state back.
    ///
    /// # Errors
    /// When something is missing or does not fit.
    pub fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let kept = self.read_correction(source)?;
        let parameters = self.read_parameters(source)?;
        let trainer = self.here()?;
        trainer.load(source)?;
        if let Some(values) = parameters {
            trainer.write(0, &values);
        }
        self.steps = 0;
        if let (Some(correction), Some((state, steps))) = (&mut self.correction, kept) {
            correction.state_mut().copy_from_slice(&state);
            self.steps = steps;
        }
        Ok(())
    }

    fn here(&mut self) -> Result<&mut dyn Trainer, StateError> {
        let missing = || StateError::Host(ended().to_string());
        Ok(&mut **self.trainer.as_mut().ok_or_else(missing)?)
    }

    /// Reads the parameters, where a checkpoint holds them.
    fn read_parameters(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        if !self.trains_ahead {
            return Ok(None);
        }
        let mut values = vec![0.0; self.parameters];
        source.tensor(PARAMETERS, &mut values)?;
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(Some(values)),
            false => Err(StateError::Malformed {
                name: PARAMETERS.to_owned(),
                reason: "a value is not finite".to_owned(),
            }),
        }
    }

    /// Reads the state of a correction that keeps any, and the inner steps since the last
    /// agreement.
    fn read_correction(
        &self,
        source: &dyn StateSource,
    ) -> Result<Option<(Vec<f32>, u64)>, StateError> {
        let len = self.correction.as_ref().map_or(0, |c| c.state().len());
        if len == 0 {
            return Ok(None);
        }
        let bad = |name: &str, reason: String| StateError::Malformed {
            name: name.to_owned(),
            reason,
        };
        let mut state = vec![0.0; len];
        source.tensor(CORRECTION, &mut state)?;
        if !state.iter().all(|value| value.is_finite()) {
            return Err(bad(CORRECTION, "a value is not finite".to_owned()));
        }
        let bytes = source.bytes(CORRECTION_STEPS)?;
        let steps = <[u8; 8]>::try_from(bytes.as_slice()).map_err(|_| {
            let reason = format!("{} bytes instead of 8", bytes.len());
            bad(CORRECTION_STEPS, reason)
        })?;
        Ok(Some((state, u64::from_le_bytes(steps))))
    }

    /// Makes the trainer take over what the mix lane has sent.
    fn install(&mut self) {
        let mut frame = match self.frames.receive() {
            Some(Some(Lent::Values(frame))) => frame,
            Some(Some(Lent::Trainer(trainer))) => {
                self.trainer = Some(trainer);
                return;
            }
            Some(Some(Lent::Borrowed(trainer))) => {
                (self.trainer, self.borrowed) = (Some(trainer), true);
                return;
            }
            Some(None) | None => return,
        };
        let (values, steps) = (&frame.values, self.steps);
        let whole = self.parameters;
        let Some(trainer) = self.trainer.as_deref_mut() else {
            return;
        };
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
        self.buffer = Some(frame).filter(|_| !self.at_hand);
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
            _ => {
                let trainer = self.trainer.as_mut().ok_or_else(ended)?;
                trainer.steps(&mut control)?
            }
        };
        self.steps += report.steps;
        self.taken.1 += report.steps;
        let seconds = self.stopwatch.elapsed(report.steps).as_secs_f64();
        if !cut || self.at_hand {
            return Ok(summary(report, seconds));
        }
        let mut frame = self.take_buffer();
        let (values, companion) = frame.values.split_at_mut(self.parameters);
        let trainer = self.trainer.as_mut().ok_or_else(ended)?;
        trainer.read(0, values);
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
        let len = self.parameters + self.companion;
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
fn swap(trainer: &mut dyn Trainer, values: &mut [f32]) {
    trainer.visit(0..values.len(), &mut |offset, piece| {
        piece.swap_with_slice(&mut values[offset..offset + piece.len()]);
    });
}

/// Only while the daemon ends: the mix lane has ended with the trainer.
pub(super) fn ended() -> TrainError {
    TrainError::Backend("the mix lane has ended".to_owned())
}

fn failed(error: TrainError) -> Done {
    Done::Failed(WorkError::Training {
        reason: error.to_string(),
    })
}
