//! How contributions to a shard are combined: their weighted mean, or a rule that compares them.

use crate::aggregate::{Aggregator, Input};
use crate::executor::codecs::Codecs;
use crate::executor::host::Host;
use murmurate_protocol::{SliceId, WorkError};

/// The plan's aggregation rule.
pub(super) struct Rule {
    /// `None` is the weighted mean, which needs no decoded contributions.
    robust: Option<Box<dyn Aggregator>>,
    /// Decoded contributions. The buffers are kept: each member's values of one shard, which is
    /// about one times the parameters for the shard of one owner.
    decoded: Vec<Vec<f32>>,
}

impl Rule {
    pub(super) const fn new(robust: Option<Box<dyn Aggregator>>) -> Self {
        Self {
            robust,
            decoded: Vec::new(),
        }
    }

    /// Number of f32 in the buffers.
    pub(super) fn len(&self) -> usize {
        self.decoded.iter().map(Vec::len).sum()
    }

    /// `acc = sum_k a_k decode(slice_k) / sum_k a_k`, or `acc = rule(decode(slice_1), ...)`, in the
    /// order given; `acc` becomes `len` long. Every contribution passes the quarantine before a
    /// rule sees it.
    pub(super) fn reduce(
        &mut self,
        codecs: &Codecs,
        acc: &mut Vec<f32>,
        len: usize,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        acc.resize(len, 0.0);
        let Some(rule) = &mut self.robust else {
            let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
            return codecs.sum_all(acc, inputs, total, host, |_, run| run.fill(0.0));
        };
        self.decoded.resize(inputs.len(), Vec::new());
        for (values, (slice, _)) in self.decoded.iter_mut().zip(inputs) {
            values.resize(len, 0.0);
            codecs.set_checked(values, *slice, host)?;
        }
        let values = self.decoded.iter().map(Vec::as_slice);
        let weights = inputs.iter().map(|(_, weight)| *weight as f32);
        let inputs: Vec<Input<'_>> = values.zip(weights).collect();
        rule.aggregate(&inputs, acc);
        Ok(())
    }
}
