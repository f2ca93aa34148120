//! Islands: several trainers of one machine that are one trainer to their peer.
//!
//! Every rank trains the same model on its own part of the peer's data. Between two calls all ranks hold
//! the island's parameters. A stretch of training ends with their mean, weighted by their samples:
//!
//! ```text
//! theta = sum_r n_r theta_r / sum_r n_r
//! ```
//!
//! The Executor, the exchange, the vote and the checkpoint see one trainer whose inner steps have the
//! samples of all ranks. The sum goes through the ranks in their order, in f64, so it has the same bits
//! however the threads ran.

mod control;
mod names;
mod rank;

pub use rank::{RANKS_MAX, Rank};

use crate::state::{StateError, StateSink, StateSource};
use crate::{
    DataReport, Layout, NamedScores, Proceed, StepControl, TrainError, TrainReport, Trainer, Visit,
};
use control::{OfRank, Shared};
use murmurate_protocol::{Blocks, Digest, Evaluation, InnerStep, Participants, Pool, Round};
use names::{RANKS, SinkOf, SourceOf, read_count};
use std::ops::Range;
use std::sync::{Arc, atomic::AtomicBool};

/// Several trainers as one.
pub struct Island {
    /// At least one; all with the same layout.
    ranks: Vec<Box<dyn Trainer>>,
    sum: Sum,
    /// One for each rank, where gradients are exchanged.
    gradients: Vec<Vec<f32>>,
    /// Samples of the last stretch that its control was not told of.
    untold: u64,
}

/// Why an island cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IslandError {
    /// No ranks, or too many.
    #[error("an island of {0} ranks; it must have 1 to {RANKS_MAX}")]
    Ranks(usize),
    /// A rank trains another model.
    #[error(
        "rank {rank} trains another model than rank 0: its first other tensor is `{name}`; give all ranks the \
         same model"
    )]
    Layout {
        /// Its number.
        rank: usize,
        /// The first tensor that differs.
        name: String,
    },
    /// A rank holds other values that are not trained.
    #[error("rank {rank} holds other frozen values than rank 0; give all ranks the same file")]
    Frozen {
        /// Its number.
        rank: usize,
    },
}

impl Island {
    /// Of these ranks, whose parameters become those of rank 0.
    ///
    /// # Errors
    /// If there are none or too many, or one of them trains another model.
    pub fn new(ranks: Vec<Box<dyn Trainer>>) -> Result<Self, IslandError> {
        let count = ranks.len();
        let Some(first) = ranks.first().filter(|_| count <= RANKS_MAX as usize) else {
            return Err(IslandError::Ranks(count));
        };
        let (layout, frozen) = (first.layout(), first.frozen());
        for (rank, other) in ranks.iter().enumerate().skip(1) {
            if let Some(name) = first_other(other.layout(), layout) {
                return Err(IslandError::Layout { rank, name });
            }
            if other.frozen() != frozen {
                return Err(IslandError::Frozen { rank });
            }
        }
        let mut island = Self {
            ranks,
            sum: Sum::default(),
            gradients: Vec::new(),
            untold: 0,
        };
        // Only rank 0 counts.
        island.settle(&[1]);
        Ok(island)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Performs `work` on all ranks at the same time; the results are in their order.
    fn on_all<T: Send>(&mut self, work: impl Fn(usize, &mut dyn Trainer) -> T + Sync) -> Vec<T> {
        let mut ranks = self.ranks.iter_mut().enumerate();
        let first = ranks.next();
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = ranks
                .map(|(index, rank)| scope.spawn(move || work(index, rank.as_mut())))
                .collect();
            let mut results: Vec<T> = first
                .map(|(index, rank)| work(index, rank.as_mut()))
                .into_iter()
                .collect();
            for other in others {
                let result = other.join();
                results.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            results
        })
    }

    /// One stretch of all ranks; `None` where all of them are away.
    fn stretch(
        &mut self,
        control: &mut dyn StepControl,
    ) -> Result<Option<TrainReport>, TrainError> {
        let shared = Shared::new(control, self.untold);
        let results = self.on_all(|_, rank| rank.steps(&mut OfRank(&shared)));
        self.untold = shared.untold();
        let Some(reports) = present(results)? else {
            return Ok(None);
        };
        self.settle(&weights(&reports));
        Ok(Some(together(&reports)))
    }

