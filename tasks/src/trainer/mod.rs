//! The trainer of any [`Task`]. burn's autodiff computes gradients. The inner optimizer works in place
//! on flat slices where the host can access the device's memory, otherwise on the device.

mod begun;
pub(crate) mod flat;
mod gated;
mod gradients;
mod inner;
mod transfer;

use crate::data::{DataError, Dataset, Problem};
use crate::{DeviceChoice, Segments, Task, TaskError, rng};
use begun::{Begun, EMPTY_MAX, Met, Place};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use gradients::Gradients;
use inner::Inner;
use murmurate_protocol::{Blocks, Digest, Evaluation, InnerStep, Participants, Pool, Round};
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::{StateError, StateSink, StateSource, number};
use murmurate_strategies::{DataReport, Gate, Layout, NamedScores, Proceed};
use murmurate_strategies::{StepControl, TrainError, TrainReport, Trainer};
use std::ops::Range;
use std::sync::Arc;

const POSITION: &str = "trainer.batches";
const PLACE: &str = "trainer.place";
const INNER: &str = "trainer.inner";

/// Takes inner steps on a burn model.
///
/// The first inner step of [`Trainer::steps`] allocates the inner optimizer's state. So methods
/// that exchange gradients never allocate it.
pub struct BurnTrainer<T: Task> {
    task: T,
    /// Always `Some` between calls; taken only while burn maps it.
    model: Option<T::Model>,
    device: Device,
    layout: Layout,
    kind: InnerKind,
    inner: Option<Inner>,
    batches: u64,
    /// A forward pass that began before its gradients were asked for.
    begun: Option<Begun>,
    named: NamedScores,
    /// A record of the data that could not be read.
    met: Met,
    /// The host can access the device's memory.
    in_place: bool,
}

const MODEL: &str = "the model is put back after every use";

impl<T: Task> BurnTrainer<T> {
    /// A trainer whose parameters depend only on task and seed, bit for bit.
    ///
    /// # Errors
    /// If the device is not available, or the values to start from cannot be read.
    pub fn new(
        task: T,
        inner: &InnerKind,
        device: &DeviceChoice,
        seed: u64,
    ) -> Result<Self, TaskError> {
        let in_place = device.in_place();
        let device = device.open()?.autodiff();
        let model = task.model(&device);
        let layout = flat::layout(&model);
        let model = flat::edit(model, &layout, 0..layout.len(), &mut |place, _, values| {
            let mut rng = rng::generator(seed, place);
            task.initial(&layout.tensors()[place], values, &mut rng);
        });
        let model = task.start(model)?;
        let mut trainer = Self {
            task,
            model: Some(model),
            device,
            layout,
            kind: *inner,
            inner: None,
            batches: 0,
            begun: None,
            named: NamedScores::default(),
            met: Met::default(),
            in_place,
        };
        if !in_place {
            trainer.warm_up()?;
        }
        Ok(trainer)
    }

    /// Takes one inner step and scores one batch, then forgets both. A graphics device compiles its
    /// kernels at their first use, which can take longer than a round may.
    fn warm_up(&mut self) -> Result<(), TaskError> {
        let (model, place) = (self.model.clone(), self.position());
        let (_, gradients) = self.backward().map_err(|error| match error {
            TrainError::NotFinite => TaskError::Start,
            error => TaskError::Own(error.to_string()),
        })?;
        self.descend(gradients, &mut Count(1), InnerStep(0));
        if self.task.held_batches() > 0 {
            let valid = self.model.as_ref().expect(MODEL).valid();
            let device = self.device.clone().inner();
            self.task.score(&valid, 0, &device)?;
        }
        self.model = model;
        self.inner = None;
        self.batches = 0;
        self.seek(&place)
    }

    /// The task.
    pub fn task(&self) -> &T {
        &self.task
    }

    /// The model.
    pub fn model(&self) -> &T::Model {
        self.model.as_ref().expect(MODEL)
    }

