//! Data that the machines divide: which blocks each of them trains, sample by sample.

use crate::scenario::DataSpec;
use murmurate_protocol::{Blocks, TrainSummary};
use murmurate_strategies::BlockFeed;
use serde::Serialize;

/// The blocks of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    blocks: BlockFeed,
    samples: u64,
    /// The block of each sample that was trained since the last look.
    trained: Vec<u64>,
}

impl Feed {
    pub(crate) fn new(spec: DataSpec) -> Self {
        Self {
            blocks: BlockFeed::default(),
            samples: spec.samples,
            trained: Vec::new(),
        }
    }

    /// A stretch of training begins.
    pub(crate) fn take(&mut self, blocks: &Blocks) {
        self.blocks.take(blocks);
    }

    /// It has ended: says how many blocks are finished.
    pub(crate) fn train(&mut self, summary: &mut TrainSummary) {
        for _ in 0..summary.samples {
            let next = self.blocks.next(|_| self.samples);
            self.trained.extend(next.map(|(block, _)| block));
        }
        summary.blocks = self.blocks.finished();
    }

    /// The blocks of the samples that were trained since the last call.
    pub(crate) fn trained(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.trained)
    }
}

/// How often the parameters hold the samples of a data set that the machines divide, in the epochs that are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DataReport {
    /// Number of these epochs.
    pub epochs: u64,
    /// Their samples.
    pub samples: u64,
    /// Samples that are missing.
    pub unseen: u64,
    /// Samples that are there once too often.
    pub twice: u64,
}
