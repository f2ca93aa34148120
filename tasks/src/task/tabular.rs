//! Classification and regression on the rows of a table.

use super::{Score, Task};
use crate::config::{NO_TABLE, TabularConfig};
use crate::data::{BadRecords, Dataset, Shards, Table, Targets, Units};
use crate::model::Perceptron;
use crate::{Segments, TaskError, loss, rng};
use burn::tensor::{Device, Int, Tensor, TensorData};
use murmurate_protocol::Digest;
use murmurate_strategies::{DataReport, TensorSpec};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// The most rows in an evaluation batch.
const HELD_BATCH_MAX: usize = 2_000;

/// Values of a batch that an evaluation does not exceed, except with very wide rows.
const HELD_VALUES: usize = 1_600_000;

/// A perceptron and the rows of a table.
pub struct TabularTask {
    table: Table,
    /// This shard's rows.
    train: Vec<u32>,
    held: Vec<u32>,
    layers: usize,
    hidden: usize,
    units: Units,
    bad: BadRecords,
}

/// Targets of the rows of a batch.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Classes, `[n]`.
    Labels(Tensor<1, Int>),
    /// Numbers, `[n, 1]`.
    Values(Tensor<2>),
}

impl TabularTask {
    /// Reads the table, and keeps one shard of its rows and those held out.
    ///
    /// # Errors
    /// If the configuration, the table or the shard is invalid.
    pub fn new(config: &TabularConfig, seed: u64, shards: &Shards) -> Result<Self, TaskError> {
        let path = config.data.path(NO_TABLE)?;
        let bad = BadRecords::new(config.on_bad_record);
        let table = Table::read(path, config, &bad)?;
        let (rows, held) = table.split(config.held_out)?;
        let labels: Vec<u16> = match table.targets() {
            Targets::Labels { labels, .. } => {
                rows.iter().map(|&row| labels[row as usize]).collect()
            }
            Targets::Values(_) => vec![0; rows.len()],
        };
        let mine = shards.samples(&labels, 1)?;
        let train: Vec<u32> = mine.iter().map(|&place| rows[place as usize]).collect();
        let batch = config.batch as usize;
        let units = Units::new(train.len(), batch, shards, seed, || fingerprint(&table))?;
        Ok(Self {
            units,
            table,
            train,
            held,
            layers: config.layers as usize,
            hidden: config.hidden as usize,
            bad,
        })
    }

    fn held_batch(&self) -> usize {
        (HELD_VALUES / self.table.inputs().max(1)).clamp(1, HELD_BATCH_MAX)
    }

    fn rows(&self, rows: &[u32], device: &Device) -> (Tensor<2>, Wanted) {
        let (n, inputs) = (rows.len(), self.table.inputs());
        let mut values = Vec::with_capacity(n * inputs);
        for &row in rows {
            self.table.append(row as usize, &mut values);
        }
        let x = Tensor::from_data(TensorData::new(values, [n, inputs]), device);
        let at = |row: &u32| *row as usize;
        let wanted = match self.table.targets() {
            Targets::Labels { labels, .. } => {
                let labels: Vec<i32> = rows.iter().map(|row| labels[at(row)].into()).collect();
                Wanted::Labels(Tensor::from_data(TensorData::new(labels, [n]), device))
            }
            Targets::Values(values) => {
                let values: Vec<f32> = rows.iter().map(|row| values[at(row)]).collect();
                Wanted::Values(Tensor::from_data(TensorData::new(values, [n, 1]), device))
            }
        };
        (x, wanted)
    }
}

/// Names the rows of a table.
fn fingerprint(table: &Table) -> Digest {
    let mut values = Vec::new();
    let mut digest = Digest::of(b"table");
    let rows = match table.targets() {
        Targets::Labels { labels, .. } => labels.len(),
        Targets::Values(all) => all.len(),
    };
    for row in 0..rows {
        values.clear();
        table.append(row, &mut values);
        match table.targets() {
            Targets::Labels { labels, .. } => values.push(f32::from(labels[row])),
            Targets::Values(all) => values.push(all[row]),
        }
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        let bytes: Vec<u8> = digest.as_bytes().iter().copied().chain(bytes).collect();
        digest = Digest::of(&bytes);
    }
    digest
}

impl Task for TabularTask {
    type Model = Perceptron;
    type Batch = (Tensor<2>, Wanted);

    fn meaning(&self) -> Option<Digest> {
        Some(self.table.meaning())
    }

    fn model(&self, device: &Device) -> Perceptron {
        let outputs = match self.table.targets() {
            Targets::Labels { classes, .. } => *classes,
            Targets::Values(_) => 1,
        };
        Perceptron::zeros(
            self.table.inputs(),
            self.layers,
            self.hidden,
            outputs,
            device,
        )
    }

    /// He's initialization for layers before a relu; zero for the output and all biases.
    fn initial(&self, tensor: &TensorSpec, values: &mut [f32], rng: &mut ChaCha8Rng) {
        match tensor.shape.len() {
            2 if !tensor.name.starts_with("output.") => {
                rng::fan_in(tensor, std::f32::consts::SQRT_2, values, rng);
            }
            _ => values.fill(0.0),
        }
    }

    fn dataset(&self) -> Option<&dyn Dataset> {
        Some(&self.units)
    }

    fn dataset_mut(&mut self) -> Option<&mut dyn Dataset> {
        Some(&mut self.units)
    }

    fn samples(&self) -> u64 {
        self.units.batch_len() as u64
    }

    fn batch(&mut self, number: u64, device: &Device) -> Result<Self::Batch, TaskError> {
        let units = self.units.batch(number).into_iter();
        let rows: Vec<u32> = units.map(|unit| self.train[unit as usize]).collect();
        Ok(self.rows(&rows, device))
    }

    /// Cross-entropy, or the mean squared error.
    fn loss(
        &self,
        model: &Perceptron,
        (rows, wanted): Self::Batch,
        segments: &mut Segments,
    ) -> Tensor<1> {
        let found = model.segmented(rows, segments);
        match wanted {
            Wanted::Labels(labels) => loss::cross_entropy(found, labels),
            Wanted::Values(values) => (found - values).square().mean(),
        }
    }

    fn data_report(&self) -> Option<Arc<DataReport>> {
        Some(self.bad.report())
    }

    fn held_batches(&self) -> usize {
        self.held.len().div_ceil(self.held_batch())
    }

    fn score(
        &mut self,
        model: &Perceptron,
        index: usize,
        device: &Device,
    ) -> Result<Score, TaskError> {
        let start = index * self.held_batch();
        let end = (start + self.held_batch()).min(self.held.len());
        let (rows, wanted) = self.rows(&self.held[start..end], device);
        let found = model.segmented(rows, &mut Segments::whole());
        let (loss_sum, right) = match wanted {
            Wanted::Labels(labels) => {
                let (loss_sum, right) = loss::score(found, labels);
                (loss_sum, Some(right))
            }
            Wanted::Values(values) => {
                let squares = (found - values).square().sum().into_scalar::<f32>();
                (f64::from(squares), None)
            }
        };
        Ok(Score {
            loss_sum,
            right,
            right_5: None,
            samples: (end - start) as u64,
        })
    }
}
