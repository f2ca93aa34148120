//! Rounds of two passes: bases, second contributions, and what they are together.

use super::codecs::{Codecs, add_decoded, bad_slice, bytes_of, encoded};
use super::contributions::Contributions;
use super::host::WorkResult;
use super::mixer::{Inputs, Work, total};
use crate::compress::{Bad, Codec, CodecError, EncodeContext, Joined, TwoPasses};
use bytes::Bytes;
use murmurate_protocol::{Attempt, Done, FragmentId, Part, SliceId};
use std::ops::Range;

impl Work<'_> {
    /// The owner's work on a shard: a basis of first contributions, or second ones joined to a basis.
    pub(super) fn combine_pass(
        self,
        slice: SliceId,
        of: u16,
        basis: Option<SliceId>,
        inputs: Inputs<'_>,
    ) -> WorkResult<Done> {
        let (core, host) = (self.core, self.host);
        let range = core.places.shard(slice.fragment, slice.shard, of);
        let mut out = core.codecs.room(&slice, range.len(), host);
        let total = total(inputs);
        let bytes = inputs.iter().map(|(slice, _)| bytes_of(*slice, host));
        let bytes = bytes.collect::<Result<Vec<Bytes>, _>>()?;
        let weights = inputs.iter().map(|(_, weight)| (weight / total) as f32);
        let weighed: Vec<(&[u8], f32)> = bytes.iter().map(|b| b.as_ref()).zip(weights).collect();
        let (twice, joins, context) =
            open(&mut core.codecs, &mut core.contributions, slice, of, &range);
        let named = |Bad { at, error }: Bad| bad_slice(inputs[at].0, error.to_string());
        let len = range.len();
        let Some(basis) = basis else {
            let made = twice.basis(&weighed, context.pass(len, &mut out));
            made.map_err(named)?;
            return Ok(encoded(slice, out, host));
        };
        let basis = bytes_of(basis, host)?;
        let made = twice.join(&basis, &weighed, context.pass(len, &mut out));
        made.map_err(named)?;
        let Err(reason) = usable(joins, &out, len) else {
            return Ok(encoded(slice, out, host));
        };
        // The one is named that is of no use alone; where each is, the last.
        let mut alone = |at: usize| {
            let mut joined = Vec::new();
            let one = [(weighed[at].0, 1.0)];
            let made = twice.join(&basis, &one, context.pass(len, &mut joined));
            made.is_err() || usable(joins, &joined, len).is_err()
        };
        let bad = (0..inputs.len()).find(|at| alone(*at));
        let bad = bad.unwrap_or(inputs.len() - 1);
        Err(bad_slice(inputs[bad].0, reason))
    }

    pub(super) fn encode_second(self, slice: SliceId, of: u16, basis: SliceId) -> WorkResult<Done> {
        let (core, host) = (self.core, self.host);
        let range = core.places.shard(slice.fragment, slice.shard, of);
        let mut out = core.codecs.room(&slice, range.len(), host);
        let bytes = bytes_of(basis, host)?;
        let residual = core.contributions.residual.as_ref();
        // The first pass left in the residual what is contributed.
        let values = match residual.map(|residual| residual[range.clone()].to_vec()) {
            Some(values) => values,
            None => {
                let anchor = &core.anchor.values;
                let trained = core.local.trained(slice.fragment, range.clone(), anchor)?;
                trained.to_vec()
            }
        };
        let (twice, _, context) =
            open(&mut core.codecs, &mut core.contributions, slice, of, &range);
        let made = twice.second(&values, &bytes, context.pass(range.len(), &mut out));
        made.map_err(|error| bad_slice(basis, error.to_string()))?;
        core.contributions.opened(slice, basis);
        Ok(encoded(slice, out, host))
    }

    /// A straggler keeps its training on top of a result: it is no part of the residual then.
    pub(super) fn take_back(&mut self, fragment: FragmentId) -> WorkResult {
        let core = &mut *self.core;
        let own = core.contributions.encoded_of(fragment);
        if !core.holds_delta(fragment) {
            return Ok(());
        }
        let (codecs, places) = (&mut core.codecs, &core.places);
        let values = Some((&mut core.local, &core.anchor.values[..]));
        core.contributions
            .undo(codecs, places, own, values, self.host)
    }

    /// A round of two passes was applied: takes what counted of this peer out of its residual, and keeps
    /// what all members have in common from now on.
    pub(super) fn settle_passes(
        &mut self,
        fragment: FragmentId,
        decided: &[SliceId],
    ) -> WorkResult {
        let (core, host) = (&mut *self.core, self.host);
        let of = u16::try_from(decided.len()).unwrap_or(u16::MAX);
        let mut kept = Vec::with_capacity(decided.len());
        for aggregate in decided {
            let range = core.places.shard(fragment, aggregate.shard, of);
            let bytes = bytes_of(*aggregate, host)?;
            let own = core.contributions.close(aggregate);
            let mut residual = core.contributions.residual.take();
            let (twice, _, context) = open(
                &mut core.codecs,
                &mut core.contributions,
                *aggregate,
                of,
                &range,
            );
            let mut next = Vec::new();
            twice.keep(&bytes, range.len(), &context, &mut next);
            kept.push(next);
            if let (Some((second, basis)), Some(residual)) = (own, &mut residual)
                && let (Some(second), Some(basis)) = (host.get(&second), host.get(&basis))
            {
                let own = Joined {
                    basis: &basis,
                    second: &second,
                    aggregate: &bytes,
                };
                let taken: Result<(), CodecError> =
                    twice.take_out(own, &context, &mut residual[range]);
                debug_assert!(taken.is_ok(), "a peer reads its own bytes: {taken:?}");
            }
            core.contributions.residual = residual;
        }
        core.contributions.forget(fragment);
        if let Some(common) = &mut core.contributions.common {
            common.set_shards(fragment, &kept);
        }
        Ok(())
    }
}

/// Checks that an encoding decodes to values that may enter the model.
fn usable(codec: &dyn Codec, bytes: &[u8], len: usize) -> Result<(), String> {
    add_decoded(codec, bytes, 1.0, &mut vec![0.0; len])
}

/// The codec of a run of two passes, the codec of joined aggregates, and the context of a first contribution.
fn open<'a>(
    codecs: &'a mut Codecs,
    contributions: &'a mut Contributions,
    slice: SliceId,
    of: u16,
    range: &Range<usize>,
) -> (&'a mut dyn TwoPasses, &'a dyn Codec, EncodeContext<'a>) {
    let first = SliceId {
        part: Part::Contribution,
        attempt: Attempt::FIRST,
        ..slice
    };
    let mut context = contributions.state.context(&codecs.plan, &first, of, range);
    if let Some(common) = &contributions.common {
        context.shared = common.shared_of(slice.fragment, slice.shard, of);
    }
    let twice = codecs.contribution.of_mut(first.fragment).two_passes();
    let twice = twice.expect("only a plan of two passes orders them, and its codec has them");
    (twice, codecs.aggregate.as_ref(), context)
}
