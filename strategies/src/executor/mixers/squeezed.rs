//! Error feedback at the owner of a shard: the part of a reduction that the codec left out is added
//! to the next one.

use crate::executor::codecs::Codecs;
use murmurate_protocol::{FragmentId, SliceId};
use std::collections::BTreeMap;

/// Residuals of the reductions of owned shards.
#[derive(Debug, Default)]
pub(super) struct Squeezed {
    /// Of reductions that were agreed on: by fragment, shard, and number of shards of the fragment.
    residuals: BTreeMap<(FragmentId, u16, u16), Vec<f32>>,
    /// Of reductions that are encoded and not yet agreed on, with their number of shards.
    open: BTreeMap<SliceId, (u16, Vec<f32>)>,
}

impl Squeezed {
    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        let open = self.open.values().map(|(_, values)| values.len());
        self.residuals.values().map(Vec::len).sum::<usize>() + open.sum::<usize>()
    }

    /// A round of a fragment ends. Only reductions that were agreed on count: the others are
    /// reduced again, from contributions that still hold the part left out.
    pub(super) fn settle(&mut self, fragment: FragmentId, agreed: &[SliceId]) {
        for slice in agreed {
            if let Some((of, left)) = self.open.remove(slice) {
                // Residuals of another cut of the fragment do not fit its shards any more.
                self.residuals
                    .retain(|(f, _, cut), _| *f != fragment || *cut == of);
                self.residuals.insert((fragment, slice.shard, of), left);
            }
        }
        self.open.retain(|slice, _| slice.fragment != fragment);
    }

    pub(super) fn clear(&mut self) {
        self.residuals.clear();
        self.open.clear();
    }

    /// Encodes a reduction plus the residual of the previous one.
    pub(super) fn encode(
        &mut self,
        codecs: &mut Codecs,
        slice: SliceId,
        of: u16,
        values: &[f32],
        out: &mut Vec<u8>,
    ) {
        let kept = self.residuals.get(&(slice.fragment, slice.shard, of));
        let mut left = kept.cloned().unwrap_or_default();
        left.resize(values.len(), 0.0);
        codecs.encode_aggregate(&slice, values, Some(&mut left), out);
        self.open.insert(slice, (of, left));
    }
}
