//! The result of a round becomes the anchor, and the trainer takes it over.

use super::bundle::Bundle;
use super::codecs::{add_decoded, bad_slice, bytes_of};
use super::frame::Held;
use super::host::{Host, WorkResult};
use super::late::{Blend, Late};
use super::mix_core::MixCore;
use super::mixer::{End, Work};
use super::places::Places;
use bytes::Bytes;
use murmurate_protocol::{Attempt, FragmentId, Part, SliceId};

impl Work<'_> {
    /// Moves the anchor by the decided aggregates of a fragment.
    pub(super) fn apply_aggregates(&mut self, end: End, aggregates: &[SliceId]) -> WorkResult {
        let core = &mut *self.core;
        if let Some(bytes) = core.in_tiles(end, aggregates, self.host) {
            return core.apply_tiles(end, aggregates, &bytes);
        }
        // Beside the local buffer, which may hold values that the trainer still needs.
        let len = core.places.of(end.fragment).len();
        let room = core.local.at_hand.as_mut().map(|at_hand| at_hand.room(len));
        let mut room = room.unwrap_or_else(|| vec![0.0; len]);
        let decoded = self.decode(end.fragment, aggregates, &mut room);
        let applied = decoded.and_then(|()| self.core.put_in_force(end, &mut room));
        if let Some(at_hand) = &mut self.core.local.at_hand {
            at_hand.give_back(room);
        }
        applied
    }

    /// Makes the decided means of parameters the anchor.
    pub(super) fn replace_by(&mut self, end: End, means: &[SliceId]) -> WorkResult {
        let range = self.core.places.of(end.fragment);
        // Beside the local buffer: if a mean is bad, this peer goes on from its own parameters.
        let mut scratch = vec![0.0; range.len()];
        self.decode(end.fragment, means, &mut scratch)?;
        self.core.anchor.values[range].copy_from_slice(&scratch);
        self.core.local.set(end.fragment, Held::TakeAnchor);
        Ok(())
    }

    /// Decodes a fragment's aggregates, one for each of its shards, into `into`.
    fn decode(
        &mut self,
        fragment: FragmentId,
        aggregates: &[SliceId],
        into: &mut [f32],
    ) -> WorkResult {
        let start = self.core.places.of(fragment).start;
        let of = u16::try_from(aggregates.len()).unwrap_or(u16::MAX);
        let places = &self.core.places;
        let shards = aggregates
            .iter()
            .map(|slice| places.shard(fragment, slice.shard, of));
        if shards.map(|shard| shard.len()).sum::<usize>() != into.len() {
            // What no aggregate writes does not move.
            into.fill(0.0);
        }
        for slice in aggregates {
            let shard = self.core.places.shard(fragment, slice.shard, of);
            let into = &mut into[shard.start - start..shard.end - start];
            match slice.part {
                // The column found no result: its shard stays.
                Part::Bundle if slice.attempt == Attempt::VOID => into.fill(0.0),
                Part::Bundle => {
                    into.fill(0.0);
                    self.decode_bundle(*slice, of, into)?;
                }
                _ => self.core.codecs.set_checked(into, *slice, self.host)?,
            }
        }
        Ok(())
    }

    /// Decodes the parts of one of `of` bundles into its shard, and keeps its note.
    fn decode_bundle(&mut self, slice: SliceId, of: u16, into: &mut [f32]) -> WorkResult {
        let core = &mut *self.core;
        let bytes = bytes_of(slice, self.host)?;
        let bundle = Bundle::read(&bytes);
        let bundle = bundle.ok_or_else(|| bad_slice(slice, "a malformed bundle".to_owned()))?;
        let parts = bundle.parts.len();
        let start = core.places.shard(slice.fragment, slice.shard, of).start;
        for (at, part) in bundle.parts.iter().enumerate() {
            let range = core.places.part(slice.fragment, slice.shard, of, at, parts);
            let into = &mut into[range.start - start..range.end - start];
            let added = add_decoded(&*core.codecs.aggregate, part, 1.0, into);
            added.map_err(|reason| bad_slice(slice, reason))?;
        }
        if !bundle.note.is_empty() {
            core.note = bundle.note.to_vec();
        }
        Ok(())
    }
}

impl MixCore {
    /// The bytes of the aggregates, if each tile of them can move the anchor while it is in a cache: then nothing needs
    /// room for all of them, and memory is read and written once.
    fn in_tiles(&self, end: End, all: &[SliceId], host: &dyn Host) -> Option<Vec<Bytes>> {
        let of = u16::try_from(all.len()).unwrap_or(u16::MAX);
        let shard = |slice: &SliceId| self.places.shard(end.fragment, slice.shard, of);
        let values = all.iter().map(|slice| shard(slice).len()).sum::<usize>();
        let fits = values == self.places.of(end.fragment).len()
            && all.iter().all(|slice| slice.part != Part::Bundle)
            && self.anchor.steps_in_pieces()
            && self.late_in(end).is_none();
        fits.then(|| self.codecs.in_tiles(all, host))?
    }

