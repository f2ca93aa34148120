//! Places for newcomers: one member gives each its place.

use super::news::News;
use super::{CellsExchange, CellsMessage};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::{CELL_SEAT_KEPT, ROLL_PEERS_MAX};
use crate::wire::PeerRecord;
use crate::{PeerError, PeerId, RollSeat};

impl CellsExchange {
    /// Notes since when mates have no link.
    pub(super) fn note_down(&mut self, cx: &Context) {
        let mates = &cx.rolls.mates;
        let is_down = |peer: &PeerId| !cx.view.takes_part(*peer);
        self.down
            .retain(|peer, _| mates.contains(peer) && is_down(peer));
        for peer in mates.iter().filter(|peer| is_down(peer)) {
            self.down.entry(*peer).or_insert(cx.now);
        }
    }

    /// The place of a mate that has been gone for long, if no newcomer has it yet.
    fn vacant(&self, cx: &Context) -> Option<usize> {
        let roll = cx.rolls.roll.as_ref()?;
        let gone = |(peer, since): &(&PeerId, &crate::Time)| {
            cx.now.since(**since) >= CELL_SEAT_KEPT && !cx.view.takes_part(**peer)
        };
        let places = self.down.iter().filter(gone);
        let mut places = places.filter_map(|(peer, _)| roll.place_of(*peer));
        places.find(|place| !self.news.changes(*place))
    }

    /// A newcomer asks for a place.
    pub(super) fn seat(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        record: &PeerRecord,
    ) -> Result<(), PeerError> {
        if record.peer != from || record.run != cx.plan.run {
            return broke("another peer's wish for a place");
        }
        let Some(((dealing, _), roll)) = Self::place(cx).zip(cx.rolls.roll.clone()) else {
            return Ok(());
        };
        let has = roll
            .place_of(from)
            .and_then(|at| Some((at, roll.place(at)?)));
        let soon = self.news.seat_of(from).cloned();
        let seat = match (soon, has) {
            (Some(soon), _) => soon,
            (None, Some((place, held))) => RollSeat {
                place: place as u32,
                record: held.record.clone(),
                since: held.since,
            },
            (None, None) => {
                let place = self.vacant(cx).unwrap_or(self.news.free_place(&roll));
                if place >= ROLL_PEERS_MAX {
                    return Ok(());
                }
                RollSeat {
                    place: place as u32,
                    record: record.clone(),
                    since: News::in_force(cx, &dealing),
                }
            }
        };
        self.news.learn(cx.round, core::slice::from_ref(&seat));
        cx.send(from, CellsMessage::Seats(vec![seat]));
        Ok(())
    }
}
