//! What was agreed on becomes the anchor.

use super::host::Host;
use super::mix_lane::{Local, MixLane};
use crate::correct::Companion;
use murmurate_protocol::{Contribution, Done, ExchangeKind, FragmentId, Round, SliceId, WorkError};
use std::ops::Range;

impl MixLane {
    /// Puts one fragment's outcome in force; the trainer takes it over with its next order.
    pub(super) fn apply(
        &mut self,
        round: Round,
        fragment: FragmentId,
        aggregates: &[SliceId],
        keep_local: bool,
        host: &dyn Host,
    ) -> Result<Done, WorkError> {
        self.collect();
        let index = usize::from(fragment.0);
        if let ExchangeKind::Center(_) = self.exchange {
            return self.pull(fragment, aggregates, host);
        }
        if !self.exchange.agrees() {
            self.apply_local(fragment);
            return Ok(Done::Applied {
                digest: self.digest(fragment),
            });
        }
        let range = self.range(fragment);
        if keep_local && self.holds_delta(fragment) {
            // The local buffer holds a delta that stays: decode beside it.
            let mut scratch = vec![0.0; range.len()];
            self.decode(fragment, aggregates, &mut scratch, host)?;
            self.step(round, range, &mut scratch);
            self.local[index] = Local::KeepDelta;
        } else {
            let mut local = self.take_local();
            let piece = &mut local[range.clone()];
            piece.fill(0.0);
            let decoded = self.decode(fragment, aggregates, piece, host);
            if decoded.is_ok() {
                self.step(round, range, piece);
            }
            self.put_local(local);
            decoded?;
            self.local[index] = Local::TakeAnchor;
        }
        if let Some(squeezed) = &mut self.squeezed {
            squeezed.settle(fragment, aggregates);
        }
        Ok(Done::Applied {
            digest: self.digest(fragment),
        })
    }

    /// Whether the local buffer holds what was trained since the anchor.
    fn holds_delta(&self, fragment: FragmentId) -> bool {
        // Of a companion the common one is taken over, whatever the own one was.
        if self.is_companion(fragment) {
            return false;
        }
        let local = self.local[usize::from(fragment.0)];
        let delta = local == Local::Contribution && self.contribution == Contribution::Delta;
        delta || local == Local::KeepDelta
    }

    /// Moves the anchor by an aggregate; what was trained since stays on top or goes.
    pub(super) fn put_in_force(
        &mut self,
        round: Round,
        fragment: FragmentId,
        aggregate: &mut [f32],
        keep_local: bool,
    ) {
        let keep = keep_local && self.holds_delta(fragment);
        self.step(round, self.range(fragment), aggregate);
        self.local[usize::from(fragment.0)] = match keep {
            true => Local::KeepDelta,
            false => Local::TakeAnchor,
        };
    }

    /// Gossip and no exchange: the anchor is the mix, or what training left.
    fn apply_local(&mut self, fragment: FragmentId) {
        let (index, range) = (usize::from(fragment.0), self.range(fragment));
        let mixed = std::mem::take(&mut self.mixed[index]);
        if mixed || (self.companion == Companion::Flows && self.is_companion(fragment)) {
            self.local[index] = Local::TakeAnchor;
        } else if self.local[index] == Local::Contribution {
            let local = self.take_local();
            self.anchor[range.clone()].copy_from_slice(&local[range]);
            self.put_local(local);
            self.local[index] = Local::Untouched;
        }
    }

    /// Decodes a fragment's aggregates, shard by shard, into `into` (zeros).
    fn decode(
        &self,
        fragment: FragmentId,
        aggregates: &[SliceId],
        into: &mut [f32],
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let start = self.range(fragment).start;
        let of = u16::try_from(aggregates.len()).unwrap_or(u16::MAX);
        for slice in aggregates {
            let shard = self.shard_range(fragment, slice.shard, of);
            self.add_checked(
                &mut into[shard.start - start..shard.end - start],
                *slice,
                1.0,
                host,
            )?;
        }
        Ok(())
    }

    /// Moves the anchor by an aggregated delta (outer optimizer) or gradient (inner optimizer), and the
    /// companion's by its aggregate as it is.
    fn step(&mut self, round: Round, range: Range<usize>, aggregate: &mut [f32]) {
        let anchor = &mut self.anchor[range.clone()];
        if range.start >= self.parameters {
            let moved = anchor.iter_mut().zip(&*aggregate);
            return moved.for_each(|(c, d)| *c += d);
        }
        match &mut self.inner {
            Some(inner) => {
                if self.inner_round != Some(round) {
                    self.inner_round = Some(round);
                    inner.begin_step();
                }
                inner.apply(range, anchor, aggregate);
            }
            None => self.outer.apply(range, anchor, aggregate),
        }
    }
}
