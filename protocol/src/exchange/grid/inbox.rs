//! What arrives for one fragment of a grid's round.

use super::part::GridPart;
use super::row::Sum;
use crate::core::context::Context;
use crate::exchange::agreed::{FragmentMessage, Scoped, ShardVersion};
use crate::exchange::broke;
use crate::{
    Attempt, Digest, Order, Part, PeerError, PeerId, PushOutcome, SliceId, SliceMeta, Tag, Taken,
    Wait,
};

impl GridPart {
    /// A slice arrived.
    pub(super) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    ) -> Result<(), PeerError> {
        match (meta.tag, digest) {
            (Tag::Share { weight, taken, .. }, _) => {
                self.share_arrived(cx, from, slice, &meta, (weight, taken))?;
            }
            (Tag::Result { rows, counted, .. }, Some(digest)) => {
                let column = self.seating.column_of(from);
                let named = slice == self.bundle(slice.shard);
                if column != Some(usize::from(slice.shard)) || !named {
                    return broke("a column's result from a peer outside it");
                }
                let version = ShardVersion {
                    owner: slice.origin,
                    attempt: Attempt::FIRST,
                    contributors: rows,
                    digest,
                };
                self.result_arrived(cx, from, slice, (version, counted))?;
            }
            (Tag::RowMean { .. } | Tag::Mean { .. }, _) => match &mut self.column {
                Some(column) if !column.over() => {
                    column.arrived(cx, from, slice, meta, digest)?;
                }
                Some(column) if column.holds(&slice) => {}
                _ => {
                    cx.order(Order::Release { slice });
                }
            },
            _ => return broke("a slice that has no place in a grid"),
        }
        self.advance(cx);
        Ok(())
    }

    fn share_arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: &SliceMeta,
        (weight, taken): (f64, Option<Taken>),
    ) -> Result<(), PeerError> {
        let fits = slice.part == Part::Contribution
            && slice.shard == self.mine()
            && meta.of == self.seating.columns()
            && slice.attempt == Attempt::FIRST;
        if !fits || !self.row.served.contains(&from) || !weight.is_finite() || weight <= 0.0 {
            return broke("a contribution that this peer does not sum");
        }
        self.slices.insert(slice);
        let waited = cx.now.since(self.row.since);
        cx.deadlines.record(Wait::Group, from, waited);
        if self.row.sum == Sum::Collecting {
            self.row.awaited.remove(&from);
            self.row.here.insert(from, weight);
            self.row.taken.extend(taken.map(|taken| (from, taken)));
        }
        Ok(())
    }

    /// A push ended.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        if slice.part == Part::Contribution && self.row.sending.remove(&slice.shard) {
            self.feed(cx);
            self.advance(cx);
        }
        if matches!(slice.part, Part::RowMean | Part::Aggregate)
            && let Some(column) = &mut self.column
        {
            column.pushed(cx, to, slice, outcome);
        }
    }

    /// A message of this peer's column.
    pub(super) fn column_said(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        let Some(column) = &mut self.column else {
            return broke("a message of a column to a newcomer");
        };
        if let FragmentMessage::Tally(entries) = &message.body {
            let mut places = entries.iter().map(|entry| usize::from(entry.place));
            if !places.all(|place| self.seating.sums_for(from, place)) {
                return broke("contributions that the sender does not sum");
            }
        }
        let said = column.message(cx, from, message);
        self.advance(cx);
        said
    }
}
