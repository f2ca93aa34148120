//! Evaluates equal parameters once. After a round on which all peers agree, every peer would measure the
//! same bits on the same held-out data.

use crate::task::{TrainerFactory, TrainerRequest};
use murmurate_protocol::{Blocks, Digest, Evaluation, Participants, Pool, Round};
use murmurate_strategies::state::{StateError, StateSink, StateSource};
use murmurate_strategies::{Layout, StepControl, TrainError, TrainReport, Trainer};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The hash of the parameters that were measured last, and the result.
type Last = Arc<Mutex<Option<(Digest, Evaluation)>>>;

/// Builds trainers of one run that share what they measured last.
pub(super) struct Once<'a> {
    of: &'a dyn TrainerFactory,
    last: Last,
}

impl<'a> Once<'a> {
    pub(super) fn new(of: &'a dyn TrainerFactory) -> Self {
        Self {
            of,
            last: Last::default(),
        }
    }
}

impl TrainerFactory for Once<'_> {
    fn trainer(&self, request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String> {
        Ok(Box::new(Sharing {
            trainer: self.of.trainer(request)?,
            last: Arc::clone(&self.last),
        }))
    }
}

struct Sharing {
    trainer: Box<dyn Trainer>,
    last: Last,
}

impl Sharing {
    fn digest(&mut self) -> Digest {
        let mut bytes = vec![0; 4 * self.trainer.layout().len()];
        let range = 0..self.trainer.layout().len();
        self.trainer.visit(range, &mut |offset, values| {
            let into = bytes[4 * offset..].chunks_exact_mut(4);
            for (bytes, value) in into.zip(values) {
                bytes.copy_from_slice(&value.to_le_bytes());
            }
        });
        Digest::of(&bytes)
    }
}

impl Trainer for Sharing {
    fn layout(&self) -> &Layout {
        self.trainer.layout()
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        self.trainer.steps(control)
    }

    fn deal(&mut self, participants: &Participants) {
        self.trainer.deal(participants);
    }

    fn pool(&self) -> Option<Pool> {
        self.trainer.pool()
    }

    fn train_blocks(&mut self, blocks: &Blocks) {
        self.trainer.train_blocks(blocks);
    }

    fn finished_blocks(&self) -> u64 {
        self.trainer.finished_blocks()
    }

    fn batch(&self) -> u64 {
        self.trainer.batch()
    }

    fn gradients(
        &mut self,
        on_ready: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<TrainReport, TrainError> {
        self.trainer.gradients(on_ready)
    }

    fn visit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        self.trainer.visit(range, f);
    }

    fn is_at_hand(&self) -> bool {
        self.trainer.is_at_hand()
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        self.trainer.read(offset, into);
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        self.trainer.write(offset, values);
    }

    fn frozen(&self) -> Option<Digest> {
        self.trainer.frozen()
    }

    fn leaving(&mut self, leaving: Arc<AtomicBool>) {
        self.trainer.leaving(leaving);
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        let digest = self.digest();
        let last = Arc::clone(&self.last);
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, evaluation)) = &*last
            && *of == digest
        {
            return Ok(*evaluation);
        }
        let evaluation = self.trainer.evaluate()?;
        *last = Some((digest, evaluation));
        Ok(evaluation)
    }

    fn holds_a_sample(&self) -> bool {
        self.trainer.holds_a_sample()
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        self.trainer.held_loss(round, batches)
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        self.trainer.save(sink)
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        self.trainer.load(source)
    }
}
