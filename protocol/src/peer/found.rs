//! A fresh peer of a grid or of cells: takes part in founding the run's first roll.

use crate::core::Output;
use crate::core::timers::Timer;
use crate::limits::FOUNDING_EVERY;
use crate::peer::Peer;
use crate::roll::Founding;
use crate::wire::{PeerRecord, RecordFields};
use crate::{FoundingMessage, Grouping, PeerId, Round};

/// Rounds after which no peer lacks the first roll any more.
const SERVED_UNTIL: Round = Round(3);

impl Peer {
    /// This peer's record is known: it can be found, and can found.
    pub(super) fn begin_founding(&mut self, record: &PeerRecord) {
        let row = match self.cx.plan.agreement.grouping {
            Grouping::Flat => return,
            Grouping::Grid { row } => row,
            Grouping::Cells { cell } | Grouping::RandomCells { cell } => cell,
        };
        let fresh = self.cx.round == Round(0)
            && self.cx.rolls.roll.is_none()
            && record.run == self.cx.plan.run;
        if !fresh || self.life.once.observes {
            return;
        }
        if let Some(founding) = &mut self.founding {
            founding.renew(record);
            return;
        }
        let start_with = self.cx.config.start_with;
        let founding = Founding::new(record.clone(), self.cx.plan.run, row, start_with)
            .sharing(self.cx.rolls.shared.clone());
        self.founding = Some(Box::new(founding));
        self.cx
            .timers
            .set(Timer::Founding, self.cx.now + FOUNDING_EVERY);
    }

    /// A peer's record as it is known; without addresses if it is only linked.
    fn record_of(&self, peer: PeerId) -> PeerRecord {
        let known = self.cx.view.get(peer).and_then(|remote| remote.record());
        known.cloned().unwrap_or_else(|| {
            PeerRecord::from(RecordFields {
                peer,
                run: self.cx.plan.run,
                sequence: 0,
                expires: self.cx.now,
                addresses: Vec::new(),
                locality: crate::Locality::default(),
                signature: Vec::new(),
            })
        })
    }

    /// A peer greeted this one: it learns what is known of the founding.
    pub(super) fn greet_founder(&mut self, peer: PeerId) {
        let record = self.record_of(peer);
        if let Some(founding) = &mut self.founding {
            founding.greet(&record);
            self.say_founding();
        }
    }

    pub(super) fn founding_said(&mut self, from: PeerId, message: &FoundingMessage) {
        let record = self.record_of(from);
        if let Some(founding) = &mut self.founding {
            founding.said(&record, message);
            self.say_founding();
        }
    }

    pub(super) fn founding_tick(&mut self) {
        if self.cx.round >= SERVED_UNTIL {
            self.founding = None;
            return;
        }
        let under_way = self
            .cx
            .view
            .live()
            .any(|(_, remote)| remote.round > Round(0));
        // Once this peer has its roll no neighbour need be told of registrars, and it has hundreds.
        let founds = self.cx.rolls.roll.is_none();
        let linked = self.cx.view.greeted().map(|(peer, _)| peer);
        let linked: Vec<PeerId> = linked.filter(|_| founds).collect();
        let linked: Vec<PeerRecord> = linked
            .into_iter()
            .map(|peer| self.record_of(peer))
            .collect();
        if let Some(founding) = &mut self.founding {
            self.cx
                .timers
                .set(Timer::Founding, self.cx.now + FOUNDING_EVERY);
            // Once this peer has its roll, it only serves others. One that looks for a run that is under
            // way founds none.
            let lonely = self.cx.config.join && linked.is_empty();
            if self.cx.rolls.roll.is_none() && !under_way && !lonely {
                founding.tick(&linked);
            }
            self.say_founding();
        }
    }

    /// A registrar's link is gone.
    pub(super) fn founder_gone(&mut self, peer: PeerId) {
        if let Some(founding) = &mut self.founding {
            founding.lost(peer);
        }
    }

    /// Sends what the founding has to say; peers without a link are dialled, and hear it again.
    fn say_founding(&mut self) {
        let Some(founding) = &mut self.founding else {
            return;
        };
        let (says, roll) = (founding.says(), founding.roll());
        let now = self.cx.now;
        for (to, message) in says {
            if to.peer == self.cx.me() {
                continue;
            }
            let greeted = |peer| {
                self.cx
                    .view
                    .get(peer)
                    .is_some_and(|r| r.linked && r.greeted)
            };
            if greeted(to.peer) {
                self.cx.send(to.peer, message);
                continue;
            }
            self.cx.view.learn(&to, now);
            let Some(remote) = self.cx.view.entry(to.peer) else {
                continue;
            };
            let due = remote.contact.dial_at.is_none_or(|at| at <= now);
            if !remote.linked && due && !to.addresses.is_empty() {
                remote.contact.dial_at = Some(now + 4 * FOUNDING_EVERY);
                self.cx.put(Output::Dial(to));
            }
        }
        if self.cx.rolls.roll.is_none()
            && let Some(roll) = roll
        {
            self.cx.hold(Some(roll));
            self.dial_mates();
            self.try_begin();
        }
    }
}
