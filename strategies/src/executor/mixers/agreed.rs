//! All-reduce, parameter server in step, and cells: each shard is reduced by one owner, and the group
//! agrees on the reductions.
//!
//! With error feedback at the owner of a shard, the part of a reduction that the codec left out is added to the
//! next.

use crate::aggregate::Aggregator;
use crate::executor::codecs::{Codecs, encode_plain};
use crate::executor::host::WorkResult;
use crate::executor::mix_core::MixCore;
use crate::executor::mixer::{End, Inputs, Mixer, Rule, Stored, Work, foreign, missing};
use murmurate_protocol::{Combination, Done, FragmentId, Piece, SliceId, StoreId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Reductions that a group agrees on.
pub(super) struct Agreed {
    rule: Rule,
    /// What reductions of owned shards left out; only of codecs that feed it back.
    squeezed: Option<Squeezed>,
    /// Reductions of owned shards that are not encoded yet.
    shards: BTreeMap<(FragmentId, u16), Vec<f32>>,
    /// Room of the last reduction that was encoded, for the next one.
    spare: Vec<f32>,
    /// In a grid: means of a row's contributions, each with the shard that it is of.
    rows: BTreeMap<FragmentId, (Range<usize>, Vec<f32>)>,
    /// Set where reductions are of parameters, and take the place of this peer's.
    replaces: bool,
}

impl Agreed {
    pub(super) fn new(rule: Option<Box<dyn Aggregator>>, squeezes: bool, replaces: bool) -> Self {
        Self {
            rule: Rule::new(rule),
            squeezed: squeezes.then(Squeezed::default),
            shards: BTreeMap::new(),
            spare: Vec::new(),
            rows: BTreeMap::new(),
            replaces,
        }
    }

    /// The mean of a row's contributions to one shard.
    fn sum_row(&mut self, work: Work<'_>, piece: Piece, inputs: Inputs<'_>) -> WorkResult<Done> {
        let core = work.core;
        let range = core.places.shard(piece.fragment, piece.shard, piece.of);
        let mut acc = std::mem::take(&mut self.spare);
        let summed = self
            .rule
            .reduce(&core.codecs, &mut acc, range.len(), inputs, work.host);
        self.rows.insert(piece.fragment, (range, acc));
        summed.map(|()| Done::Combined)
    }

    /// Encodes a part of a row's mean as it is.
    fn encode_row(&self, core: &MixCore, from: Stored<'_>) -> Option<()> {
        let slice = from.slice;
        let (held, mean) = self.rows.get(&slice.fragment)?;
        let part = core.places.shard(slice.fragment, slice.shard, from.of);
        let start = part.start.checked_sub(held.start)?;
        encode_plain(mean.get(start..start + part.len())?, from.out);
        Some(())
    }
}

impl Mixer for Agreed {
    fn combine(&mut self, work: Work<'_>, piece: Piece, how: &Combination) -> WorkResult<Done> {
        let inputs = match how {
            Combination::Reduce(inputs) => inputs,
            Combination::SumRow(inputs) => return self.sum_row(work, piece, inputs),
            _ => return Err(foreign("combine")),
        };
        let (core, host) = (work.core, work.host);
        let (place, of) = ((piece.fragment, piece.shard), piece.of);
        let len = core.places.shard(piece.fragment, piece.shard, of).len();
        let kept = self.shards.remove(&place);
        let mut acc = kept.unwrap_or_else(|| std::mem::take(&mut self.spare));
        let reduced = match &core.masks {
            Some(masks) => masks.open(&mut acc, len, of, inputs, host),
            None => self.rule.reduce(&core.codecs, &mut acc, len, inputs, host),
        };
        self.shards.insert(place, acc);
        reduced.map(|()| Done::Combined)
    }

    fn encode(&mut self, core: &mut MixCore, from: Stored<'_>) -> WorkResult {
        let reduced = match from.store {
            StoreId::Row => {
                let encoded = self.encode_row(core, from);
                return encoded.ok_or_else(|| missing("mean of a row"));
            }
            StoreId::Shard(shard) => self.shards.remove(&(from.slice.fragment, shard)),
            _ => None,
        };
        let reduced = reduced.ok_or_else(|| missing("reduction"))?;
        match &mut self.squeezed {
            Some(squeezed) => squeezed.encode(&mut core.codecs, from, &reduced),
            None => core
                .codecs
                .encode_aggregate(&from.slice, &reduced, None, from.out),
        }
        // All members, the owner included, continue with the encoded bytes. Kept until the end of the
        // round, the reductions would be a second model: the next reduction takes the room.
        self.spare = reduced;
        Ok(())
    }

    fn apply(&mut self, mut work: Work<'_>, end: End, decided: &[SliceId]) -> WorkResult {
        let twice = work.core.contributions.common.is_some();
        if twice && end.keep_local {
            work.take_back(end.fragment)?;
        }
        if self.replaces {
            work.replace_by(end, decided)?;
        } else {
            work.apply_aggregates(end, decided)?;
        }
        if twice {
            work.settle_passes(end.fragment, decided)?;
        }
        self.rows.remove(&end.fragment);
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(end.fragment, decided);
        }
        Ok(())
    }

    fn void(&mut self, core: &mut MixCore, fragment: FragmentId) {
        if self.replaces {
            core.keep_own(fragment);
        }
        self.rows.remove(&fragment);
        core.contributions.forget(fragment);
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(fragment, &[]);
        }
    }

    fn start_over(&mut self, _core: &mut MixCore) {
        self.rows.clear();
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.clear();
        }
    }

    fn shards(&self) -> usize {
        let reduced = self.shards.values().map(Vec::len).sum::<usize>();
        let squeezed = self.squeezed.as_ref().map_or(0, Squeezed::len);
        let rows = self
            .rows
            .values()
            .map(|(_, mean)| mean.len())
            .sum::<usize>();
        self.rule.len() + reduced + squeezed + self.spare.len() + rows
    }
}

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
    pub(super) fn encode(&mut self, codecs: &mut Codecs, from: Stored<'_>, values: &[f32]) {
        let (slice, of) = (from.slice, from.of);
        let kept = self.residuals.get(&(slice.fragment, slice.shard, of));
        let mut left = kept.cloned().unwrap_or_default();
        left.resize(values.len(), 0.0);
        codecs.encode_aggregate(&slice, values, Some(&mut left), from.out);
        self.open.insert(slice, (of, left));
    }
}
