//! What is relayed along a tree: the mean of the own parameters and of what came from other neighbours.

use super::host::Host;
use super::mix_lane::MixLane;
use crate::aggregate::quarantine;
use bytes::Bytes;
use murmurate_protocol::{Done, SliceId, WorkError};

impl MixLane {
    /// Encodes `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)`, with a_k how many peers' parameters
    /// slice k is the mean of: the sum that RelaySum passes on, over its count, so that what is encoded
    /// is as large as parameters are. Sums run in the order given. Without inputs it is the own
    /// parameters. Source: Vogels et al. 2021 (NeurIPS), algorithm 1, line 5.
    pub(super) fn relay(
        &mut self,
        slice: SliceId,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.range(slice.fragment);
        let local = self.take_local();
        let mut sum = std::mem::take(&mut self.spare);
        let total = 1.0 + inputs.iter().map(|(_, count)| count).sum::<f64>();
        let own = (1.0 / total) as f32;
        let begin = |sum: &mut [f32]| {
            let values = local[range.clone()].iter();
            sum.iter_mut().zip(values).for_each(|(s, x)| *s = own * x);
        };
        sum.clear();
        sum.resize(range.len(), 0.0);
        begin(&mut sum);
        let finite = quarantine(&local[range.clone()], f64::INFINITY);
        let finite = finite.map_err(|error| WorkError::Training {
            reason: format!("the parameters of fragment {}: {error}", slice.fragment.0),
        });
        let summed = finite.and_then(|_| self.add_all(&mut sum, inputs, total, host, begin));
        let made = summed.map(|()| {
            let bound = self.codec.bytes_bound().of(sum.len() as u64);
            let mut out = Vec::with_capacity(usize::try_from(bound).unwrap_or(0));
            let mut context = self.codec_state.context(&self.plan, &slice, 1, &range);
            self.codec.encode(&sum, &mut context, &mut out);
            let bytes = out.len() as u64;
            host.put(slice, Bytes::from(out));
            Done::Encoded {
                bytes,
                digest: None,
            }
        });
        self.put_local(local);
        self.spare = sum;
        made
    }
}
