//! The train lane: owns the trainer, performs `Train`, `Measure` and `Evaluate`, and writes the trainer's state.

use super::frame::{Frame, Handed, Held, Lent, TrainEnd};
use super::gates::Forward;
use super::host::Stopwatch;
use super::pieces::Pieces;
use super::rules::Rules;
use crate::DataReport;
use crate::correct::{Correction, Work};
use crate::inner::StepRule;
use crate::state::{StateError, StateSink, StateSource, finite, number};
use crate::trainer::{Proceed, StepControl, TrainError, TrainReport, Trainer};
use murmurate_protocol::{
    Contribution, Done, Evaluation, FragmentId, InnerStep, Order, Round, StepBudget, TrainSummary,
    WorkError,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A correction's state in a checkpoint, and the inner steps since the parameters were last agreed on.
const CORRECTION: &str = "trainer.correction.state";
const CORRECTION_STEPS: &str = "trainer.correction.steps";

/// The parameters in a checkpoint, where training continues past the anchor.
const PARAMETERS: &str = "trainer.parameters";

/// Owns the trainer. Runs on a thread of its own in the daemon, inline in the simulator.
pub struct TrainLane {
    pub(super) trainer: OwnTrainer,
    contribution: Contribution,
    /// Corrects the gradients of inner steps.
    pub(super) correction: Option<Box<dyn Correction>>,
    /// Number of values of the companion, which come behind the parameters.
    pub(super) companion: usize,
    /// Inner steps since the parameters were last agreed on.
    pub(super) steps: u64,
    pub(super) stopwatch: Box<dyn Stopwatch>,
    pub(super) signals: Arc<TrainSignals>,
    pub(super) frames: TrainEnd,
    buffer: Option<Frame>,
    /// A gradient that was computed before its round is cut.
    pub(super) ahead: Option<Frame>,
    /// Set where training continues past the anchor between rounds; checkpoints then keep the parameters too.
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
        rules: Rules,
        stopwatch: Box<dyn Stopwatch>,
        frames: TrainEnd,
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
            correction: None,
            companion: 0,
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
            self.frames.send(Handed::Trainer {
                trainer,
                cut: false,
            });
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
        if self.trainer.travels
            && cut
            && let Some(trainer) = self.trainer.take()
        {
            self.frames.send(Handed::Trainer { trainer, cut });
        }
    }

    /// Makes the trainer take over what the mix lane has sent.
    pub(super) fn install(&mut self) {
        let received = self.frames.receive().flatten();
        let left = received.and_then(|lent| self.trainer.receive(lent));
        let whole = self.trainer.parameters();
        let (Some(mut frame), Ok(trainer)) = (left, self.trainer.here()) else {
            return;
        };
        if !frame.install.is_empty() {
            Self::drop_forward(&mut self.forward, trainer);
        }
        let (values, steps) = (&frame.values, self.steps);
        for (range, held) in &frame.install {
            let correction = &mut self.correction;
            if let Some(at) = range.start.checked_sub(whole) {
                if let Some(correction) = correction {
                    correction.companion_taken(at, &values[range.clone()]);
                }
                continue;
            }
            if correction.is_none() && held.replaces() {
                trainer.write(range.start, &values[range.clone()]);
                continue;
            }
            trainer.visit(range.clone(), &mut |offset, piece| {
                let taken = &values[offset..offset + piece.len()];
                if let Some(correction) = correction {
                    let agreed = *held == Held::TakeAnchor;
                    correction.taken_over(offset, piece, taken, agreed, steps);
                }
                for (own, value) in piece.iter_mut().zip(taken) {
                    *own = held.next(*own, *value, frame.own_share);
                }
            });
        }
        let parameters =
            |(range, held): &(Range<usize>, Held)| *held == Held::TakeAnchor && range.start < whole;
        if frame.install.iter().any(parameters) {
            // The parameters are agreed on again: corrections count their steps from here.
            self.steps = 0;
        }
        // A second frame of the round replaces the first, whose buffer goes back with the cut.
        frame.room = self.buffer.take().map(|first| first.values);
        // Where the trainer goes to the mix lane, no buffer does.
        self.buffer = Some(frame).filter(|_| !self.trainer.travels);
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
        if !cut || self.trainer.travels {
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

    /// Receives what the mix lane gives for a `Save`, after its [`begin_save`](super::MixLane::begin_save).
    pub fn begin_save(&mut self) {
        if self.trainer.travels {
            self.install();
        }
    }

    /// Gives back the trainer that the mix lane lent for a `Save`, also after a failed one.
    pub fn end_save(&mut self) {
        if let Some(trainer) = self.trainer.take_borrowed() {
            self.frames.send(Handed::Trainer {
                trainer,
                cut: false,
            });
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
            let mut values = vec![0.0; self.trainer.parameters()];
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
        let missing = |error: TrainError| StateError::Host(error.to_string());
        self.trainer.here().map_err(missing)
    }

    /// Reads the parameters, where a checkpoint holds them.
    fn read_parameters(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        if !self.trains_ahead {
            return Ok(None);
        }
        finite(source, PARAMETERS, self.trainer.parameters()).map(Some)
    }

    /// Reads the state of a correction that keeps any, and the inner steps since the last agreement.
    fn read_correction(
        &self,
        source: &dyn StateSource,
    ) -> Result<Option<(Vec<f32>, u64)>, StateError> {
        let len = self.correction.as_ref().map_or(0, |c| c.state().len());
        if len == 0 {
            return Ok(None);
        }
        let state = finite(source, CORRECTION, len)?;
        Ok(Some((state, number(source, CORRECTION_STEPS)?)))
    }
}

/// The trainer, which travels to the mix lane and back where it is at hand.
pub(super) struct OwnTrainer {
    /// `None` while the mix lane has it.
    trainer: Option<Box<dyn Trainer>>,
    /// Set where it goes to the mix lane with each cut.
    pub(super) travels: bool,
    /// Set while the mix lane wants it back after the order.
    borrowed: bool,
    parameters: usize,
}

impl OwnTrainer {
    pub(super) fn new(trainer: Box<dyn Trainer>) -> Self {
        Self {
            parameters: trainer.layout().len(),
            trainer: Some(trainer),
            travels: false,
            borrowed: false,
        }
    }

    pub(super) const fn parameters(&self) -> usize {
        self.parameters
    }

    /// The trainer.
    ///
    /// # Errors
    /// Only while the daemon ends: the mix lane has ended with it.
    pub(super) fn here(&mut self) -> Result<&mut dyn Trainer, TrainError> {
        let ended = || TrainError::Backend("the mix lane has ended".to_owned());
        Ok(&mut **self.trainer.as_mut().ok_or_else(ended)?)
    }

    pub(super) fn finished_blocks(&self) -> u64 {
        self.trainer.as_ref().map_or(0, |t| t.finished_blocks())
    }

    /// Takes in what the mix lane has sent, if that is the trainer; else gives the values.
    pub(super) fn receive(&mut self, lent: Lent) -> Option<Frame> {
        match lent {
            Lent::Values(frame) => return Some(frame),
            Lent::Trainer { trainer, borrowed } => {
                self.trainer = Some(trainer);
                self.borrowed |= borrowed;
            }
        }
        None
    }

    pub(super) fn put(&mut self, trainer: Box<dyn Trainer>) {
        self.trainer = Some(trainer);
    }

    pub(super) const fn take(&mut self) -> Option<Box<dyn Trainer>> {
        self.trainer.take()
    }

    const fn take_borrowed(&mut self) -> Option<Box<dyn Trainer>> {
        if std::mem::replace(&mut self.borrowed, false) {
            return self.trainer.take();
        }
        None
    }
}

/// Ends a stretch of training by the order's budget.
pub(super) struct Budget<'a> {
    pub(super) budget: StepBudget,
    pub(super) stopwatch: &'a mut dyn Stopwatch,
    pub(super) signals: &'a TrainSignals,
    pub(super) correction: Option<&'a mut (dyn Correction + 'static)>,
    pub(super) rules: &'a Rules,
    /// The round, and its inner steps before this stretch.
    pub(super) from: (Round, u64),
}

impl StepControl for Budget<'_> {
    fn before(&mut self, step: InnerStep) -> Proceed {
        let interrupted = self.signals.interrupt.load(Ordering::Relaxed);
        let enough = match self.budget {
            StepBudget::Steps(count) => step.0 >= u64::from(count),
            StepBudget::Time(time) => step.0 > 0 && self.stopwatch.elapsed(step.0) >= time,
        };
        if interrupted || enough {
            Proceed::Stop
        } else {
            Proceed::Go
        }
    }

    fn after(&mut self, _step: InnerStep, samples: u64) {
        self.signals.steps.fetch_add(1, Ordering::Relaxed);
        self.signals.samples.fetch_add(samples, Ordering::Relaxed);
    }

    fn corrects(&self) -> bool {
        self.correction.is_some()
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        if let Some(correction) = self.correction.as_deref_mut() {
            correction.correct(offset, values, gradient);
        }
    }

    fn rule(&self, step: InnerStep) -> StepRule {
        let (round, taken) = self.from;
        self.rules.of_step(round, taken + step.0)
    }
}

/// The counters of a train lane, and its interrupt.
#[derive(Debug, Default)]
pub struct TrainSignals {
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) steps: AtomicU64,
    pub(super) samples: AtomicU64,
    pub(super) data: Vec<Arc<DataReport>>,
}

impl TrainSignals {
    /// Ends training before the next inner step, for good: the peer is leaving.
    pub fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Inner steps taken since the start.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// What the trainer has found in its data.
    pub fn data(&self) -> impl Iterator<Item = &DataReport> {
        self.data.iter().map(Arc::as_ref)
    }

    /// Samples seen since the start.
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
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
