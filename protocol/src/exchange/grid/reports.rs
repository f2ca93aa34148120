//! What changes of the roll: who is absent, who wants a place, and the note that says so.

use super::seating::Seating;
use super::{GridExchange, GridMessage};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::GRID_ABSENT_ROUNDS;
use crate::{PeerError, PeerId, RollChange};
use std::collections::BTreeSet;

impl GridExchange {
    /// What this peer would change of the roll: row mates that are gone, and newcomers.
    pub(super) fn own_report(&self, cx: &Context) -> RollChange {
        let gone = |peer: &PeerId| {
            let remote = cx.view.get(*peer);
            remote.is_none_or(|r| !r.linked)
        };
        let seating = self.seating.as_ref();
        let mates = seating.map(|s| s.served()).unwrap_or_default();
        let settled = |peer: &PeerId| {
            let place = seating.and_then(|s| Some((s, s.roll.place_of(*peer)?)));
            place.is_some_and(|(s, place)| s.is_settled(place))
        };
        let leave = mates.into_iter().filter(|peer| {
            let rounds = self.absent.get(peer).copied().unwrap_or(0);
            let long = rounds >= GRID_ABSENT_ROUNDS;
            *peer != cx.me() && settled(peer) && (long || (gone(peer) && rounds > 0))
        });
        let mut change = RollChange {
            leave: leave.collect(),
            join: self.applicants.values().cloned().collect(),
        };
        change.cut();
        change
    }

    /// Another peer reports: one of the column that decides about the roll in this round, or one of this
    /// peer's row that has newcomers.
    pub(super) fn report_came(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        change: &RollChange,
        seating: &Seating,
    ) -> Result<(), PeerError> {
        let column = seating.column_of(from) == Some(seating.column());
        let row = seating.served().contains(&from) && change.leave.is_empty();
        if !column && !row {
            return broke("a report from a peer of another row and column");
        }
        let me = cx.me();
        let mut change = change.clone();
        change.leave.retain(|peer| *peer != me);
        let deciding = cx.plan.fragments_of(seating.round).next();
        let part = deciding.and_then(|fragment| self.parts.get(&fragment));
        let notary = part.and_then(|part| part.column.as_ref()?.notary());
        match notary.filter(|notary| *notary != me && !column) {
            Some(notary) => {
                let round = seating.round;
                cx.send(notary, GridMessage::Report { round, change });
            }
            None => {
                self.merge_report(change);
                let note = self.reported.to_bytes();
                let part = deciding.and_then(|fragment| self.parts.get_mut(&fragment));
                if let Some(part) = part {
                    part.set_note(note);
                }
            }
        }
        Ok(())
    }

    /// Tells the member of this peer's row that decides about the roll of the newcomers here.
    pub(super) fn pass_on_newcomers(&self, cx: &mut Context) {
        let Some(seating) = &self.seating else { return };
        let deciding = (seating.round.0 % seating.grid.columns() as u64) as usize;
        let registrar = seating.owner_of(deciding).filter(|peer| *peer != cx.me());
        if let Some(registrar) = registrar.filter(|_| !self.applicants.is_empty()) {
            let round = seating.round;
            let mut change = RollChange {
                leave: Vec::new(),
                join: self.applicants.values().cloned().collect(),
            };
            change.cut();
            cx.send(registrar, GridMessage::Report { round, change });
        }
    }

    pub(super) fn merge_report(&mut self, change: RollChange) {
        for peer in change.leave {
            if !self.reported.leave.contains(&peer) {
                self.reported.leave.push(peer);
            }
        }
        for record in change.join {
            if self
                .reported
                .join
                .iter()
                .all(|known| known.peer != record.peer)
            {
                self.reported.join.push(record);
            }
        }
        self.reported.cut();
    }

    /// Counts in how many rounds each mate has not contributed.
    pub(super) fn note_absence(&mut self, cx: &Context) {
        let Some(seating) = &self.seating else { return };
        let came = self
            .parts
            .values()
            .flat_map(super::part::GridPart::contributors);
        let came: BTreeSet<PeerId> = came.collect();
        let served = seating.served();
        self.absent.retain(|peer, _| served.contains(peer));
        for peer in served.into_iter().filter(|peer| *peer != cx.me()) {
            let drawn = cx.plan.draws(seating.round, peer);
            match came.contains(&peer) {
                true => {
                    self.absent.remove(&peer);
                }
                false if drawn => {
                    let rounds = self.absent.entry(peer).or_default();
                    *rounds = rounds.saturating_add(1);
                }
                false => {}
            }
        }
    }
}