    /// As [`Work::apply_aggregates`], tile by tile. All are checked before the first one moves the anchor, and
    /// these very bytes are applied: the host may drop or replace a slice meanwhile.
    fn apply_tiles(&mut self, end: End, aggregates: &[SliceId], bytes: &[Bytes]) -> WorkResult {
        let of = u16::try_from(aggregates.len()).unwrap_or(u16::MAX);
        let shard = |places: &Places, slice: &SliceId| places.shard(end.fragment, slice.shard, of);
        for (slice, bytes) in aggregates.iter().zip(bytes) {
            let len = shard(&self.places, slice).len();
            self.codecs.check(*slice, bytes, len)?;
        }
        let held = self.lift(end)?;
        for (slice, bytes) in aggregates.iter().zip(bytes) {
            let range = shard(&self.places, slice);
            let anchor = &mut self.anchor;
            let mut step = |start: usize, tile: &mut [f32]| {
                let start = range.start + start;
                anchor.step(end.round, start..start + tile.len(), tile);
            };
            let moved = self.codecs.each_tile(*slice, bytes, range.len(), &mut step);
            assert!(moved.is_ok(), "it was checked: {moved:?}");
        }
        self.local.set(end.fragment, held);
        Ok(())
    }

    /// No mean came about: what this peer trained is its anchor.
    pub(super) fn keep_own(&mut self, fragment: FragmentId) {
        if self.local.of(fragment) == Held::Contribution {
            let range = self.places.of(fragment);
            let own = &self.local.values()[range.clone()];
            self.anchor.values[range].copy_from_slice(own);
        }
    }

    /// Moves the anchor by an aggregate. The training since the last anchor stays on top of it or is dropped.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer; nothing has changed then.
    pub(super) fn put_in_force(&mut self, end: End, aggregate: &mut [f32]) -> WorkResult {
        if let Some(late) = self.late_in(end) {
            self.put_in_force_late(late, end, aggregate);
            return Ok(());
        }
        let held = self.lift(end)?;
        let range = self.places.of(end.fragment);
        self.anchor.step(end.round, range, aggregate);
        self.local.set(end.fragment, held);
        Ok(())
    }

    /// What the fragment holds once the anchor has moved. Where the trainer is at hand, its delta is kept while the
    /// anchor moves below it.
    fn lift(&mut self, end: End) -> WorkResult<Held> {
        if !self.keeps_local(end) {
            return Ok(Held::TakeAnchor);
        }
        self.local.wait_for_trainer();
        let held = self.local.of(end.fragment);
        if let Some(at_hand) = &mut self.local.at_hand
            && held == Held::Contribution
        {
            let range = self.places.of(end.fragment);
            at_hand.lift(range.clone(), &self.anchor.values[range])?;
        }
        Ok(Held::KeepDelta)
    }

    /// Returns `true` if the local buffer holds this peer's delta, or a shift of the trainer's parameters.
    pub(super) fn holds_delta(&self, fragment: FragmentId) -> bool {
        // Of a companion the trainer always takes the common one over.
        if self.places.is_companion(fragment) {
            return false;
        }
        match self.local.of(fragment) {
            Held::Contribution => self.sends_deltas,
            held => matches!(held, Held::KeepDelta | Held::Shift),
        }
    }

    fn keeps_local(&self, end: End) -> bool {
        end.keep_local && self.holds_delta(end.fragment)
    }

    /// How the result meets training past the cut; `None` where the trainer takes the anchor as it
    /// is.
    fn late_in(&self, end: End) -> Option<Late> {
        let late = self.ahead.late_in(end.round)?;
        (self.sends_deltas && self.holds_delta(end.fragment)).then_some(late)
    }

    /// Moves the anchor by an aggregate while the trainer is past the cut. With `keep_local` the
    /// contribution was not part of the round, and all of this peer's training stays.
    fn put_in_force_late(&mut self, late: Late, end: End, aggregate: &mut [f32]) {
        let (fragment, keep_local) = (end.fragment, end.keep_local);
        let range = self.places.of(fragment);
        let before = self.anchor.values[range.clone()].to_vec();
        self.anchor.step(end.round, range.clone(), aggregate);
        let mut held = self.local.of(fragment);
        let local = &mut self.local.values()[range.clone()];
        // After an eager update the difference counts from where the trainer started, not from the
        // anchor: `resolve` leaves that difference in the local buffer.
        if let Some(eager) = &mut self.ahead.eager
            && eager.resolve(usize::from(fragment.0), range.clone(), local, keep_local)
            && keep_local
        {
            held = Held::Shift;
        }
        let moves = local.iter_mut();
        let moves = moves.zip(self.anchor.values[range].iter().zip(&before));
        let next = match (held, late.blend) {
            // A straggler applies several rounds: each adds to the shift of the one before.
            (Held::Shift, _) if keep_local => {
                moves.for_each(|(shift, (after, before))| *shift += after - before);
                Held::Shift
            }
            (Held::Shift, _) => Held::TakeAnchor,
            _ if keep_local => {
                moves.for_each(|(local, (after, before))| *local = after - before);
                Held::Shift
            }
            (_, Blend::OwnProgress | Blend::Eager | Blend::Estimate) => {
                moves.for_each(|(delta, (after, before))| *delta = after - (before + *delta));
                Held::Shift
            }
            (_, Blend::Alpha(_)) => Held::Blend,
        };
        self.local.set(fragment, next);
    }
}
