//! Means of groups: one member sums the parameters of all, and each mixes with the mean.

use crate::executor::host::Host;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{Mixer, Stores};
use murmurate_protocol::{Done, FragmentId, Order, SliceId, StoreId, WorkError};

/// Means that one member of a group makes.
#[derive(Default)]
pub(super) struct Grouped {
    /// Room for the mean of one fragment.
    sum: Vec<f32>,
    /// Of which fragment it is, until it is encoded.
    of: Option<FragmentId>,
}

impl Mixer for Grouped {
    /// `Order::Reduce` is `sum = sum_k a_k decode(slice_k) / sum_k a_k` over whole fragments, in the
    /// order given. It reads nothing of this peer's own but what it has published, so it can be done
    /// while the trainer trains. `Order::Encode` follows at once.
    fn combine(
        &mut self,
        core: &mut MixCore,
        order: &Order,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let Order::Reduce {
            fragment, inputs, ..
        } = order
        else {
            return core.mix(order, host);
        };
        self.of = None;
        self.sum.resize(core.places.of(*fragment).len(), 0.0);
        let total = inputs.iter().map(|(_, weight)| weight).sum();
        let zero = |_, sum: &mut [f32]| sum.fill(0.0);
        core.codecs
            .sum_all(&mut self.sum, inputs, total, host, zero)?;
        self.of = Some(*fragment);
        Ok(Done::Combined)
    }

    fn encode(
        &mut self,
        core: &mut MixCore,
        _store: StoreId,
        slice: SliceId,
        _of: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        if self.of.take() != Some(slice.fragment) {
            return Err(WorkError::Storage {
                reason: "there is no mean of a group to encode".to_owned(),
            });
        }
        core.codecs.encode_aggregate(&slice, &self.sum, None, out);
        Ok(())
    }

    fn stores(&self) -> Stores {
        Stores {
            shards: self.sum.len(),
            ..Stores::default()
        }
    }
}