    /// Forward and backward passes over the batches of one inner step: the mean loss and its
    /// gradients, clipped.
    fn backward(&mut self) -> Result<(f64, Gradients), TrainError> {
        let batches = self.task.accumulate().max(1);
        let (mut sum, mut gradients) = (0.0, Gradients::none());
        for _ in 0..batches {
            let mut segments = match self.task.recomputes() {
                true => Segments::recomputing(),
                false => Segments::whole(),
            };
            let (value, loss) = self.pass(&mut segments)?;
            let model = self.model.as_ref().expect(MODEL);
            segments.backward(&loss, &mut |some| {
                let all = std::mem::replace(&mut gradients, Gradients::none());
                gradients = all.with(model, some);
            });
            sum += value;
        }
        let of = f64::from(batches);
        Ok((sum / of, self.clipped(gradients, of.recip())))
    }

    /// Gradients with the factor that averages them and keeps their norm within its bound.
    fn clipped(&self, mut gradients: Gradients, factor: f64) -> Gradients {
        let model = self.model.as_ref().expect(MODEL);
        let clip = self.task.clip_norm().map_or(1.0, |most| {
            let norm = factor * gradients.norm(model, self.in_place);
            // A norm that is not finite leaves the gradients to the check of the next loss.
            if norm > most { most / norm } else { 1.0 }
        });
        gradients.factor = (factor * clip) as f32;
        gradients
    }

    /// Samples of one inner step.
    fn step_samples(&self) -> u64 {
        self.task.samples() * u64::from(self.task.accumulate().max(1))
    }

    fn descend(&mut self, gradients: Gradients, control: &mut dyn StepControl, step: InnerStep) {
        let inner = self.inner.get_or_insert_with(|| {
            Inner::new(&self.kind, &self.layout, &self.device, self.in_place)
        });
        inner.set_rule(control.rule(step));
        inner.begin_step();
        let model = self.model.take().expect(MODEL);
        let model = flat::descend(model, &self.layout, gradients, control, inner);
        self.model = Some(model);
    }
}