    /// Gives all ranks the mean of their parameters. A rank without a weight counts nothing.
    fn settle(&mut self, weights: &[u64]) {
        let total: u64 = weights.iter().sum();
        if total == 0 || self.ranks.len() < 2 {
            return;
        }
        for tensor in 0..self.ranks[0].layout().tensors().len() {
            let range = self.ranks[0].layout().tensors()[tensor].range();
            self.sum.begin(range.len());
            for (rank, weight) in self.ranks.iter_mut().zip(weights) {
                if *weight > 0 {
                    rank.read(range.start, self.sum.room());
                    self.sum.add(*weight);
                }
            }
            let mean = self.sum.mean(total);
            for (index, rank) in self.ranks.iter_mut().enumerate() {
                // One that counts alone has the mean already.
                if weights.get(index) != Some(&total) {
                    rank.write(range.start, mean);
                }
            }
        }
    }

    /// One gradient of all ranks into their buffers; `None` where all of them are away.
    fn backward(&mut self) -> Result<Option<Vec<TrainReport>>, TrainError> {
        let mut buffers = std::mem::take(&mut self.gradients);
        buffers.resize(self.ranks.len(), Vec::new());
        let len = self.layout().len();
        let cells: Vec<_> = buffers
            .into_iter()
            .map(|mut buffer| {
                buffer.resize(len, 0.0);
                std::sync::Mutex::new(buffer)
            })
            .collect();
        let results = self.on_all(|index, rank| {
            let buffer = &mut *cells[index].lock().expect(ONE_RANK);
            rank.gradients(&mut |offset, piece| {
                buffer[offset..offset + piece.len()].copy_from_slice(piece);
            })
        });
        let buffers = cells
            .into_iter()
            .map(|cell| cell.into_inner().expect(ONE_RANK));
        self.gradients = buffers.collect();
        present(results)
    }
}

const ONE_RANK: &str = "each rank alone uses its buffer";

/// The first tensor that one of two layouts has and the other has not.
fn first_other(found: &Layout, needed: &Layout) -> Option<String> {
    let (found, needed) = (found.tensors(), needed.tensors());
    let differs = found.iter().zip(needed).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| found.len().min(needed.len()));
    let first = found.get(at).or_else(|| needed.get(at));
    first.map(|tensor| tensor.name.clone())
}

/// The reports of the ranks, empty for those that are away; `None` where all are. The first error in the
/// order of the ranks ends the stretch.
fn present(
    results: Vec<Result<TrainReport, TrainError>>,
) -> Result<Option<Vec<TrainReport>>, TrainError> {
    let mut anyone = false;
    let reports = results.into_iter().map(|result| match result {
        Err(TrainError::Away) => Ok(TrainReport::default()),
        other => {
            anyone = true;
            other
        }
    });
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    Ok(anyone.then_some(reports))
}

/// What the ranks' results count: their samples.
fn weights(reports: &[TrainReport]) -> Vec<u64> {
    let of = |report: &TrainReport| match report.steps {
        0 => 0,
        _ => report.samples.max(1),
    };
    reports.iter().map(of).collect()
}

/// The reports as one: an inner step of the island is one of each rank.
fn together(reports: &[TrainReport]) -> TrainReport {
    let weights = weights(reports);
    let total = weights.iter().sum::<u64>().max(1) as f64;
    let losses = reports.iter().zip(&weights);
    TrainReport {
        steps: reports.iter().map(|report| report.steps).max().unwrap_or(0),
        samples: reports.iter().map(|report| report.samples).sum(),
        loss: losses
            .map(|(report, weight)| report.loss * *weight as f64)
            .sum::<f64>()
            / total,
    }
}

impl Trainer for Island {
    fn layout(&self) -> &Layout {
        self.ranks[0].layout()
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        while control.before(InnerStep(0)) == Proceed::Go {
            if let Some(report) = self.stretch(control)? {
                return Ok(report);
            }
        }
        Ok(TrainReport::default())
    }

    fn deal(&mut self, participants: &Participants) {
        let ranks = self.ranks.iter_mut();
        ranks.for_each(|rank| rank.deal(participants));
    }

    fn pool(&self) -> Option<Pool> {
        self.ranks[0].pool()
    }

    fn train_blocks(&mut self, blocks: &Blocks) {
        let ranks = self.ranks.iter_mut();
        ranks.for_each(|rank| rank.train_blocks(blocks));
    }

    fn finished_blocks(&self) -> u64 {
        let finished = self.ranks.iter().map(|rank| rank.finished_blocks());
        finished.min().unwrap_or(0)
    }

    fn data_reports(&self) -> Vec<Arc<DataReport>> {
        let ranks = self.ranks.iter();
        ranks.flat_map(|rank| rank.data_reports()).collect()
    }

    fn named_scores(&self) -> NamedScores {
        self.ranks[0].named_scores()
    }

