//! Merging the branches of a swarm that was split, in plain f32.

use super::codecs::{bad_slice, bytes_are_gone};
use super::contributions::must_be_finite;
use super::host::Host;
use super::local::Held;
use super::mix_core::MixCore;
use super::mix_lane::MixLane;
use crate::aggregate::{RMS_MAX, quarantine};
use crate::compress::{Codec, EncodeContext, F32};
use murmurate_protocol::{Done, FragmentId, Round, SliceId, WorkError};
use std::collections::BTreeMap;

/// Means of branches of owned shards that are not encoded yet. There are some only while branches are
/// merged, one fragment's shards at a time.
#[derive(Debug, Default)]
pub(super) struct Branches {
    means: BTreeMap<(FragmentId, u16), Vec<f32>>,
}

impl Branches {
    /// Encodes a shard of the anchor as it is.
    pub(super) fn encode(
        core: &MixCore,
        slice: SliceId,
        of: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), WorkError> {
        let values = &core.anchor.values[core.places.shard(slice.fragment, slice.shard, of)];
        must_be_finite(values, || {
            format!("the branch in fragment {}", slice.fragment.0)
        })?;
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

impl MixLane {
    /// `shard = sum_k a_k slice_k / sum_k a_k`, in the order given. Shapes: `[shard]`, f32. Fails with
    /// the first slice that does not decode to usable values.
    pub(super) fn average(
        &mut self,
        (fragment, shard, of): (FragmentId, u16, u16),
        inputs: &[(SliceId, f64)],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        let mut mean = vec![0.0; self.core.places.shard(fragment, shard, of).len()];
        for (slice, weight) in inputs {
            add(&mut mean, *slice, (weight / total) as f32, host)?;
        }
        self.branches.means.insert((fragment, shard), mean);
        Ok(Done::Combined)
    }

    /// Makes means of branches the anchor of a fragment. Everything that belonged to one side is
    /// dropped.
    pub(super) fn merge(
        &mut self,
        round: Round,
        fragment: FragmentId,
        aggregates: &[SliceId],
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        let range = self.core.places.of(fragment);
        let of = u16::try_from(aggregates.len()).unwrap_or(u16::MAX);
        let mut merged = vec![0.0; range.len()];
        for slice in aggregates {
            let shard = self.core.places.shard(fragment, slice.shard, of);
            let into = &mut merged[shard.start - range.start..shard.end - range.start];
            add(into, *slice, 1.0, host)?;
        }
        // First what training has sent: it would take the place of what the trainer takes over.
        self.collect();
        self.core.anchor.values[range].copy_from_slice(&merged);
        self.core.anchor.reset_outer();
        self.start_over();
        self.core.local.set(fragment, Held::TakeAnchor);
        self.core.anchor.round_begins(round);
        Ok(self.applied(fragment))
    }
}

fn encode(values: &[f32], out: &mut Vec<u8>) {
    let mut memory = Vec::new();
    F32.encode(values, &mut EncodeContext::seeded(0, &mut memory), out);
}

/// `acc += weight slice`, and checks the sum.
fn add(acc: &mut [f32], slice: SliceId, weight: f32, host: &dyn Host) -> Result<(), WorkError> {
    let bytes = host.get(&slice).ok_or_else(|| bytes_are_gone(slice))?;
    let added = F32.decode_add(&bytes, weight, acc);
    added.map_err(|error| bad_slice(slice, error.to_string()))?;
    quarantine(acc, RMS_MAX).map_err(|error| bad_slice(slice, error.to_string()))?;
    Ok(())
}
