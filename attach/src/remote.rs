//! The trainer as the Executor sees it.
//!
//! A trainer that is gone is waited for: an error would make the peer leave the swarm. The peer's
//! rounds go on without it meanwhile, as for any straggler. The next trainer gets the parameters of the
//! last cut and the last known state, and the round's training begins again. A rank of an island is waited
//! for only while there is no other; else the island's stretch ends without it.

mod session;
mod waiting;
mod watch;

pub use waiting::Waiting;

use crate::door::Door;
use crate::gathering::{Gathering, Here};
use crate::group::Group;
use crate::limits::{STATE_AT_CUT_BYTES_MAX, UNCHANGED_MAX, UNCHANGED_TOLD};
use crate::link::Link;
use crate::memory::Memory;
use crate::message::{FromTrainer, Hello, ToTrainer};
use crate::pace::Pace;
use crate::state::State;
use crate::terms::{Shard, Terms};
use murmurate_protocol::{Evaluation, InnerStep, Participants, Round};
use murmurate_strategies::state::{StateError, StateSink, StateSource, number};
use murmurate_strategies::{
    Layout, NamedScores, Proceed, Said, StepControl, TrainError, TrainReport, Trainer,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The trainer's state in a checkpoint.
pub(crate) const STATE: &str = "trainer.attached.state";

/// Inner steps of the run in a checkpoint.
const STEPS: &str = "trainer.attached.steps";

/// A trainer in another process.
#[derive(Debug)]
pub struct RemoteTrainer {
    terms: Terms,
    door: Door,
    shared: Shared,
    session: Option<Session>,
    /// The process group of a supervised trainer.
    group: Option<Arc<Group>>,
    /// Becomes true when the peer leaves.
    leaving: Arc<AtomicBool>,
    /// Samples of the last inner step.
    samples: u64,
    /// The last trainer that came was refused: it will not come again by itself.
    refused: bool,
}

/// State that outlives a trainer.
#[derive(Debug)]
pub(crate) struct Shared {
    layout: Layout,
    memory: Memory,
    state: State,
    /// Inner steps of the run up to the last cut.
    steps: u64,
    /// Rounds in a row that changed no parameter.
    unchanged: u32,
    gathering: Arc<Gathering>,
    /// Of the last evaluation by any rank of the island.
    named: NamedScores,
}

/// An attached trainer.
#[derive(Debug)]
pub(crate) struct Session {
    link: Link,
    /// Its introduction, without its tensors.
    hello: Hello,
    /// The part of the data that it was last told of.
    shard: Shard,
    pace: Pace,
    _here: Here,
}

/// Why an exchange of messages with the trainer failed.
#[derive(Debug)]
enum Cut {
    /// The trainer is gone: the next one begins again.
    Lost,
    /// The island goes on without this rank.
    Away,
    /// The peer leaves, and there is no trainer to wait for.
    Leaving,
    /// The run cannot go on.
    Failed(TrainError),
}

/// The reason for an end of training because the peer leaves.
const LEFT: &str = "the peer leaves";

/// One inner step as the trainer tells it.
struct Step {
    samples: u64,
    loss: f64,
}

impl RemoteTrainer {
    /// A trainer that can evaluate is attached.
    pub fn evaluates(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.hello.evaluate)
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// `Ok` if training begins again: an only trainer is waited for, a rank is not.
    fn again_after(&self, cut: Cut) -> Result<(), TrainError> {
        match cut {
            Cut::Lost if self.terms.rank.is_alone() => Ok(()),
            Cut::Lost | Cut::Away => Err(TrainError::Away),
            Cut::Leaving => Err(TrainError::Backend(LEFT.to_owned())),
            Cut::Failed(error) => Err(error),
        }
    }

    /// Takes steps until `control` stops them, then the cut. The next trainer would begin here again.
    fn round(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, Cut> {
        self.settle()?;
        self.tell_shard()?;
        let (mut report, mut losses) = (TrainReport::default(), 0.0);
        while control.before(InnerStep(report.steps)) == Proceed::Go {
            let rate = control.rule(InnerStep(report.steps)).rate;
            let step = self.step(rate)?;
            control.after(InnerStep(report.steps), step.samples);
            report.steps += 1;
            report.samples += step.samples;
            losses += step.loss;
        }
        if report.steps > 0 {
            self.cut()?;
            self.shared.steps += report.steps;
            report.loss = losses / report.steps as f64;
        }
        Ok(report)
    }

    /// Tells the trainer its part of the data, if that has changed.
    fn tell_shard(&mut self) -> Result<(), Cut> {
        let shard = self.terms.part();
        match &mut self.session {
            Some(session) if session.shard != shard => session.shard = shard,
            _ => return Ok(()),
        }
        self.send(&ToTrainer::Deal { shard })
    }

    /// One inner step, with this factor on the learning rate.
    fn step(&mut self, rate: f64) -> Result<Step, Cut> {
        self.shared.state.is_fresh = false;
        self.send(&ToTrainer::Go { rate })?;
        let message = self.watch_step()?;
        let FromTrainer::Step { samples, loss } = message else {
            return Err(self.unexpected("step", &message));
        };
        if !(1..=crate::limits::SAMPLES_MAX).contains(&samples) {
            let reason =
                format!("an inner step of {samples} samples; step(samples=N) needs 1 to 2^32");
            return Err(self.broken(&reason));
        }
        let Some(loss) = loss.filter(|loss| loss.is_finite()) else {
            self.refuse(
                "the loss is not finite: lower the learning rate, or look for a division by zero",
            );
            return Err(Cut::Failed(TrainError::NotFinite));
        };
        self.samples = samples;
        self.group.iter().for_each(|group| group.stepped());
        Ok(Step { samples, loss })
    }

    /// Takes the trainer's parameters, and its state where that is small.
    fn cut(&mut self) -> Result<(), Cut> {
        let (slot, file) = (self.shared.memory.spare(), self.shared.state.spare());
        let has_state = self.session.as_ref().is_some_and(|s| s.hello.state);
        let state = has_state.then_some(file);
        self.send(&ToTrainer::Cut { slot, state })?;
        let message = self.await_copy()?;
        let FromTrainer::Cut { state: bytes } = message else {
            return Err(self.unexpected("cut", &message));
        };
        if let (Some(bytes), true) = (bytes, has_state)
            && let Err(reason) = self.state_written(bytes)
        {
            return Err(self.broken(&reason));
        }
        self.notice_unchanged()?;
        self.shared.memory.swap();
        self.group.iter().for_each(|group| group.trained());
        Ok(())
    }

    /// Notices a loop that trains nothing: its rounds would be complete, and the model unchanged.
    fn notice_unchanged(&mut self) -> Result<(), Cut> {
        if !self.shared.memory.is_unchanged() {
            self.shared.unchanged = 0;
            return Ok(());
        }
        self.shared.unchanged += 1;
        let text = format!(
            "the last {} rounds changed no parameter: check that the loop calls optimizer.step() before \
             swarm.step(), that the optimizer was made for the parameters that are attached, and that its \
             learning rate is not zero",
            self.shared.unchanged
        );
        match self.shared.unchanged {
            UNCHANGED_TOLD => (self.terms.notes)(&text),
            UNCHANGED_MAX.. => {
                self.refuse(&text);
                return Err(Cut::Failed(TrainError::Backend(text)));
            }
            _ => {}
        }
        Ok(())
    }

    fn state_written(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > STATE_AT_CUT_BYTES_MAX {
            return Err(format!("a state of {bytes} bytes at a cut"));
        }
        self.shared.state.written(bytes)
    }

    /// Evaluates, with the next trainer where this one goes away.
    fn measure(&mut self) -> Result<(Evaluation, Said), TrainError> {
        loop {
            match self.score() {
                Ok(found) => return Ok(found),
                Err(cut) => self.again_after(cut)?,
            }
        }
    }

    /// Asks for the state, for a checkpoint. The last known one stays where the trainer is gone.
    fn save_state(&mut self) -> Result<(), Cut> {
        if self.shared.state.is_fresh || !self.session.as_ref().is_some_and(|s| s.hello.state) {
            return Ok(());
        }
        self.send(&ToTrainer::Save {
            file: self.shared.state.spare(),
        })?;
        let message = self.await_copy()?;
        let FromTrainer::Saved { bytes } = message else {
            return Err(self.unexpected("saved", &message));
        };
        let written = self.shared.state.written(bytes);
        written.map_err(|reason| self.broken(&reason))
    }

    fn score(&mut self) -> Result<(Evaluation, Said), Cut> {
        self.settle_if_here()?;
        if !self.session.as_ref().is_some_and(|s| s.hello.evaluate) {
            let text = "attach(evaluate=...) was not given".to_owned();
            return Err(Cut::Failed(TrainError::Backend(text)));
        }
        self.send(&ToTrainer::Evaluate)?;
        let message = self.await_score()?;
        let FromTrainer::Score {
            loss,
            accuracy,
            samples,
            named,
        } = message
        else {
            return Err(self.unexpected("score", &message));
        };
        if accuracy.is_some_and(|a| !(0.0..=1.0).contains(&a)) {
            return Err(self.broken(
                "an accuracy outside 0 to 1; evaluate() returns (loss, accuracy or None, samples)",
            ));
        }
        let Some(loss) = loss.filter(|loss| loss.is_finite()) else {
            let text = "the loss that evaluate() returned is not finite".to_owned();
            return Err(Cut::Failed(TrainError::Backend(text)));
        };
        let evaluation = Evaluation {
            loss,
            accuracy,
            top_5: None,
            samples,
        };
        Ok((evaluation, named))
    }
}

impl Trainer for RemoteTrainer {
    fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    fn leaving(&mut self, leaving: Arc<AtomicBool>) {
        self.leaving = leaving;
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        loop {
            match self.round(control) {
                Ok(report) => return Ok(report),
                Err(Cut::Leaving) => return Ok(TrainReport::default()),
                Err(cut) => self.again_after(cut)?,
            }
        }
    }

    fn deal(&mut self, participants: &Participants) {
        if self.terms.dealt {
            self.terms.shard = participants.place().into();
            self.terms.shards = participants.count().into();
        }
    }

    fn batch(&self) -> u64 {
        self.samples
    }

    fn gradients(
        &mut self,
        on_ready: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<TrainReport, TrainError> {
        let step = loop {
            let ready = self.settle().and_then(|()| self.tell_shard());
            match ready.and_then(|()| self.step(1.0)) {
                Ok(step) => break step,
                Err(cut) => self.again_after(cut)?,
            }
        };
        self.shared.steps += 1;
        self.group.iter().for_each(|group| group.trained());
        let mut gradient = Vec::new();
        for tensor in self.shared.layout.tensors() {
            gradient.resize(tensor.len(), 0.0);
            self.shared
                .memory
                .read_spare(tensor.range().start, &mut gradient);
            on_ready(tensor.range().start, &mut gradient);
        }
        Ok(TrainReport {
            steps: 1,
            samples: step.samples,
            loss: step.loss,
        })
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn visit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        self.shared.memory.edit(range, f);
    }

    fn view(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &[f32])) {
        self.shared.memory.view(range, f);
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        self.shared.memory.read(offset, into);
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        self.shared.memory.write(offset, values);
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        let (evaluation, named) = self.measure()?;
        if let Some(line) = self.shared.named.take(named) {
            (self.terms.notes)(&line);
        }
        Ok(evaluation)
    }

    fn named_scores(&self) -> NamedScores {
        self.shared.named.clone()
    }

    fn finish(&mut self, agreed: &[f32]) {
        self.shared.memory.write(0, agreed);
        if self.session.is_some() {
            // One that is gone does not take them.
            let _ = self.settle();
        }
    }

    fn holds_a_sample(&self) -> bool {
        self.evaluates()
    }

    fn held_loss(&mut self, _: Round, _: u16) -> Result<f64, TrainError> {
        // The protocol with an attached trainer has no part of an evaluation: it evaluates as it always does.
        // Its named numbers are not those of the model, so they are not kept.
        self.measure().map(|(found, _)| found.loss)
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        // Without a trainer the last known state is the best there is; it is not waited for.
        if let Err(Cut::Failed(error)) = self.save_state() {
            return Err(StateError::Host(error.to_string()));
        }
        sink.bytes(STEPS, &self.shared.steps.to_le_bytes())?;
        let bytes = self.shared.state.read();
        match bytes.map_err(|e| StateError::Host(e.to_string()))? {
            Some(bytes) => sink.bytes(STATE, &bytes),
            None => Ok(()),
        }
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        let steps = number(source, STEPS)?;
        if source.contains(STATE) {
            let bytes = source.bytes(STATE)?;
            let put = self.shared.state.put(&bytes);
            put.map_err(|e| StateError::Host(e.to_string()))?;
        }
        self.shared.steps = steps;
        Ok(())
    }
}

impl Drop for RemoteTrainer {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.training_is_over();
        }
        if let Some(session) = &mut self.session {
            // One that is gone does not hear it.
            let _ = session.link.send(&ToTrainer::Stop);
        }
    }
}
