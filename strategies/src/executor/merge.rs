//! Merging the branches of a swarm that was split, in plain f32.

use super::codecs::{bad_slice, bytes_are_gone};
use super::held::Held;
use super::host::Host;
use super::mix_lane::MixLane;
use crate::aggregate::{RMS_MAX, quarantine};
use crate::compress::{Codec, F32};
use murmurate_protocol::{Done, FragmentId, Round, SliceId, WorkError};

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

/// `acc += weight slice`, and checks the sum.
fn add(acc: &mut [f32], slice: SliceId, weight: f32, host: &dyn Host) -> Result<(), WorkError> {
    let bytes = host.get(&slice).ok_or_else(|| bytes_are_gone(slice))?;
    let added = F32.decode_add(&bytes, weight, acc);
    added.map_err(|error| bad_slice(slice, error.to_string()))?;
    quarantine(acc, RMS_MAX).map_err(|error| bad_slice(slice, error.to_string()))?;
    Ok(())
}