    fn batch(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.batch()).sum()
    }

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        let reports = loop {
            if let Some(reports) = self.backward()? {
                break reports;
            }
        };
        let weights = weights(&reports);
        let total = weights.iter().sum::<u64>().max(1);
        for tensor in self.ranks[0].layout().tensors() {
            let range = tensor.range();
            self.sum.begin(range.len());
            for (gradient, weight) in self.gradients.iter().zip(&weights) {
                if *weight > 0 {
                    self.sum.room().copy_from_slice(&gradient[range.clone()]);
                    self.sum.add(*weight);
                }
            }
            on_ready(range.start, self.sum.mean(total));
        }
        Ok(together(&reports))
    }

    fn is_at_hand(&self) -> bool {
        self.ranks.iter().all(|rank| rank.is_at_hand())
    }

    fn visit(&mut self, range: Range<usize>, f: Visit<'_>) {
        let (first, others) = self.ranks.split_at_mut(1);
        first[0].visit(range, &mut |offset, piece| {
            f(offset, piece);
            for other in &mut *others {
                other.write(offset, piece);
            }
        });
    }

    fn view(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &[f32])) {
        self.ranks[0].view(range, f);
    }

    fn read(&mut self, offset: usize, into: &mut [f32]) {
        self.ranks[0].read(offset, into);
    }

    fn write(&mut self, offset: usize, values: &[f32]) {
        self.ranks
            .iter_mut()
            .for_each(|rank| rank.write(offset, values));
    }

    fn frozen(&self) -> Option<Digest> {
        self.ranks[0].frozen()
    }

    fn leaving(&mut self, leaving: Arc<AtomicBool>) {
        for rank in &mut self.ranks {
            rank.leaving(Arc::clone(&leaving));
        }
    }

    fn finish(&mut self, agreed: &[f32]) {
        self.ranks.iter_mut().for_each(|rank| rank.finish(agreed));
    }

    fn evaluate(&mut self) -> Result<Evaluation, TrainError> {
        loop {
            let mut failed = None;
            for rank in &mut self.ranks {
                match rank.evaluate() {
                    Ok(evaluation) => return Ok(evaluation),
                    Err(TrainError::Away) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    fn holds_a_sample(&self) -> bool {
        self.ranks.iter().all(|rank| rank.holds_a_sample())
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        // That of the first rank that is there: it must be the same one for all contributions of a round.
        let first = |rank: &mut Box<dyn Trainer>| match rank.held_loss(round, batches) {
            Err(TrainError::Away) => None,
            measured => Some(measured),
        };
        let measured = self.ranks.iter_mut().find_map(first);
        measured.unwrap_or(Err(TrainError::Away))
    }

    fn save(&mut self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        sink.bytes(RANKS, &(self.ranks.len() as u64).to_le_bytes())?;
        for (rank, trainer) in self.ranks.iter_mut().enumerate() {
            trainer.save(&mut SinkOf { rank, sink })?;
        }
        Ok(())
    }

    fn load(&mut self, source: &dyn StateSource) -> Result<(), StateError> {
        // The checkpoint may be that of another number of ranks: those without a state of their own take
        // one that is there.
        let saved = if source.contains(RANKS) {
            read_count(&source.bytes(RANKS)?)?
        } else {
            1
        };
        for (rank, trainer) in self.ranks.iter_mut().enumerate() {
            let rank = rank % saved;
            trainer.load(&SourceOf { rank, source })?;
        }
        Ok(())
    }
}

/// The weighted mean of a tensor.
///
/// Sums in f64. With equal values, and with one contributor, the mean is exact: a weight is a number of
/// samples, and its product with an f32 fits an f64.
#[derive(Default)]
struct Sum {
    sums: Vec<f64>,
    values: Vec<f32>,
}

impl Sum {
    /// A mean of tensors of this length begins.
    fn begin(&mut self, len: usize) {
        self.sums.clear();
        self.sums.resize(len, 0.0);
        self.values.resize(len, 0.0);
    }

    /// Where the next contribution goes.
    fn room(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Adds the contribution in the room, times its weight.
    fn add(&mut self, weight: u64) {
        let weight = weight as f64;
        for (sum, value) in self.sums.iter_mut().zip(&self.values) {
            *sum += weight * f64::from(*value);
        }
    }

    /// The mean, for weights of this sum.
    fn mean(&mut self, total: u64) -> &mut [f32] {
        let total = total as f64;
        for (value, sum) in self.values.iter_mut().zip(&self.sums) {
            *value = (*sum / total) as f32;
        }
        &mut self.values
    }
}

#[cfg(test)]
mod tests;
