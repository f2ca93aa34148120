//! The train lane: owns the trainer, performs `Train` and `Evaluate`.

use super::budget::Budget;
use super::frame::{Frame, Handed, Install, Taken, TrainEnd};
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
    pub(super) trainer: Box<dyn Trainer>,
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
            trainer,
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
                match blocks {
                    Some(blocks) => self.trainer.train_blocks(blocks),
                    None => self.trainer.deal(peers),
                }
                self.find_place(*round, *budget, *cut);
                let trained = match self.contribution {
                    Contribution::Gradient if self.pieces.is_some() => {
                        self.gradient_in_pieces(on_cut)
                    }
                    Contribution::Gradient => self.gradient(*budget, *cut),
                    Contribution::Delta | Contribution::Parameters => self.steps(*budget, *cut),
                };
                let blocks = self.trainer.finished_blocks();
                let trained = trained.map(|trained| TrainSummary { blocks, ..trained });
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
            return self.trainer.evaluate();
        }
        let Some(Some(mut agreed)) = self.frames.receive() else {
            return self.trainer.evaluate();
        };
        // The trainer evaluates the anchor, then gets its parameters back.
        self.swap(&mut agreed.values);
        let evaluated = self.trainer.evaluate();
        self.swap(&mut agreed.values);
        evaluated
    }

    /// Swaps the trainer's parameters with these values.
    fn swap(&mut self, values: &mut [f32]) {
        self.trainer.visit(0..values.len(), &mut |offset, piece| {
            piece.swap_with_slice(&mut values[offset..offset + piece.len()]);
        });
    }

    /// Writes the trainer's state.
    ///
    /// # Errors
    /// The sink's.
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
            let mut values = vec![0.0; self.trainer.layout().len()];
            self.trainer.read(0, &mut values);
            sink.tensor(PARAMETERS, &values)?;
        }
        self.trainer.save(sink)
    }

    /// Takes the trainer's state back.
    ///
    /// # Errors
    /// When something is missing or does not fit.
    pub fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let kept = self.read_correction(source)?;
        let parameters = self.read_parameters(source)?;
        self.trainer.load(source)?;
        if let Some(values) = parameters {
            self.trainer.write(0, &values);
        }
        self.steps = 0;
        if let (Some(correction), Some((state, steps))) = (&mut self.correction, kept) {
            correction.state_mut().copy_from_slice(&state);
            self.steps = steps;
        }
        Ok(())
    }

    /// Reads the parameters, where a checkpoint holds them.
    fn read_parameters(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        if !self.trains_ahead {
            return Ok(None);
        }
        let mut values = vec![0.0; self.trainer.layout().len()];
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
        let Some(Some(mut frame)) = self.frames.receive() else {
            return;
        };
        let (values, steps) = (&frame.values, self.steps);
        let whole = self.trainer.layout().len();
        for Install { range, taken: how } in &frame.install {
            let correction = &mut self.correction;
            if let Some(at) = range.start.checked_sub(whole) {
                if let Some(correction) = correction {
                    correction.companion_taken(at, &values[range.clone()]);
                }
                continue;
            }
            if correction.is_none() && how.replaces() {
                self.trainer.write(range.start, &values[range.clone()]);
                continue;
            }
            self.trainer.visit(range.clone(), &mut |offset, piece| {
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
        self.buffer = Some(frame);
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
            _ => self.trainer.steps(&mut control)?,
        };
        self.steps += report.steps;
        self.taken.1 += report.steps;
        let seconds = self.stopwatch.elapsed(report.steps).as_secs_f64();
        if !cut {
            return Ok(summary(report, seconds));
        }
        let mut frame = self.take_buffer();
        let whole = self.trainer.layout().len();
        let (values, companion) = frame.values.split_at_mut(whole);
        self.trainer.read(0, values);
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
        let len = self.trainer.layout().len() + self.companion;
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

fn failed(error: TrainError) -> Done {
    Done::Failed(WorkError::Training {
        reason: error.to_string(),
    })
}
