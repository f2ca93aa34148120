//! Means of groups: one member sums the parameters of all, and each mixes with the mean.

use crate::executor::host::{Host, WorkResult};
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{Mixer, missing};
use murmurate_protocol::{Combination, Done, FragmentId, Piece, SliceId, StoreId};

/// Means that one member of a group makes.
#[derive(Default)]
pub(super) struct Grouped {
    /// Room for the mean of one fragment.
    sum: Vec<f32>,
    /// Of which fragment it is, until it is encoded.
    of: Option<FragmentId>,
}

impl Mixer for Grouped {
    /// `Combination::Reduce` is `sum = sum_k a_k decode(slice_k) / sum_k a_k` over whole fragments, in the
    /// order given. Of this peer's values it reads only the published ones, so it can be done
    /// while the trainer trains. `Order::Encode` follows at once.
    fn combine(
        &mut self,
        core: &mut MixCore,
        piece: Piece,
        how: &Combination,
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let Combination::Reduce(inputs) = how else {
            return core.mix(piece, how, host);
        };
        self.of = None;
        self.sum.resize(core.places.of(piece.fragment).len(), 0.0);
        let total = inputs.iter().map(|(_, weight)| weight).sum();
        let zero = |_, sum: &mut [f32]| sum.fill(0.0);
        core.codecs
            .sum_all(&mut self.sum, inputs, total, host, zero)?;
        self.of = Some(piece.fragment);
        Ok(Done::Combined)
    }

    fn encode(
        &mut self,
        core: &mut MixCore,
        _store: StoreId,
        slice: SliceId,
        _of: u16,
        out: &mut Vec<u8>,
    ) -> WorkResult {
        if self.of.take() != Some(slice.fragment) {
            return Err(missing("mean of a group"));
        }
        core.codecs.encode_aggregate(&slice, &self.sum, None, out);
        Ok(())
    }

    fn shards(&self) -> usize {
        self.sum.len()
    }
}
