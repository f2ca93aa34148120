//! This peer's outgoing contributions, and the residual of error feedback.

use super::codecs::{CodecState, Codecs};
use super::common::Common;
use super::host::{Host, WorkResult};
use super::local::LocalBuffer;
use super::places::Places;
use crate::aggregate::quarantine_change;
use crate::compress::fold_in;
use murmurate_protocol::{FragmentId, SliceId, WorkError};
use std::collections::BTreeMap;

pub(super) struct Contributions {
    pub(super) state: CodecState,
    /// The part of all parameters' contributions that the codec left out; only with error feedback.
    pub(super) residual: Option<Vec<f32>>,
    /// Contributions encoded this round, each with its fragment's shard count.
    encoded: BTreeMap<SliceId, u16>,
    /// Second contributions that are not settled, each with the basis that it is for.
    seconds: BTreeMap<SliceId, SliceId>,
    /// What the codec keeps in common with all members, where it does. It is part of the state that newcomers
    /// fetch.
    pub(super) common: Option<Common>,
}

impl Contributions {
    pub(super) const fn new(
        state: CodecState,
        residual: Option<Vec<f32>>,
        common: Option<Common>,
    ) -> Self {
        Self {
            state,
            residual,
            encoded: BTreeMap::new(),
            seconds: BTreeMap::new(),
            common,
        }
    }

    /// A new cut replaces the slices that were encoded before.
    pub(super) fn begin_round(&mut self) {
        self.encoded.clear();
    }

    /// The anchor was replaced: residual and codec state belong to another one.
    pub(super) fn start_over(&mut self) {
        self.encoded.clear();
        self.seconds.clear();
        if let Some(residual) = &mut self.residual {
            residual.fill(0.0);
        }
        if let Some(common) = &mut self.common {
            common.clear();
        }
        self.state.clear();
    }

    /// A slice is encoded in this round.
    pub(super) fn note(&mut self, slice: SliceId, of: u16) {
        self.encoded.insert(slice, of);
    }

    pub(super) fn encoded_of(&self, fragment: FragmentId) -> Vec<SliceId> {
        let own = self.encoded.keys().filter(|s| s.fragment == fragment);
        own.copied().collect()
    }

    /// This peer encoded the slice in this round.
    pub(super) fn is_own(&self, slice: &SliceId) -> bool {
        self.encoded.contains_key(slice)
    }

    /// A second contribution is encoded for a basis. Another one of its name was for another basis.
    pub(super) fn opened(&mut self, second: SliceId, basis: SliceId) {
        self.seconds.retain(|s, _| s.round >= second.round);
        self.seconds.insert(second, basis);
    }

    /// The second contribution that is in an aggregate, unless it was left out, with its basis.
    pub(super) fn close(&mut self, aggregate: &SliceId) -> Option<(SliceId, SliceId)> {
        let fits = |second: &SliceId, basis: &SliceId| {
            let name = |s: &SliceId| (s.round, s.fragment, s.shard, s.attempt);
            name(second) == name(aggregate) && basis.origin == aggregate.origin
        };
        let found = self.seconds.iter().find(|(s, b)| fits(s, b));
        let (second, basis) = found.map(|(s, b)| (*s, *b))?;
        self.seconds.remove(&second);
        Some((second, basis))
    }

    /// A fragment's round has ended: no second contribution to it is open.
    pub(super) fn forget(&mut self, fragment: FragmentId) {
        self.seconds.retain(|second, _| second.fragment != fragment);
    }

    /// Encodes a shard of the result of training from this anchor. With error feedback, encodes delta + residual and
    /// leaves in the residual what the codec left out. Values that are not finite reach neither
    /// other peers nor the residual.
    pub(super) fn encode(
        &mut self,
        codecs: &mut Codecs,
        places: &Places,
        (values, anchor): (&[f32], &[f32]),
        slice: SliceId,
        of: u16,
        out: &mut Vec<u8>,
    ) -> WorkResult {
        let range = places.shard(slice.fragment, slice.shard, of);
        places.must_be_finite(range.start, values)?;
        let mut context = self.state.context(&codecs.plan, &slice, of, &range);
        context.anchor = anchor;
        if let Some(common) = &self.common {
            context.shared = common.shared(slice.fragment);
            context.held = common.known_of(slice.fragment, slice.origin);
        }
        let codec = codecs.contribution.of_mut(slice.fragment);
        if let Some(twice) = codec.two_passes() {
            if let Some(common) = &self.common {
                context.shared = common.shared_of(slice.fragment, slice.shard, of);
            }
            match &mut self.residual {
                None => twice.first(values, &context, out),
                // Nothing is taken out before it is known what counts.
                Some(residual) => {
                    let residual = &mut residual[range];
                    fold_in(values, residual);
                    twice.first(residual, &context, out);
                }
            }
            self.encoded.insert(slice, of);
            return Ok(());
        }
        match &mut self.residual {
            None => codec.encode(values, &mut context, out),
            Some(residual) => {
                codec.encode_residual(values, &mut residual[range], &mut context, out);
            }
        }
        self.encoded.insert(slice, of);
        Ok(())
    }

    /// Puts a contribution that was not applied back into the residual.
    pub(super) fn give_back(
        &mut self,
        codecs: &mut Codecs,
        places: &Places,
        slice: SliceId,
        host: &dyn Host,
    ) {
        let codec = codecs.contribution.of_mut(slice.fragment);
        if self.seconds.remove(&slice).is_some() || codec.two_passes().is_some() {
            // The residual still holds all of it.
            return;
        }
        let Some(of) = self.encoded.get(&slice) else {
            return;
        };
        let range = places.shard(slice.fragment, slice.shard, *of);
        if let (Some(residual), Some(bytes)) = (&mut self.residual, host.get(&slice)) {
            let residual = &mut residual[range];
            let given = match (&self.common, codec.gathering()) {
                (Some(common), Some(codec)) => {
                    codec.give_back(&bytes, common.shared(slice.fragment), residual)
                }
                _ => codec.decode_add(&bytes, 1.0, residual),
            };
            assert!(given.is_ok(), "a codec decodes what it encoded: {given:?}");
        }
    }

    /// The round's exchange of a fragment was given up. The next delta will contain this one, so
    /// the residual returns to its values before this contribution: the encoded part goes back in,
    /// and with `local`, the training on top of the anchor, the contribution is taken out.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn undo(
        &mut self,
        codecs: &mut Codecs,
        places: &Places,
        own: Vec<SliceId>,
        mut local: Option<(&mut LocalBuffer, &[f32])>,
        host: &dyn Host,
    ) -> WorkResult {
        for slice in own {
            self.give_back(codecs, places, slice, host);
            let of = self.encoded.remove(&slice).unwrap_or(1);
            let range = places.shard(slice.fragment, slice.shard, of);
            if let (Some(residual), Some((local, anchor))) = (&mut self.residual, &mut local) {
                let values = local.trained(slice.fragment, range.clone(), anchor)?;
                let kept = codecs.contribution.of(slice.fragment).properties().decay;
                for (e, v) in residual[range].iter_mut().zip(values) {
                    *e = (*e - v) / kept;
                }
            }
        }
        Ok(())
    }
}

/// Refuses a delta that is absurd beside the anchor: averaged into it, it would spoil the model of all members.
pub(super) fn must_be_sane(fragment: FragmentId, delta: &[f32], anchor: &[f32]) -> WorkResult {
    quarantine_change(delta, anchor).map_err(|error| WorkError::Training {
        reason: format!("the contribution of fragment {}: {error}", fragment.0),
    })
}
