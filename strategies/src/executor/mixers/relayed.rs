//! Sums that are relayed along a tree: the next message to each neighbour, and the mix of a round.

use crate::executor::codecs::encoded;
use crate::executor::host::{Host, WorkResult};
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::Mixer;
use murmurate_protocol::{Combination, Done, Piece, SliceId};

/// Means that travel along a tree.
#[derive(Default)]
pub(super) struct Relayed {
    /// Room for a message before it is encoded.
    message: Vec<f32>,
}

impl Mixer for Relayed {
    fn combine(
        &mut self,
        core: &mut MixCore,
        piece: Piece,
        how: &Combination,
        host: &dyn Host,
    ) -> WorkResult<Done> {
        core.mix(piece, how, host)
    }

    /// Encodes `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)`, where a_k is the number of
    /// peers whose parameters slice k is the mean of. This is the sum that RelaySum passes on,
    /// divided by its count, so that the encoded mean has the size of parameters. Sums run in the
    /// order given. Without inputs it is this peer's parameters. Source: Vogels et al. 2021
    /// (NeurIPS), algorithm 1, line 5.
    fn relay(
        &mut self,
        core: &mut MixCore,
        slice: SliceId,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let range = core.places.of(slice.fragment);
        let local = &core.local.values()[range.clone()];
        let total = 1.0 + inputs.iter().map(|(_, count)| count).sum::<f64>();
        let own = (1.0 / total) as f32;
        let begin = |start: usize, sum: &mut [f32]| {
            let values = sum.iter_mut().zip(&local[start..]);
            values.for_each(|(s, x)| *s = own * x);
        };
        let message = &mut self.message;
        message.resize(range.len(), 0.0);
        core.places.must_be_finite(range.start, local)?;
        core.codecs.sum_all(message, inputs, total, host, begin)?;
        let mut out = core.codecs.room(&slice, message.len(), host);
        core.encode_values(slice, message, &mut out);
        Ok(encoded(slice, out, host))
    }

    fn shards(&self) -> usize {
        self.message.len()
    }
}