impl<T: Task> Trainer for BurnTrainer<T> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let mut report = TrainReport::default();
        let mut loss_sum = 0.0;
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            let (loss, gradients) = self.backward()?;
            self.descend(gradients, control, InnerStep(report.steps));
            let samples = self.step_samples();
            control.after(InnerStep(report.steps), samples);
            loss_sum += loss;
            report.steps += 1;
            report.samples += samples;
        }
        report.loss = loss_sum / report.steps.max(1) as f64;
        Ok(report)
    }

    fn deal(&mut self, participants: &Participants) {
        self.met.begin(false);
        if let Some(data) = self.task.dataset_mut() {
            data.deal(participants);
        }
    }

    fn pool(&self) -> Option<Pool> {
        self.task.dataset()?.pool()
    }

    fn train_blocks(&mut self, blocks: &Blocks) {
        self.met.begin(true);
        if let Some(data) = self.task.dataset_mut() {
            data.train_blocks(blocks);
        }
    }

    fn finished_blocks(&self) -> u64 {
        self.task.dataset().map_or(0, Dataset::finished_blocks)
    }

    fn named_scores(&self) -> NamedScores {
        self.named.clone()
    }

    fn data_reports(&self) -> Vec<Arc<DataReport>> {
        self.task.data_report().into_iter().collect()
    }

    fn batch(&self) -> u64 {
        self.step_samples()
    }

    fn gradients(
        &mut self,
        on_ready: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<TrainReport, TrainError> {
        let loss = if self.hands_out_in_pieces() {
            let (value, loss, segments) = match self.begun.take() {
                Some(begun) => (begun.value, begun.loss, begun.segments),
                None => {
                    let mut segments = Segments::cut();
                    let (value, loss) = self.pass(&mut segments)?;
                    (value, loss, segments)
                }
            };
            let model = self.model.as_ref().expect(MODEL);
            let mut handout = flat::Handout::new(&self.layout, on_ready);
            segments.backward(&loss, &mut |gradients| {
                handout.some(model, Gradients::none().with(model, gradients));
            });
            handout.rest(model, Gradients::none());
            value
        } else {
            let (loss, gradients) = self.backward()?;
            let model = self.model.as_ref().expect(MODEL);
            flat::Handout::new(&self.layout, on_ready).rest(model, gradients);
            loss
        };
        Ok(TrainReport {
            steps: 1,
            samples: self.step_samples(),
            loss,
        })
    }

    fn forward(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        self.begin(gate)
    }

    fn drop_forward(&mut self) {
        let dropped = self.give_up();
        debug_assert!(dropped.is_ok(), "the task gave this position: {dropped:?}");
    }

    fn is_at_hand(&self) -> bool {
        self.in_place
    }

    fn visit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        // An edited tensor is another one than the tape knows.
        self.drop_forward();
        let model = self.model.take().expect(MODEL);
        let mut f = |_, offset, values: &mut [f32]| f(offset, values);
        self.model = Some(flat::edit(model, &self.layout, range, &mut f));
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        if self.in_place {
            self.visit(offset..offset + into.len(), &mut |at, piece| {
                into[at - offset..at - offset + piece.len()].copy_from_slice(piece);
            });
            return;
        }
        let model = self.model.as_ref().expect(MODEL);
        transfer::read(model, &self.layout, offset, into);
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        if self.in_place {
            self.visit(offset..offset + values.len(), &mut |at, piece| {
                piece.copy_from_slice(&values[at - offset..at - offset + piece.len()]);
            });
            return;
        }
        self.drop_forward();
        let model = self.model.take().expect(MODEL);
        self.model = Some(transfer::write(model, &self.layout, offset, values));
    }

    fn frozen(&self) -> Option<Digest> {
        let both = [flat::frozen(self.model()), self.task.meaning()];
        let both: Vec<Digest> = both.into_iter().flatten().collect();
        match both.as_slice() {
            [weights, meaning] => Some(Digest::of(
                &[*weights.as_bytes(), *meaning.as_bytes()].concat(),
            )),
            one => one.first().copied(),
        }
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        let model = self.model.as_ref().expect(MODEL).valid();
        let device = self.device.clone().inner();
        let (mut loss, mut samples) = (0.0, 0);
        let (mut right, mut right_5) = (None, None);
        for index in 0..self.task.held_batches() {
            let score = self.task.score(&model, index, &device)?;
            loss += score.loss_sum;
            samples += score.samples;
            add(&mut right, score.right);
            add(&mut right_5, score.right_5);
        }
        if samples == 0 {
            return Err(TrainError::Backend(
                "there is no held-out data to evaluate".into(),
            ));
        }
        let of = samples as f64;
        let share = |right: Option<u64>| right.map(|right| right as f64 / of);
        if let Some(score) = self.task.ask(&model, &device) {
            let named = score
                .shares()
                .map(|(name, share)| (name.to_owned(), Some(share)));
            self.named.take(named.into());
        }
        Ok(Evaluation {
            loss: loss / of,
            accuracy: share(right),
            top_5: share(right_5),
            samples,
        })
    }

    fn holds_a_sample(&self) -> bool {
        self.task.held_batches() > 0
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        let model = self.model.as_ref().expect(MODEL).valid();
        let device = self.device.clone().inner();
        let all = self.task.held_batches();
        if all == 0 {
            return Err(TrainError::NoHeldSample);
        }
        // Other batches of the held-out data in every round, all of it in turn.
        let first = (round.0 % all as u64) as usize * (usize::from(batches) % all);
        let (mut loss, mut samples) = (0.0, 0);
        for at in 0..usize::from(batches).min(all) {
            let score = self.task.score(&model, (first + at) % all, &device)?;
            loss += score.loss_sum;
            samples += score.samples;
        }
        match samples {
            0 => Err(TrainError::NoHeldSample),
            of => Ok(loss / of as f64),
        }
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let place = self.place();
        sink.bytes(POSITION, &place.batches.to_le_bytes())?;
        if !place.position.is_empty() {
            sink.bytes(PLACE, &place.position)?;
        }
        self.inner
            .as_ref()
            .map_or(Ok(()), |inner| inner.save(INNER, &self.layout, sink))
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let batches = number(source, POSITION)?;
        let inner = if source.contains(&format!("{INNER}.steps")) {
            let mut inner = Inner::new(&self.kind, &self.layout, &self.device, self.in_place);
            inner.load(INNER, &self.layout, source)?;
            Some(inner)
        } else {
            None
        };
        let place = if source.contains(PLACE) {
            source.bytes(PLACE)?
        } else {
            Vec::new()
        };
        self.seek(&place).map_err(|error| StateError::Malformed {
            name: PLACE.to_owned(),
            reason: error.to_string(),
        })?;
        self.batches = batches;
        (self.inner, self.begun) = (inner, None);
        Ok(())
    }
}

/// All parameters of a trainer.
pub fn parameters(trainer: &mut dyn Trainer) -> Vec<f32> {
    let mut parameters = vec![0.0; trainer.layout().len()];
    trainer.read(0, &mut parameters);
    parameters
}

