//! How contributions to a shard are combined: their weighted mean, or a rule that compares them.

use crate::aggregate::{Aggregator, Input};
use crate::executor::codecs::Codecs;
use crate::executor::host::{Host, WorkResult};
use murmurate_protocol::SliceId;

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
    /// order given; `acc` becomes `len` long.
    pub(super) fn reduce(
        &mut self,
        codecs: &Codecs,
        acc: &mut Vec<f32>,
        len: usize,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> WorkResult {
        acc.resize(len, 0.0);
        if let Some(compared) = self.compare(codecs, None, acc, inputs, host) {
            return compared;
        }
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        codecs.sum_all(acc, inputs, total, host, |_, run| run.fill(0.0))
    }

    /// `acc = rule(own, decode(slice_1), ...)`; `None` where the rule is the weighted mean. Every
    /// contribution passes the quarantine before a rule sees it.
    pub(super) fn compare(
        &mut self,
        codecs: &Codecs,
        own: Option<Input<'_>>,
        acc: &mut [f32],
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Option<WorkResult> {
        let rule = self.robust.as_mut()?;
        self.decoded.resize(inputs.len(), Vec::new());
        for (values, (slice, _)) in self.decoded.iter_mut().zip(inputs) {
            values.resize(acc.len(), 0.0);
            if let Err(error) = codecs.set_checked(values, *slice, host) {
                return Some(Err(error));
            }
        }
        let values = self.decoded.iter().map(Vec::as_slice);
        let weights = inputs.iter().map(|(_, weight)| *weight as f32);
        let all: Vec<Input<'_>> = own.into_iter().chain(values.zip(weights)).collect();
        rule.aggregate(&all, acc);
        Some(Ok(()))
    }
}
