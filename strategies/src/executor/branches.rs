//! What a merge of branches keeps in the Executor.

use super::mix_core::MixCore;
use crate::compress::{Codec, EncodeContext, F32};
use murmurate_protocol::{FragmentId, SliceId, WorkError};
use std::collections::BTreeMap;

/// Means of branches of owned shards that are not encoded yet. There are some only while branches are
/// merged, one fragment's shards at a time.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) means: BTreeMap<(FragmentId, u16), Vec<f32>>,
}

impl Branches {
    /// Encodes a shard of the anchor as it is.
    pub(super) fn encode(
        core: &MixCore,
        slice: SliceId,
        of: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        let range = core.places.shard(slice.fragment, slice.shard, of);
        let values = &core.anchor.values[range.clone()];
        core.places.must_be_finite(range.start, values)?;
        encode(values, out);
        Ok(())
    }

    /// Encodes the mean of a shard, and forgets it.
    pub(super) fn encode_mean(
        &mut self,
        slice: SliceId,
        shard: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        let mean = self.means.remove(&(slice.fragment, shard));
        let mean = mean.ok_or_else(|| WorkError::Storage {
            reason: "there is no mean of branches to encode".to_owned(),
        })?;
        encode(&mean, out);
        Ok(())
    }

    /// Number of f32 that it keeps.
    pub(super) fn len(&self) -> usize {
        self.means.values().map(Vec::len).sum()
    }
}

fn encode(values: &[f32], out: &mut Vec<u8>) {
    let mut memory = Vec::new();
    F32.encode(values, &mut EncodeContext::seeded(0, &mut memory), out);
}
