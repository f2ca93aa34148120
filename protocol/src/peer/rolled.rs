//! A peer of a grid or of cells: its place in the roll, links to its mates, and the way in for one without a place.

use crate::core::remote::DIALS_REFUSED;
use crate::core::{Output, Phase};
use crate::exchange::GridMessage;
use crate::limits::{ALIVE_EVERY, DIAL_ATTEMPTS_MAX, SPONSORS_MAX};
use crate::peer::Peer;
use crate::peer::life::Missing;
use crate::{PeerId, Round};
use core::time::Duration;
use rand_core::Rng;

impl Peer {
    /// Whether swarms of this run have a roll.
    pub(super) const fn has_rolls(&self) -> bool {
        self.cx.plan.agreement.grouping.has_roll()
    }

    /// Whether this peer takes part in no round, because it has no place in the roll.
    pub(super) fn is_outside(&self) -> bool {
        let place = self
            .cx
            .rolls
            .roll
            .as_ref()
            .and_then(|roll| roll.place_of(self.cx.me()));
        self.has_rolls() && place.is_none()
    }

    /// Dials mates without a link. Of two, the one with the lower id dials first.
    pub(super) fn dial_mates(&mut self) {
        let now = self.cx.now;
        let Some(roll) = self.cx.rolls.roll.clone() else {
            return;
        };
        for mate in self.cx.rolls.mates.clone().iter().copied() {
            let place = roll.place_of(mate).and_then(|place| roll.place(place));
            let Some(record) = place.map(|place| place.record.clone()) else {
                continue;
            };
            let first = self.cx.me() < mate;
            // Mates take the place of others that are only known.
            let Some(remote) = self.cx.view.entry(mate) else {
                continue;
            };
            if remote.contact.record.is_none() {
                remote.contact.record = Some(record.clone());
            }
            let newest = remote.contact.record.clone().unwrap_or(record);
            let contact = &mut remote.contact;
            let due = contact.dial_at.is_none_or(|at| at <= now);
            if remote.linked || remote.banned || contact.dials == DIALS_REFUSED || !due {
                continue;
            }
            if contact.dials == 0 && !first {
                // The other end dials now; if it cannot, this one does with the next sign of life.
                contact.dials = 1;
                contact.dial_at = Some(now + ALIVE_EVERY / 2);
                continue;
            }
            contact.dials = (contact.dials + 1).min(DIAL_ATTEMPTS_MAX - 1);
            contact.dial_at = Some(now + Duration::from_secs(1 << contact.dials.min(6)));
            self.cx.put(Output::Dial(newest));
        }
    }

    /// Without a place: asks a few members for one.
    pub(super) fn ask_for_a_place(&mut self) {
        let Some(record) = self.cx.view.mine().cloned() else {
            return;
        };
        let roll = self.cx.rolls.roll.clone();
        let member = |peer: &PeerId| {
            let roll = roll.as_ref();
            roll.is_some_and(|roll| roll.place_of(*peer).is_some())
        };
        let live = self.cx.view.live().map(|(peer, _)| peer);
        let mut sponsors: Vec<PeerId> = live.filter(member).collect();
        if self.trains_outside() && !sponsors.is_empty() {
            // Each would give it another place: one at a time.
            let one = self.cx.rng.next_u64() % sponsors.len() as u64;
            sponsors.swap(0, one as usize);
            sponsors.truncate(1);
        }
        for sponsor in sponsors.into_iter().take(SPONSORS_MAX) {
            self.cx.send(sponsor, GridMessage::Apply(record.clone()));
        }
    }

    /// Whether the roll has a place for this peer.
    pub(super) fn sits(&self) -> bool {
        self.cx.rolls.roll.is_some() && !self.is_outside()
    }

    /// Whether this peer follows the others without taking part, for want of a place.
    pub(super) fn only_follows(&self) -> bool {
        let outside = self.cx.rolls.roll.is_some() && self.is_outside();
        self.life.once.observes || (outside && !self.trains_outside())
    }

    /// Whether a peer without a place trains on from its own parameters: where peers agree on no anchor.
    pub(super) const fn trains_outside(&self) -> bool {
        self.cx.plan.exchange.facts().deals_cells
    }

    /// Another peer says that this one has a place from a round on.
    pub(super) fn placed(&mut self, from: PeerId, round: Round) {
        if let Some(remote) = self.cx.view.get_mut(from) {
            remote.round = remote.round.max(round);
        }
        if self.phase == Phase::Join {
            self.try_begin();
        }
    }

    pub(super) fn is_here(&self, peer: PeerId) -> bool {
        let remote = self.cx.view.get(peer);
        remote.is_some_and(|remote| remote.linked && remote.greeted)
    }

    /// Whether all of this peer's mates are here.
    pub(super) fn all_mates_here(&self) -> bool {
        if let Some(Missing::Link(mate)) = self.life.once.waits_for
            && self.cx.rolls.mates.contains(&mate)
            && !self.is_here(mate)
        {
            return false;
        }
        self.cx.rolls.mates.iter().all(|peer| self.is_here(*peer))
    }

    /// How many of this peer's mates are here, of how many.
    pub(super) fn mates_here(&self) -> (usize, usize) {
        let mates = &self.cx.rolls.mates;
        let here = mates.iter().filter(|peer| self.is_here(**peer));
        (here.count(), mates.len())
    }
}
