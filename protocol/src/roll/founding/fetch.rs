//! How a peer gets the pages of a roll that it is to accept, or that was chosen.

use super::{Founding, RollName};
use crate::Digest;
use crate::limits::FOUNDING_RECORDS_MAX;
use crate::roll::FoundingMessage;
use crate::roll::pages::Incoming;
use crate::wire::PeerRecord;

impl Founding {
    /// Another peer says which roll was chosen: those that registered here hear it.
    pub(super) fn found(&mut self, from: &PeerRecord, roll: RollName) {
        if self.founded.is_none() {
            self.founded = Some(roll);
            let here = self.register.here().take(FOUNDING_RECORDS_MAX);
            for record in here.cloned().collect::<Vec<_>>() {
                self.say_founded(&record);
            }
        }
        if self.founded == Some(roll) {
            self.ask(roll, from);
        }
    }

    /// Asks a peer for the next page of a roll that is not here.
    pub(super) fn ask(&mut self, name: RollName, holder: &PeerRecord) {
        if self.rolls.contains_key(&name.digest) {
            return;
        }
        let current = self.incoming.take().filter(|i| i.name() == name);
        let incoming = current.unwrap_or_else(|| Incoming::new(name));
        let (roll, first) = (name.digest, incoming.next());
        self.incoming = Some(incoming);
        self.say(holder, FoundingMessage::PageAsk { roll, first });
    }

    /// Asks again if no page came lately: its holder, neighbours and registrars in turn.
    pub(super) fn fetch(&mut self, linked: &[PeerRecord]) {
        let asked = self.asked.as_ref();
        let Some(name) = self.founded.or(asked.map(|asked| asked.roll)) else {
            return;
        };
        if self.rolls.contains_key(&name.digest) {
            return;
        }
        let mut tries = 0;
        if let Some(incoming) = self.incoming.as_mut().filter(|i| i.name() == name) {
            // Pages are coming; another question would bring the same ones twice.
            if std::mem::take(&mut incoming.moves) {
                return;
            }
            incoming.tries += 1;
            tries = incoming.tries;
        }
        let asked = asked.filter(|asked| asked.roll == name);
        let others = self.register.registrars();
        let registrars: Vec<&PeerRecord> = others.filter(|r| r.peer != self.me.peer).collect();
        let (turn, kind) = (tries / 3, tries % 3);
        let to = match (kind, asked) {
            (0, Some(asked)) => Some(&asked.holder),
            (1, _) if !registrars.is_empty() => Some(registrars[turn % registrars.len()]),
            _ => linked.get(turn % linked.len().max(1)),
        };
        if let Some(to) = to.cloned() {
            self.ask(name, &to);
        }
    }

    pub(super) fn page_came(
        &mut self,
        from: &PeerRecord,
        roll: Digest,
        first: u16,
        records: &[PeerRecord],
    ) {
        let run = self.register.run();
        let incoming = self.incoming.as_mut();
        let Some(incoming) = incoming.filter(|incoming| incoming.name().digest == roll) else {
            return;
        };
        // It is not the next page, or of another run: what is here stays.
        if !incoming.takes(first, records, run) {
            return;
        }
        let name = incoming.name();
        if !incoming.is_whole() {
            self.ask(name, from);
            return;
        }
        // Pages of another roll than was named begin again, with another peer to ask.
        if let Some(roll) = incoming.roll(self.terms.row, &self.shared) {
            self.incoming = None;
            self.rolls.insert(name.digest, roll);
            self.accept_asked();
        }
    }
}
