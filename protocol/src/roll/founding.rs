//! How a run gets its first roll.
//!
//! Peers that are here without a roll pass on the records of the 63 highest ranks that they know (a
//! hash over run and peer). All soon know the same 63: the registrars. Each peer registers with one of
//! them, chosen by its id; each registrar passes its list on to the highest of them, the founder. Once
//! enough peers are here and nothing has changed for a while, the founder proposes the roll of all of
//! them, and a majority of the registrars of that roll accepts it. If the founder dies, the next one
//! first hears what a majority has accepted, and proposes that. The others fetch the roll page by page.
//!
//! Two first rolls need two founders whose registrars have no majority in common: half of the 63
//! highest ranks unknown to one another, as in a swarm that is split before it began.

use super::acceptor::{Acceptor, Proposal};
use super::pages::{Rolls, in_messages};
use super::register::Register;
use super::{FoundingBallot, FoundingMessage, Roll, RollName};
use crate::limits::{FOUNDING_QUIET_TICKS, FOUNDING_RETRY_TICKS, REGISTRARS_MAX, ROLL_PEERS_MAX};
use crate::wire::PeerRecord;
use crate::{Digest, PeerId, Round, RunId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something to say to a peer, which may have to be dialled first.
pub(crate) type Say = (PeerRecord, FoundingMessage);

/// The founding of a run, as one peer takes part in it.
#[derive(Debug)]
pub(crate) struct Founding {
    me: PeerRecord,
    run: RunId,
    /// Peers in a row, as the plan asks.
    row: u16,
    start_with: usize,
    register: Register,
    acceptor: Acceptor,
    proposal: Option<Proposal>,
    rolls: Rolls,
    /// What to accept once its roll is here.
    asked: Option<(PeerRecord, FoundingBallot, RollName)>,
    founded: Option<RollName>,
    ticks: u32,
    /// The tick of the last change of what is known.
    changed: u32,
    /// Registrars that its neighbours may not know yet.
    news: Vec<PeerRecord>,
    says: Vec<Say>,
}

impl Founding {
    pub(crate) fn new(me: PeerRecord, run: RunId, row: u16, start_with: usize) -> Self {
        let mut this = Self {
            me: me.clone(),
            run,
            row,
            start_with,
            register: Register::new(run),
            acceptor: Acceptor::default(),
            proposal: None,
            rolls: Rolls::default(),
            asked: None,
            founded: None,
            ticks: 0,
            changed: 0,
            news: Vec::new(),
            says: Vec::new(),
        };
        this.register.here.insert(me.peer, me.clone());
        this.meet(&me);
        this
    }

    /// What it has to say since the last call.
    pub(crate) fn says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    /// The roll, once it is chosen and here.
    pub(crate) fn roll(&self) -> Option<Arc<Roll>> {
        self.rolls.get(&self.founded?.digest).cloned()
    }

    fn say(&mut self, to: &PeerRecord, message: FoundingMessage) {
        if to.peer != self.me.peer {
            self.says.push((to.clone(), message));
        }
    }

    /// Says records, in as many messages as they take.
    fn say_records(
        &mut self,
        to: &PeerRecord,
        records: &[PeerRecord],
        message: fn(Vec<PeerRecord>) -> FoundingMessage,
    ) {
        for some in in_messages(records) {
            self.say(to, message(some));
        }
    }

    /// Tells a peer all registrars that this one knows.
    fn say_registrars(&mut self, to: &PeerRecord) {
        let records: Vec<PeerRecord> = self.register.registrars().cloned().collect();
        self.say_records(to, &records, FoundingMessage::Registrars);
    }

    /// Takes a record into account; true if its peer is a registrar that was not known.
    fn meet(&mut self, record: &PeerRecord) -> bool {
        let news = self.register.meet(record);
        if news {
            self.changed = self.ticks;
        }
        news
    }

    /// Whether this peer is the highest that it knows.
    fn founds(&self) -> bool {
        let first = self.register.first();
        first.is_some_and(|first| first.peer == self.me.peer)
    }

    /// A link with a peer without a roll came up, or this peer's record changed: it learns what this one
    /// knows.
    pub(crate) fn greet(&mut self, to: &PeerRecord) {
        self.say_registrars(to);
        if let Some(name) = self.founded {
            self.say(to, FoundingMessage::Founded(name));
        }
    }

    /// A registrar cannot be reached: others take its part.
    pub(crate) fn lost(&mut self, peer: PeerId) {
        if peer != self.me.peer && self.register.lose(peer, self.ticks) {
            self.changed = self.ticks;
        }
    }

    /// Time passes. `linked` are peers that may not know the registrars yet.
    pub(crate) fn tick(&mut self, linked: &[PeerRecord]) {
        self.ticks += 1;
        self.register.tick(self.ticks);
        if let Some(name) = self.founded {
            self.ask_pages(name, linked.first().cloned());
            return;
        }
        let known = |r: &&PeerRecord| self.register.is_registrar(r.peer);
        let news: Vec<PeerRecord> = self.news.iter().filter(known).cloned().collect();
        self.news.clear();
        for to in linked {
            self.say_records(to, &news, FoundingMessage::Registrars);
        }
        // Now and then all, for what was lost on the way.
        if let Some(to) = linked.get(self.ticks as usize % (4 * linked.len()).max(1)) {
            self.say_registrars(to);
        }
        // Each registers with its registrar; a registrar passes its list on to the founder.
        let is_registrar = self.register.is_registrar(self.me.peer);
        let to = match is_registrar {
            true => self.register.first().cloned(),
            false => self.register.home(self.me.peer).cloned(),
        };
        if let Some(to) = to.filter(|to| to.peer != self.me.peer) {
            let here: Vec<PeerRecord> = match is_registrar {
                true => self.register.here.values().cloned().collect(),
                false => vec![self.me.clone()],
            };
            self.say_records(&to, &here, FoundingMessage::Here);
        }
        let quiet = self.ticks - self.changed >= FOUNDING_QUIET_TICKS;
        let enough = self.register.here.len() >= self.start_with;
        let due = self.ticks - self.changed >= FOUNDING_QUIET_TICKS + FOUNDING_RETRY_TICKS;
        if self.founds() && quiet && enough && (self.proposal.is_none() || due) {
            self.propose();
        }
        if let Some((from, _, roll)) = self.asked.clone() {
            self.ask_pages(roll, Some(from));
        }
    }

    /// Proposes the roll of all who are here.
    fn propose(&mut self) {
        self.changed = self.ticks;
        let ranked: BTreeMap<(u64, PeerId), PeerRecord> = self
            .register
            .here
            .values()
            .map(|record| (self.register.rank(record.peer), record.clone()))
            .collect();
        let registrars = ranked
            .keys()
            .rev()
            .take(REGISTRARS_MAX)
            .map(|(_, peer)| *peer);
        let registrars: BTreeSet<PeerId> = registrars.collect();
        let records = ranked.into_values().rev().take(ROLL_PEERS_MAX);
        let roll = Arc::new(Roll::found(records, self.row, Round(0)));
        self.rolls.insert(roll.clone());
        let number = self.acceptor.promised.number + 1;
        let ballot = FoundingBallot {
            number,
            founder: Some(self.me.peer),
        };
        self.proposal = Some(Proposal::new(ballot, roll, registrars.clone()));
        self.tell_registrars(&FoundingMessage::Prepare { ballot });
        if registrars.contains(&self.me.peer) && self.acceptor.prepare(ballot) {
            let accepted = self.acceptor.accepted;
            self.promised(self.me.peer, ballot, accepted);
        }
    }

    fn tell_registrars(&mut self, message: &FoundingMessage) {
        let Some(proposal) = &self.proposal else {
            return;
        };
        let places = proposal.registrars.iter();
        let to = places.filter_map(|peer| self.register.here.get(peer).cloned());
        for record in to.collect::<Vec<_>>() {
            self.say(&record, message.clone());
        }
    }

    fn promised(
        &mut self,
        from: PeerId,
        ballot: FoundingBallot,
        accepted: Option<(FoundingBallot, RollName)>,
    ) {
        let proposal = self.proposal.as_mut().filter(|p| p.ballot == ballot);
        let Some(roll) = proposal.and_then(|proposal| proposal.promised(from, accepted)) else {
            return;
        };
        self.tell_registrars(&FoundingMessage::Accept { ballot, roll });
        if self.rolls.has(&roll.digest) {
            self.accept_own(ballot, roll);
        } else if let Some(holder) = self.register.here.get(&from).cloned() {
            self.asked = Some((holder, ballot, roll));
            self.ask_pages(roll, None);
        }
    }

    /// The founder is a registrar of its own roll too.
    fn accept_own(&mut self, ballot: FoundingBallot, roll: RollName) {
        if self.acceptor.accept(ballot, roll) {
            self.accepted(self.me.peer, ballot);
        }
    }

    fn accepted(&mut self, from: PeerId, ballot: FoundingBallot) {
        let proposal = self.proposal.as_mut().filter(|p| p.ballot == ballot);
        if let Some(roll) = proposal.and_then(|proposal| proposal.accepted(from)) {
            self.found(roll);
        }
    }

    /// A roll is chosen: all that this peer knows of hear it.
    fn found(&mut self, roll: RollName) {
        if self.founded.is_some() {
            return;
        }
        self.founded = Some(roll);
        let here = self
            .register
            .here
            .values()
            .chain(self.register.registrars())
            .cloned();
        let here: BTreeMap<PeerId, PeerRecord> = here.map(|r| (r.peer, r)).collect();
        for record in here.into_values() {
            self.say(&record, FoundingMessage::Founded(roll));
        }
    }

    /// A message of another peer, whose record is known.
    pub(crate) fn said(&mut self, from: &PeerRecord, message: &FoundingMessage) {
        match message {
            FoundingMessage::Registrars(records) => {
                let ours = records.iter().filter(|r| r.run == self.run);
                let ours: Vec<&PeerRecord> = ours.collect();
                for record in ours {
                    if self.meet(record) {
                        self.news.push(record.clone());
                    }
                }
                if let Some(roll) = self.founded {
                    self.say(from, FoundingMessage::Founded(roll));
                }
            }
            FoundingMessage::Here(records) => self.registered(from, records),
            FoundingMessage::Prepare { ballot } => {
                if let Some(roll) = self.founded {
                    self.say(from, FoundingMessage::Founded(roll));
                } else if ballot.founder == Some(from.peer) && self.acceptor.prepare(*ballot) {
                    let (ballot, accepted) = (*ballot, self.acceptor.accepted);
                    self.say(from, FoundingMessage::Promise { ballot, accepted });
                }
            }
            FoundingMessage::Promise { ballot, accepted } => {
                self.promised(from.peer, *ballot, *accepted);
            }
            FoundingMessage::Accept { ballot, roll } => {
                if ballot.founder == Some(from.peer) && *ballot >= self.acceptor.promised {
                    self.asked = Some((from.clone(), *ballot, *roll));
                    self.accept_asked();
                    if self.asked.is_some() {
                        self.ask_pages(*roll, Some(from.clone()));
                    }
                }
            }
            FoundingMessage::Accepted { ballot } => self.accepted(from.peer, *ballot),
            FoundingMessage::Founded(roll) => {
                self.found(*roll);
                self.ask_pages(*roll, Some(from.clone()));
            }
            FoundingMessage::PageAsk { roll, page } => {
                let found = self.rolls.get(roll);
                if let Some(records) = found.and_then(|roll| roll.page(*page)) {
                    let (roll, page) = (*roll, *page);
                    self.say(
                        from,
                        FoundingMessage::Page {
                            roll,
                            page,
                            records,
                        },
                    );
                }
            }
            FoundingMessage::Page {
                roll,
                page,
                records,
            } => {
                self.page_came(from, (*roll, *page), records);
            }
        }
    }

    fn registered(&mut self, from: &PeerRecord, records: &[PeerRecord]) {
        if let Some(roll) = self.founded {
            self.say(from, FoundingMessage::Founded(roll));
            return;
        }
        let run = self.run;
        for record in records.iter().filter(|r| r.run == run) {
            let here = &mut self.register.here;
            let room = here.len() < ROLL_PEERS_MAX;
            if !here.contains_key(&record.peer) && room {
                here.insert(record.peer, record.clone());
                self.changed = self.ticks;
            }
            self.meet(record);
        }
        // It may take this peer for a registrar, or for the founder, for want of better knowledge.
        if !self.founds() {
            self.say_registrars(from);
        }
    }

    /// Accepts what this peer was asked to, once the roll is here: a registrar can then serve it.
    fn accept_asked(&mut self) {
        let Some((from, ballot, roll)) = self.asked.clone() else {
            return;
        };
        if !self.rolls.has(&roll.digest) {
            return;
        }
        self.asked = None;
        if ballot.founder == Some(self.me.peer) {
            self.accept_own(ballot, roll);
        } else if self.acceptor.accept(ballot, roll) {
            self.say(&from, FoundingMessage::Accepted { ballot });
        }
    }

    /// Asks for the next page of a roll that is not here.
    fn ask_pages(&mut self, name: RollName, from: Option<PeerRecord>) {
        let page = self.rolls.missing(name);
        let holder = from.or_else(|| self.asked.as_ref().map(|(from, ..)| from.clone()));
        if let (Some(page), Some(holder)) = (page, holder) {
            let roll = name.digest;
            self.say(&holder, FoundingMessage::PageAsk { roll, page });
        }
    }

    fn page_came(&mut self, from: &PeerRecord, page: (Digest, u16), records: &[PeerRecord]) {
        let Some(name) = self.rolls.came(page, records, self.row) else {
            return;
        };
        if self.rolls.has(&name.digest) {
            self.accept_asked();
        } else {
            self.ask_pages(name, Some(from.clone()));
        }
    }
}