/// Takes a number of inner steps without corrections or interrupts.
///
/// # Errors
/// As [`Trainer::steps`].
pub fn take_steps(trainer: &mut dyn Trainer, steps: u64) -> Result<TrainReport, TrainError> {
    trainer.steps(&mut Count(steps))
}

/// A control that stops after a number of inner steps and corrects nothing.
struct Count(u64);

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        if step.0 < self.0 {
            Proceed::Go
        } else {
            Proceed::Stop
        }
    }

    fn corrects(&self) -> bool {
        false
    }
}

/// Adds a count that a task may not have.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

/// A forward pass that begins before its gradients are asked for, and the place in the data.
impl<T: Task> BurnTrainer<T> {
    /// Where the next batch is; that of a forward pass that has begun counts as the next one.
    fn place(&self) -> Place {
        match &self.begun {
            Some(begun) => begun.before.clone(),
            None => Place {
                batches: self.batches,
                position: self.position(),
            },
        }
    }

    /// The forward pass of the next batch. False where the gradient needs several batches or its norm,
    /// or a gate did not open.
    fn begin(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        self.give_up()?;
        if !self.hands_out_in_pieces() {
            return Ok(false);
        }
        let before = self.place();
        let model = self.model.take().expect(MODEL);
        let (model, mut closed) = gated::close(model, &self.layout, gate);
        self.model = Some(model);
        let mut segments = Segments::cut();
        let passed = self.pass(&mut segments);
        let model = self.model.take().expect(MODEL);
        self.model = Some(gated::open(model, &mut closed));
        match passed {
            Ok((value, loss)) if !closed.is_given_up() => {
                self.begun = Some(Begun {
                    value,
                    loss,
                    segments,
                    before,
                });
                Ok(true)
            }
            passed => {
                self.go_back(&before)?;
                // The loss of a pass that was given up says nothing.
                if closed.is_given_up() {
                    return Ok(false);
                }
                passed.map(|_| false)
            }
        }
    }

    /// Drops a forward pass that has begun: its batch is the next one again.
    fn give_up(&mut self) -> Result<(), TaskError> {
        match self.begun.take() {
            Some(begun) => self.go_back(&begun.before),
            None => Ok(()),
        }
    }

    /// Gradients can leave one by one, unless they are accumulated or clipped, which needs all of them first, or
    /// activations are not kept.
    fn hands_out_in_pieces(&self) -> bool {
        let (accumulate, clip) = (self.task.accumulate(), self.task.clip_norm());
        accumulate <= 1 && clip.is_none() && !self.task.recomputes()
    }

    /// Where the next batch is, as the data says; empty if its number says it.
    fn position(&self) -> Vec<u8> {
        self.task.dataset().map_or(Vec::new(), Dataset::position)
    }

    fn seek(&mut self, position: &[u8]) -> Result<(), TaskError> {
        let fits = match self.task.dataset_mut() {
            Some(data) => data.seek(position),
            None => position.is_empty(),
        };
        fits.then_some(()).ok_or(TaskError::Position)
    }

    fn go_back(&mut self, before: &Place) -> Result<(), TaskError> {
        self.batches = before.batches;
        self.seek(&before.position)
    }

    fn next_batch(&mut self) -> Result<T::Batch, TaskError> {
        for _ in 0..EMPTY_MAX {
            if let Some(error) = self.met.due() {
                return Err(error);
            }
            let batch = self.task.batch(self.batches, &self.device);
            self.batches += 1;
            match batch {
                Ok(batch) => return Ok(batch),
                Err(TaskError::Data(error)) if matches!(error.problem(), Problem::NoneLeft) => {}
                Err(error) => self.met.keep(error)?,
            }
        }
        Err(DataError::nowhere(Problem::NoneLeft).into())
    }

    /// One forward pass over the next batch.
    fn pass(&mut self, segments: &mut Segments) -> Result<(f64, Tensor<1>), TrainError> {
        let batch = self.next_batch()?;
        let model = self.model.as_ref().expect(MODEL);
        let loss = self.task.loss(model, batch, segments);
        let value = loss.clone().into_scalar::<f32>();
        if value.is_finite() {
            Ok((f64::from(value), loss))
        } else {
            Err(TrainError::NotFinite)
        }
    }
}
