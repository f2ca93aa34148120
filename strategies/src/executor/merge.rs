//! Merging the branches of a swarm that was split, in plain f32.

use super::codecs::{add_decoded, bad_slice, bytes_of, encode_plain};
use super::host::{Host, WorkResult};
use super::mix_core::MixCore;
use super::mixer::missing;
use crate::compress::F32;
use murmurate_protocol::{Done, FragmentId, Piece, SliceId};
use std::collections::BTreeMap;

/// Means of branches of owned shards that are not encoded yet. There are some only while branches are
/// merged, one fragment's shards at a time.
#[derive(Debug, Default)]
pub(super) struct Branches {
    means: BTreeMap<(FragmentId, u16), Vec<f32>>,
}

impl Branches {
    /// `shard = sum_k a_k slice_k / sum_k a_k`, in the order given. Shapes: `[shard]`, f32. Fails with
    /// the first slice that does not decode to usable values.
    pub(super) fn average(
        &mut self,
        core: &MixCore,
        piece: Piece,
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> WorkResult<Done> {
        let Piece {
            fragment,
            shard,
            of,
        } = piece;
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        let mut mean = vec![0.0; core.places.shard(fragment, shard, of).len()];
        for (slice, weight) in inputs {
            add(&mut mean, *slice, (weight / total) as f32, host)?;
        }
        self.means.insert((fragment, shard), mean);
        Ok(Done::Combined)
    }

    /// Decodes the means of all shards of a fragment.
    pub(super) fn decode(
        core: &MixCore,
        fragment: FragmentId,
        aggregates: &[SliceId],
        host: &dyn Host,
    ) -> WorkResult<Vec<f32>> {
        let range = core.places.of(fragment);
        let of = u16::try_from(aggregates.len()).unwrap_or(u16::MAX);
        let mut merged = vec![0.0; range.len()];
        for slice in aggregates {
            let shard = core.places.shard(fragment, slice.shard, of);
            let into = &mut merged[shard.start - range.start..shard.end - range.start];
            add(into, *slice, 1.0, host)?;
        }
        Ok(merged)
    }

    /// Encodes a shard of the anchor as it is.
    pub(super) fn encode(core: &MixCore, slice: SliceId, of: u16, out: &mut Vec<u8>) -> WorkResult {
        let range = core.places.shard(slice.fragment, slice.shard, of);
        let values = &core.anchor.values[range.clone()];
        core.places.must_be_finite(range.start, values)?;
        encode_plain(values, out);
        Ok(())
    }

    /// Encodes the mean of a shard, and forgets it.
    pub(super) fn encode_mean(
        &mut self,
        slice: SliceId,
        shard: u16,
        out: &mut Vec<u8>,
    ) -> WorkResult {
        let mean = self.means.remove(&(slice.fragment, shard));
        let mean = mean.ok_or_else(|| missing("mean of branches"))?;
        encode_plain(&mean, out);
        Ok(())
    }

    /// Number of f32 that it keeps.
    pub(super) fn len(&self) -> usize {
        self.means.values().map(Vec::len).sum()
    }
}

/// `acc += weight slice`, and checks the sum.
fn add(acc: &mut [f32], slice: SliceId, weight: f32, host: &dyn Host) -> WorkResult {
    let bytes = bytes_of(slice, host)?;
    let added = add_decoded(&F32, &bytes, weight, acc);
    added.map_err(|reason| bad_slice(slice, reason))
}
