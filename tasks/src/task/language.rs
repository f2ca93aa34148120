//! Byte-level language modelling on any text: windows of a peer's range of bytes.

use super::windows::{Held, tensors};
use super::{Score, Task};
use crate::config::{LanguageConfig, NO_TEXT};
use crate::data::{BadRecords, Dataset, Dealt, Problem, Shards, Units, at, read_text, split_text};
use crate::model::{Transformer, TransformerShape};
use crate::{Segments, TaskError, loss, rng};
use burn::tensor::{Device, Int, Tensor};
use murmurate_protocol::Digest;
use murmurate_strategies::{DataReport, TensorSpec};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Windows in an evaluation batch.
const HELD_BATCH: usize = 16;

/// Shortest block of a text that the peers divide, in windows. A window that begins in a block may end in
/// the next one; with longer blocks fewer do.
const BLOCK_WINDOWS: usize = 8;

/// A language model and its text.
pub struct LanguageTask {
    shape: TransformerShape,
    batch: usize,
    train: Vec<u8>,
    held: Held<u8>,
    /// Its blocks of text.
    units: Units,
    bad: BadRecords,
}

impl LanguageTask {
    /// Reads the text and keeps one shard of it and the held-out part.
    ///
    /// # Errors
    /// If the text or the shard is invalid.
    pub fn new(config: &LanguageConfig, seed: u64, shards: &Shards) -> Result<Self, TaskError> {
        let path = config.data.path(NO_TEXT)?;
        let bad = BadRecords::new(config.on_bad_record);
        let text = read_text(path, config.column.as_deref(), &bad)?;
        let task = Self::of_text(config, &text, seed, shards)?;
        Ok(Self { bad, ..task })
    }

    /// Like [`LanguageTask::new`], for text in memory. Errors name it by `config.data`.
    ///
    /// # Errors
    /// If the text or the shard is invalid.
    pub fn of_text(
        config: &LanguageConfig,
        text: &[u8],
        seed: u64,
        shards: &Shards,
    ) -> Result<Self, TaskError> {
        let window = config.context as usize + 1;
        let (train, held) = split_text(text.len(), config.held_out);
        if train.len() < window || held.len() < window {
            let share = config.held_out.min(1.0 - config.held_out);
            let needed = (window as f64 / share).ceil() as usize;
            let found = text.len();
            let file = String::from(config.data.clone());
            return Err(at(file.as_ref())(Problem::TooShort { found, needed }).into());
        }
        let mine = shards.range(train.len(), window)?;
        let blocks = (mine.len() / (BLOCK_WINDOWS * window)).max(1);
        let batch = config.batch as usize;
        let fingerprint = || Digest::of(&text[mine.clone()]);
        let units = Units::new(blocks, batch, shards, seed, fingerprint)?;
        Ok(Self {
            units,
            shape: shape(config),
            batch,
            train: text[mine].to_vec(),
            held: Held {
                tokens: text[held].to_vec(),
                context: config.context as usize,
                step: 1,
            },
            bad: BadRecords::default(),
        })
    }

    /// The dimensions of the model.
    pub fn shape(&self) -> TransformerShape {
        self.shape
    }
}

pub(crate) fn shape(config: &LanguageConfig) -> TransformerShape {
    TransformerShape {
        layers: config.layers as usize,
        width: config.width as usize,
        heads: config.heads as usize,
        context: config.context as usize,
    }
}

impl Task for LanguageTask {
    type Model = Transformer;
    type Batch = (Tensor<2, Int>, Tensor<1, Int>);

    fn model(&self, device: &Device) -> Transformer {
        Transformer::zeros(self.shape, device)
    }

    /// The last matrix of a block starts at zero, so that each block starts as the identity. The
    /// output starts at zero, so that all bytes have the same probability. Embeddings have the
    /// standard deviation 0.5, the rest `1 / sqrt(fan_in)`.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        let ends = ["join.weight", "narrow.weight", "output.weight"];
        if ends.iter().any(|end| tensor.name.ends_with(end)) {
            return values.fill(0.0);
        }
        let table = matches!(tensor.name.as_str(), "embed" | "position");
        let gain = if table {
            0.5 * (tensor.shape[0] as f32).sqrt()
        } else {
            1.0
        };
        rng::fan_in(tensor, gain, values, rng);
    }

    fn dataset(&self) -> Option<&dyn Dataset> {
        Some(&self.units)
    }

    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        Some(&mut self.units)
    }

    fn samples(&self) -> u64 {
        self.batch as u64
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let mut rng = rng::stream(self.units.seed(), rng::BATCHES, number);
        let window = self.shape.context + 1;
        let starts = (self.train.len() - window + 1) as u64;
        let times = BLOCK_WINDOWS as u64;
        let told = self.units.of_blocks(self.batch, times);
        let start = |row: usize| match self.units.dealt() {
            Some(dealt) => {
                let unit = told.as_ref().map(|units| units[row]);
                start_in(dealt, unit, starts, &mut rng)
            }
            None => rng::below(starts, &mut rng) as usize,
        };
        let starts: Vec<usize> = (0..self.batch).map(start).collect();
        Ok(tensors(&self.train, &starts, self.shape.context, device))
    }

    fn loss(
        &self,
        model: &Transformer,
        (bytes, next): Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        loss::cross_entropy(model.segmented(bytes, segments), next)
    }

    fn data_report(&self) -> Option<Arc<DataReport>> {
        Some(self.bad.report())
    }

    fn held_batches(&self) -> usize {
        self.held.batches(HELD_BATCH)
    }

    fn score(
        &mut self,
        model: &Transformer,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError> {
        let starts = self.held.starts(index, HELD_BATCH);
        let (bytes, next) = tensors(&self.held.tokens, &starts, self.held.context, device);
        let samples = next.dims()[0] as u64;
        let logits = model.segmented(bytes, &mut Segments::whole());
        Ok(Score {
            loss_sum: loss::score(logits, next).0,
            samples,
            ..Score::default()
        })
    }
}

/// Where a window begins: anywhere in the block that it is told, or in one of this peer's. The blocks divide the `starts` places at
/// which a window may begin, of which there are more than blocks.
fn start_in(dealt: &Dealt, told: Option<u32>, starts: u64, rng: &mut ChaCha8Rng) -> usize {
    let blocks = dealt.total() as u64;
    let block = told.unwrap_or_else(|| {
        let place = rng::below(dealt.count() as u64, rng) as u32;
        dealt.unit(place)
    });
    let block = u64::from(block);
    let cut = |block: u64| (u128::from(starts) * u128::from(block) / u128::from(blocks)) as u64;
    let (begin, end) = (cut(block), cut(block + 1));
    (begin + rng::below(end - begin, rng)) as usize
}
