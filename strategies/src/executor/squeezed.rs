//! Error feedback at the owner of a shard: what the codec left out of a reduction goes into the next.

use super::mix_lane::MixLane;
use crate::compress::EncodeContext;
use murmurate_protocol::{FragmentId, SliceId};
use std::collections::BTreeMap;

/// What reductions of own shards left out.
#[derive(Debug, Default)]
pub(super) struct Squeezed {
    /// By fragment, shard, and into how many shards the fragment was cut: of what was agreed on.
    residuals: BTreeMap<(FragmentId, u16, u16), Vec<f32>>,
    /// Of reductions that are encoded and not yet agreed on.
    open: BTreeMap<SliceId, (u16, Vec<f32>)>,
}

impl Squeezed {
    /// Values that are kept.
    pub(super) fn len(&self) -> usize {
        let open = self.open.values().map(|(_, values)| values.len());
        self.residuals.values().map(Vec::len).sum::<usize>() + open.sum::<usize>()
    }

    /// A round of a fragment ends: what it left out of the reductions that were agreed on stays.
    pub(super) fn settle(&mut self, fragment: FragmentId, agreed: &[SliceId]) {
        for slice in agreed {
            if let Some((of, left)) = self.open.remove(slice) {
                // Another cut of the fragment: what was kept of the old one fits nowhere.
                self.residuals
                    .retain(|(f, _, cut), _| *f != fragment || *cut == of);
                self.residuals.insert((fragment, slice.shard, of), left);
            }
        }
        self.open.retain(|slice, _| slice.fragment != fragment);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.residuals.clear();
        self.open.clear();
    }
}

impl MixLane {
    /// Encodes a reduction with what the one before left out.
    pub(super) fn encode_squeezed(
        &mut self,
        slice: SliceId,
        of: u16,
        values: &[f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some(squeezed) = &mut self.squeezed else {
            return self.aggregate_codec.encode(values, context, out);
        };
        let kept = squeezed.residuals.get(&(slice.fragment, slice.shard, of));
        let mut left = kept.cloned().unwrap_or_default();
        left.resize(values.len(), 0.0);
        let codec = &mut self.aggregate_codec;
        codec.encode_residual(values, &mut left, context, out);
        squeezed.open.insert(slice, (of, left));
    }
}
