//! How a run gets its first roll.
//!
//! Peers that are here without a roll pass on the records of the 63 highest ranks that they know (a
//! hash over run and peer). All soon know the same 63: the registrars. Each peer registers with one of
//! them, chosen by its id; each registrar passes its list on to the highest of them, the founder. Once
//! enough peers are here and nothing has changed for a while, the founder proposes the roll of all of
//! them, and more than two thirds of the registrars of that roll accept it. If the founder dies, the
//! next one first hears what a quorum has accepted, and proposes that. The others fetch the roll page by
//! page, from any peer that has it.
//!
//! Two first rolls need two founders whose lists of registrars share a third of their lengths added
//! together, or less, as in a swarm that is split before it began. `start_with` above three quarters
//! of all peers that ever come rules that out, whatever the network does.

use crate::id::rendezvous;
use crate::limits::{
    FOUNDING_QUIET_TICKS, FOUNDING_RECORDS_MAX, FOUNDING_RETRY_TICKS, REGISTRARS_MAX,
    ROLL_PAGE_BYTES, ROLL_PEERS_MAX,
};
use crate::roll::shared::{Incoming, in_messages};
use crate::roll::{FoundingBallot, FoundingMessage, Roll, RollName, SharedRolls};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::PeerRecord;
use crate::{Digest, PeerId, Round, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something to say to a peer, which may have to be dialled first.
pub(crate) type Say = (PeerRecord, FoundingMessage);

/// What the plan and the limits say about the roll.
#[derive(Clone, Copy, Debug)]
struct Terms {
    row: u16,
    start_with: usize,
    page_bytes: usize,
}

impl Terms {
    /// How many of a list of registrars decide. A list that is too short for a new roll may still choose
    /// one that was accepted, if it has a quorum of as many as a new roll needs.
    fn quorum(&self, registrars: usize) -> usize {
        quorum(registrars.max(self.start_with.min(REGISTRARS_MAX)))
    }
}

/// What a founder asked this peer to accept.
#[derive(Clone, Debug)]
struct Asked {
    /// A peer that should have the roll.
    holder: PeerRecord,
    founder: PeerRecord,
    ballot: FoundingBallot,
    roll: RollName,
}

/// The founding of a run, as one peer takes part in it.
#[derive(Debug)]
pub(crate) struct Founding {
    me: PeerRecord,
    terms: Terms,
    register: Register,
    acceptor: Acceptor,
    proposal: Option<Proposal>,
    /// The tick of the last proposal.
    proposed: u32,
    /// The highest number of a proposal that a registrar named.
    highest: u32,
    rolls: SortedMap<Digest, Arc<Roll>>,
    shared: SharedRolls,
    incoming: Option<Incoming>,
    /// What to accept once its roll is here.
    asked: Option<Asked>,
    founded: Option<RollName>,
    ticks: u32,
    /// Registrars that its neighbours may not know yet.
    news: SortedSet<PeerId>,
    says: Vec<Say>,
}

impl Founding {
    pub(crate) fn new(me: PeerRecord, run: RunId, row: u16, start_with: usize) -> Self {
        debug_assert_eq!(me.run, run, "a record of this run");
        Self {
            register: Register::new(&me),
            me,
            terms: Terms {
                row,
                start_with,
                page_bytes: ROLL_PAGE_BYTES,
            },
            acceptor: Acceptor::default(),
            proposal: None,
            proposed: 0,
            highest: 0,
            rolls: SortedMap::new(),
            shared: SharedRolls::default(),
            incoming: None,
            asked: None,
            founded: None,
            ticks: 0,
            news: SortedSet::new(),
            says: Vec::new(),
        }
    }

    pub(crate) fn sharing(mut self, rolls: SharedRolls) -> Self {
        self.shared = rolls;
        self
    }

    /// Its messages since the last call, with their receivers.
    pub(crate) fn says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    pub(crate) fn roll(&self) -> Option<Arc<Roll>> {
        self.rolls.get(&self.founded?.digest).cloned()
    }

    fn say(&mut self, to: &PeerRecord, message: FoundingMessage) {
        if to.peer != self.me.peer {
            self.says.push((to.clone(), message));
        }
    }

    fn say_registrars(&mut self, to: &PeerRecord) {
        let records: Vec<PeerRecord> = self.register.registrars().cloned().collect();
        for some in in_messages(&records) {
            self.say(to, FoundingMessage::Registrars(some));
        }
    }

    /// A link with a peer without a roll came up: it learns the roll, or else who the registrars are.
    pub(crate) fn greet(&mut self, to: &PeerRecord) {
        if !self.say_founded(to) {
            self.say_registrars(to);
        }
    }

    /// Says which roll was chosen, if one was.
    fn say_founded(&mut self, to: &PeerRecord) -> bool {
        if let Some(name) = self.founded {
            self.say(to, FoundingMessage::Founded(name));
        }
        self.founded.is_some()
    }

    /// Time passes. `linked` are peers that may not know the registrars yet.
    pub(crate) fn tick(&mut self, linked: &[PeerRecord]) {
        self.ticks += 1;
        self.register.tick();
        // Once a roll is chosen, the rest is only to hand it on.
        if self.founded.is_none() {
            self.pass_on(linked);
            if let Some((to, here)) = self.register.registers() {
                for some in in_messages(&here) {
                    self.say(&to, FoundingMessage::Here(some));
                }
            }
            self.try_propose();
        }
        // Also before the choice: a registrar accepts a roll only if it can serve it.
        self.fetch(linked);
    }

    /// Tells its neighbours of new registrars.
    fn pass_on(&mut self, linked: &[PeerRecord]) {
        let news = std::mem::take(&mut self.news);
        let all = self.register.registrars();
        let news: Vec<PeerRecord> = all.filter(|r| news.contains(&r.peer)).cloned().collect();
        if !news.is_empty() {
            for to in linked {
                self.say(to, FoundingMessage::Registrars(news.clone()));
            }
        }
        // A registrar that has not registered may know no other peer.
        let turn = self.ticks as usize;
        if turn.is_multiple_of(4)
            && let Some(to) = self.register.missing(turn / 4).cloned()
        {
            self.say_registrars(&to);
        }
        // Now and then all, for what was lost on the way.
        if let Some(to) = linked.get(turn % (4 * linked.len()).max(1)) {
            self.say_registrars(to);
        }
    }

    /// As the highest that it knows, proposes a roll when it is time.
    fn try_propose(&mut self) {
        // Two founders at once refuse each other, and a list in motion leaves peers out.
        if !self.register.is_first() || !self.register.is_quiet() {
            return;
        }
        let retry = FOUNDING_QUIET_TICKS + FOUNDING_RETRY_TICKS;
        let due = self.ticks - self.proposed >= retry;
        let proposed_own = self.proposal.as_ref().is_some_and(|p| p.own.is_some());
        match self.register.here_count() >= self.terms.start_with {
            true if due || !proposed_own => self.propose(true),
            // Too few are here for a new roll. There may have been more, which chose one.
            false if due && self.register.quiet_ticks() >= retry => self.propose(false),
            _ => {}
        }
    }

    /// Proposes the roll of all who are here, or only what others have accepted before.
    fn propose(&mut self, own: bool) {
        let (ranked, registrars) = self.register.ranked();
        let quorum = self.terms.quorum(registrars.len());
        // A shorter list could choose beside a longer one that shares no registrar with it.
        if registrars.len() < quorum || !registrars.contains(&self.me.peer) {
            return;
        }
        self.proposed = self.ticks;
        let found = |row| Roll::arranged(ranked, row, Round(0));
        let roll = own.then(|| self.shared.share(found(self.terms.row)));
        let name = roll.as_ref().map(|roll| roll.name());
        // Above all that it has heard of, or registrars that promised another would refuse it.
        let number = self.acceptor.promised.number.max(self.highest);
        let ballot = FoundingBallot {
            number: number.saturating_add(1),
            founder: Some(self.me.peer),
        };
        self.proposal = Some(Proposal::new(ballot, name, registrars, quorum));
        let accepted = self.acceptor.accepted;
        let named = [name, accepted.map(|(_, roll)| roll)];
        let needed = |of: &Digest| named.iter().flatten().any(|name| name.digest == *of);
        // A roll may have thousands of records, so only those that may be chosen stay.
        self.rolls.retain(|digest, _| needed(digest));
        self.rolls.extend(roll.map(|roll| (roll.digest(), roll)));
        self.ask_registrars(&FoundingMessage::Prepare { ballot });
        if self.acceptor.prepare(ballot) {
            self.promised(self.me.peer, ballot, accepted);
        }
    }

    fn ask_registrars(&mut self, message: &FoundingMessage) {
        let Some(proposal) = &self.proposal else {
            return;
        };
        let places = proposal.registrars.iter();
        let to = places.filter_map(|peer| self.register.record(*peer).cloned());
        for record in to.collect::<Vec<_>>() {
            self.say(&record, message.clone());
        }
    }

    fn promised(&mut self, from: PeerId, ballot: FoundingBallot, accepted: Option<Accepted>) {
        // A registrar that refuses names the ballot that it has promised.
        if ballot.founder != Some(self.me.peer) {
            self.highest = self.highest.max(ballot.number);
        }
        let proposal = self.proposal.as_mut().filter(|p| p.ballot == ballot);
        let Some((roll, holder)) = proposal.and_then(|proposal| {
            let roll = proposal.promised(from, accepted)?;
            Some((roll, proposal.holder(roll)))
        }) else {
            return;
        };
        self.ask_registrars(&FoundingMessage::Accept { ballot, roll });
        let holder = holder.and_then(|holder| self.register.record(holder));
        self.asked = Some(Asked {
            holder: holder.unwrap_or(&self.me).clone(),
            founder: self.me.clone(),
            ballot,
            roll,
        });
        self.accept_asked();
    }

    fn accepted(&mut self, from: PeerId, ballot: FoundingBallot) {
        let proposal = self.proposal.as_mut().filter(|p| p.ballot == ballot);
        let chosen = proposal.and_then(|p| Some((p.accepted(from)?, p.registrars.clone())));
        let Some((roll, registrars)) = chosen.filter(|_| self.founded.is_none()) else {
            return;
        };
        self.founded = Some(roll);
        let here = self.register.here();
        let to = here.filter(|record| registrars.contains(&record.peer));
        for record in to.cloned().collect::<Vec<_>>() {
            self.say_founded(&record);
        }
    }

    pub(crate) fn said(&mut self, from: &PeerRecord, message: &FoundingMessage) {
        self.register.heard(from.peer);
        match message {
            FoundingMessage::Registrars(records) => {
                for record in records {
                    if self.register.meet(record) {
                        self.news.insert(record.peer);
                    }
                }
                self.say_founded(from);
            }
            FoundingMessage::Here(records) => self.registered(from, records),
            FoundingMessage::Prepare { ballot } => self.prepare(from, *ballot),
            FoundingMessage::Promise { ballot, accepted } => {
                self.promised(from.peer, *ballot, *accepted);
            }
            FoundingMessage::Accept { ballot, roll } => self.accept(from, *ballot, *roll),
            FoundingMessage::Accepted { ballot } => self.accepted(from.peer, *ballot),
            FoundingMessage::Founded(roll) => self.found(from, *roll),
            FoundingMessage::PageAsk { roll, first } => {
                let most = self.terms.page_bytes;
                let found = self.rolls.get(roll).map(|roll| roll.page(*first, most));
                if let Some(records) = found.filter(|records| !records.is_empty()) {
                    let (roll, first) = (*roll, *first);
                    let page = FoundingMessage::Page {
                        roll,
                        first,
                        records,
                    };
                    self.say(from, page);
                }
            }
            FoundingMessage::Page {
                roll,
                first,
                records,
            } => self.page_came(from, *roll, *first, records),
        }
    }

    fn registered(&mut self, from: &PeerRecord, records: &[PeerRecord]) {
        if self.say_founded(from) {
            return;
        }
        self.register.enter(records);
        if self.register.is_first() {
            // It hears that its registrar lives.
            self.say(from, FoundingMessage::Registrars(Vec::new()))
        } else {
            // It may take this peer for a registrar, or for the founder, for want of better knowledge.
            self.say_registrars(from)
        }
    }

    fn prepare(&mut self, from: &PeerRecord, ballot: FoundingBallot) {
        if ballot.founder != Some(from.peer) || self.say_founded(from) {
            return;
        }
        // A founder that is refused learns which number is too low.
        self.acceptor.prepare(ballot);
        self.promise(from);
    }

    fn promise(&mut self, to: &PeerRecord) {
        let (ballot, accepted) = (self.acceptor.promised, self.acceptor.accepted);
        self.say(to, FoundingMessage::Promise { ballot, accepted });
    }

    fn accept(&mut self, from: &PeerRecord, ballot: FoundingBallot, roll: RollName) {
        if ballot.founder != Some(from.peer) || self.say_founded(from) {
            return;
        }
        if !self.acceptor.prepare(ballot) {
            self.promise(from);
            return;
        }
        self.asked = Some(Asked {
            holder: from.clone(),
            founder: from.clone(),
            ballot,
            roll,
        });
        self.accept_asked();
    }

    /// Accepts what this peer was asked to, once the roll is here: a registrar can then serve it.
    fn accept_asked(&mut self) {
        let Some(asked) = self.asked.clone() else {
            return;
        };
        if !self.rolls.contains_key(&asked.roll.digest) {
            self.ask(asked.roll, &asked.holder);
            return;
        }
        self.asked = None;
        let ballot = asked.ballot;
        if self.acceptor.accept(ballot, asked.roll) {
            if ballot.founder == Some(self.me.peer) {
                self.accepted(self.me.peer, ballot)
            } else {
                self.say(&asked.founder, FoundingMessage::Accepted { ballot })
            }
        }
    }
}

/// What changes while a run is being founded.
impl Founding {
    /// This peer's record says something else now.
    pub(crate) fn renew(&mut self, me: &PeerRecord) {
        self.me = me.clone();
        self.register.enter(std::slice::from_ref(me));
    }

    /// A registrar cannot be reached: others take its part.
    pub(crate) fn lost(&mut self, peer: PeerId) {
        self.register.lose(peer);
    }
}

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod model;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

pub(super) type Accepted = (FoundingBallot, RollName);

/// How many of a number of registrars decide: more than two thirds.
pub(super) const fn quorum(registrars: usize) -> usize {
    2 * registrars / 3 + 1
}

/// A registrar's part in choosing the first roll, and a founder's: single-decree Paxos with quorums of
/// more than two thirds.
///
/// Two founders may have different lists of registrars. A majority of each would not do: {1, 2} of
/// {1, 2, 3} and {3, 4} of {2, 3, 4} have no registrar in common. Two quorums of more than two
/// thirds share one while the lists share more than a third of their lengths added together: lists of
/// equal length may differ in just under a third of their registrars.
///
/// **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.
///
/// What a registrar has promised and accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Acceptor {
    pub(super) promised: FoundingBallot,
    pub(super) accepted: Option<Accepted>,
}

impl Acceptor {
    /// Promises, unless a higher proposal has its promise.
    pub(super) fn prepare(&mut self, ballot: FoundingBallot) -> bool {
        let may = ballot >= self.promised;
        if may {
            self.promised = ballot;
        }
        may
    }

    /// Accepts, unless a higher proposal has its promise, or it accepted another roll in this one: a
    /// founder that came back may have forgotten its proposal.
    pub(super) fn accept(&mut self, ballot: FoundingBallot, roll: RollName) -> bool {
        let other = |(of, named): Accepted| of == ballot && named != roll;
        let may = !self.accepted.is_some_and(other) && self.prepare(ballot);
        if may {
            self.accepted = Some((ballot, roll));
        }
        may
    }
}

/// A proposal that this peer makes.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) ballot: FoundingBallot,
    /// The roll that it proposes unless another was accepted; none where it only asks for those.
    pub(super) own: Option<RollName>,
    /// The registrars of its own roll, of which a quorum decides.
    pub(super) registrars: SortedSet<PeerId>,
    pub(super) quorum: usize,
    pub(super) promises: SortedMap<PeerId, Option<Accepted>>,
    /// The roll that it asks the registrars to accept.
    pub(super) value: Option<RollName>,
    pub(super) accepted: SortedSet<PeerId>,
}

impl Proposal {
    pub(super) const fn new(
        ballot: FoundingBallot,
        own: Option<RollName>,
        registrars: SortedSet<PeerId>,
        quorum: usize,
    ) -> Self {
        Self {
            ballot,
            own,
            registrars,
            quorum,
            promises: SortedMap::new(),
            value: None,
            accepted: SortedSet::new(),
        }
    }

    /// Once a quorum has promised: the value, which may be chosen already.
    pub(super) fn promised(
        &mut self,
        from: PeerId,
        accepted: Option<Accepted>,
    ) -> Option<RollName> {
        let above = accepted.is_some_and(|(of, _)| of > self.ballot);
        // Only its own registrars count, and the value of a proposal is fixed once.
        if !self.registrars.contains(&from) || self.value.is_some() || above {
            return None;
        }
        self.promises.insert(from, accepted);
        if self.promises.len() < self.quorum {
            return None;
        }
        // The highest that was accepted may be chosen already; lower ones are not.
        let highest = self.promises.values().flatten().max();
        self.value = highest.map(|(_, roll)| *roll).or(self.own);
        self.value
    }

    /// A registrar that said that it accepted a roll: it can serve it.
    pub(super) fn holder(&self, roll: RollName) -> Option<PeerId> {
        let holds = |accepted: &Option<Accepted>| accepted.is_some_and(|(_, of)| of == roll);
        let mut all = self.promises.iter();
        all.find(|(_, accepted)| holds(accepted))
            .map(|(peer, _)| *peer)
    }

    /// A registrar has accepted: gives the chosen roll, once a quorum has.
    pub(super) fn accepted(&mut self, from: PeerId) -> Option<RollName> {
        if self.registrars.contains(&from) {
            self.accepted.insert(from);
        }
        self.value.filter(|_| self.accepted.len() >= self.quorum)
    }
}

/// How a peer gets the pages of a roll that it is to accept, or that was chosen.
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

/// The slot of the rendezvous hash that ranks registrars.
const SLOT: u8 = 3;

/// Ticks after which a peer that no longer registers, or answers, is left out.
const SILENT_TICKS: u32 = 2 * FOUNDING_RETRY_TICKS;

/// Ticks for which a registrar that could not be reached is left out.
const LOST_TICKS: u32 = 8 * FOUNDING_RETRY_TICKS;

/// Ticks with news after which a list is taken as it is: there may always be another newcomer.
const NEWS_TICKS_MAX: u32 = 16 * FOUNDING_QUIET_TICKS;

/// Whom a peer takes for registrars, and which peers have registered with it.
#[derive(Debug)]
pub(super) struct Register {
    me: PeerId,
    run: RunId,
    now: u32,
    /// By rank, at most [`REGISTRARS_MAX`].
    registrars: SortedMap<(u64, PeerId), PeerRecord>,
    /// Registrars that could not be reached lately, with the tick until which they are left out.
    lost: SortedMap<PeerId, u32>,
    /// Peers that registered, with the tick at which they last did.
    here: BTreeMap<PeerId, (PeerRecord, u32)>,
    /// The registrar that this peer registers with, and when it was last heard or first asked.
    asked: Option<(PeerId, u32)>,
    /// The ticks of the first and of the last change without a quiet time between them.
    changed: (u32, u32),
}

/// Returns `true` if a record is not older than the known one.
fn newer(known: Option<&PeerRecord>, record: &PeerRecord) -> bool {
    known.is_none_or(|known| known.sequence <= record.sequence)
}

impl Register {
    pub(super) fn new(me: &PeerRecord) -> Self {
        let mut this = Self {
            me: me.peer,
            run: me.run,
            now: 0,
            registrars: SortedMap::new(),
            lost: SortedMap::new(),
            here: BTreeMap::from([(me.peer, (me.clone(), 0))]),
            asked: None,
            changed: (0, 0),
        };
        this.meet(me);
        this
    }

    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    fn rank(&self, peer: PeerId) -> (u64, PeerId) {
        (rendezvous(&self.run, Round(0), SLOT, peer), peer)
    }

    fn change(&mut self) {
        if self.now - self.changed.1 >= FOUNDING_QUIET_TICKS {
            self.changed.0 = self.now;
        }
        self.changed.1 = self.now;
    }

    /// Takes a record into account; true if its peer is a registrar that was not known.
    pub(super) fn meet(&mut self, record: &PeerRecord) -> bool {
        // Most lists name those that are known, and a rank takes a hash.
        let known = self.registrars.values().any(|known| known.is(record));
        // Others may still name one that could not be reached.
        if known || record.run != self.run || self.lost.contains_key(&record.peer) {
            return false;
        }
        let rank = self.rank(record.peer);
        let known = self.registrars.get(&rank);
        let news = known.is_none();
        if newer(known, record) {
            self.registrars.insert(rank, record.clone());
        }
        if self.registrars.len() > REGISTRARS_MAX {
            self.registrars.pop_first();
        }
        let news = news && self.registrars.contains_key(&rank);
        if news {
            self.change();
        }
        news
    }

    /// Another peer says something, so it can be reached.
    pub(super) fn heard(&mut self, from: PeerId) {
        self.lost.remove(&from);
        if let Some((_, last)) = self.asked.as_mut().filter(|(peer, _)| *peer == from) {
            *last = self.now;
        }
    }

    /// Peers register with this one.
    pub(super) fn enter(&mut self, records: &[PeerRecord]) {
        let run = self.run;
        for record in records.iter().filter(|r| r.run == run) {
            let known = self.here.get(&record.peer);
            let is_new = known.is_none();
            if is_new && self.here.len() >= ROLL_PEERS_MAX {
                continue;
            }
            let keep = known.filter(|(known, _)| !newer(Some(known), record));
            let record = keep.map_or(record, |(known, _)| known).clone();
            // A founding waits for sites that are still being found.
            let moved = known.is_some_and(|(known, _)| known.locality != record.locality);
            self.meet(&record);
            self.here.insert(record.peer, (record, self.now));
            if is_new || moved {
                self.change();
            }
        }
    }

    /// A peer cannot be reached: others take its part.
    pub(super) fn lose(&mut self, peer: PeerId) {
        if peer == self.me {
            return;
        }
        let rank = self.rank(peer);
        let was_here = self.here.remove(&peer).is_some();
        let was_registrar = self.registrars.remove(&rank).is_some();
        if was_registrar {
            // Left out for a while, or the next message that names it would bring it back.
            self.lost.insert(peer, self.now + LOST_TICKS);
        }
        if was_here || was_registrar {
            self.change();
        }
    }

    /// Time passes: forgets peers that do not register again, and a registrar that is silent.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        let (me, now) = (self.me, self.now);
        self.lost.retain(|_, until| *until > now);
        let before = self.here.len();
        self.here
            .retain(|peer, (_, last)| *peer == me || now - *last < SILENT_TICKS);
        if self.here.len() < before {
            self.change();
        }
        if let Some((silent, last)) = self.asked
            && now - last >= SILENT_TICKS
        {
            self.asked = None;
            self.lose(silent);
        }
    }

    pub(super) fn registrars(&self) -> impl Iterator<Item = &PeerRecord> {
        self.registrars.values().rev()
    }

    fn is_registrar(&self, peer: PeerId) -> bool {
        self.registrars.contains_key(&self.rank(peer))
    }

    /// Returns `true` if this peer is the highest registrar that it knows.
    pub(super) fn is_first(&self) -> bool {
        let mut all = self.registrars();
        all.next().is_some_and(|first| first.peer == self.me)
    }

    /// For the highest: one in turn of the registrars that have not registered.
    pub(super) fn missing(&self, turn: usize) -> Option<&PeerRecord> {
        let is_missing = |r: &&PeerRecord| !self.here.contains_key(&r.peer);
        let missing: Vec<&PeerRecord> = self.registrars().filter(is_missing).collect();
        let one = missing.get(turn % missing.len().max(1)).copied();
        one.filter(|_| self.is_first())
    }

    /// With whom to register, and whom: a registrar passes on its list to the highest of them, others
    /// register with one that their id picks. None for the highest itself.
    pub(super) fn registers(&mut self) -> Option<(PeerRecord, Vec<PeerRecord>)> {
        let count = self.registrars.len().max(1);
        let first = self.me.as_bytes()[..8].iter();
        let pick = first.fold(0usize, |sum, byte| (sum << 8 | usize::from(*byte)) % count);
        let (pick, here) = if self.is_registrar(self.me) {
            (0, self.here().cloned().collect())
        } else {
            (
                pick,
                self.here
                    .get(&self.me)
                    .map(|(r, _)| r.clone())
                    .into_iter()
                    .collect(),
            )
        };
        let to = self.registrars().nth(pick).cloned();
        let to = to.filter(|to| to.peer != self.me)?;
        if self.asked.is_none_or(|(peer, _)| peer != to.peer) {
            self.asked = Some((to.peer, self.now));
        }
        Some((to, here))
    }

    /// The peers that registered here, this one included.
    pub(super) fn here(&self) -> impl Iterator<Item = &PeerRecord> {
        self.here.values().map(|(record, _)| record)
    }

    pub(super) fn here_count(&self) -> usize {
        self.here.len()
    }

    /// Where a peer that registered can be reached.
    pub(super) fn record(&self, peer: PeerId) -> Option<&PeerRecord> {
        self.here.get(&peer).map(|(record, _)| record)
    }

    /// The peers that registered here, by rank from the highest, and the registrars among them.
    pub(super) fn ranked(&self) -> (Vec<PeerRecord>, SortedSet<PeerId>) {
        let by_rank = self.here().map(|r| (self.rank(r.peer), r.clone()));
        let by_rank: SortedMap<(u64, PeerId), PeerRecord> = by_rank.collect();
        let ranked: Vec<PeerRecord> = by_rank.into_values().rev().collect();
        let registrars = ranked.iter().take(REGISTRARS_MAX).map(|r| r.peer);
        let registrars = registrars.collect();
        (ranked, registrars)
    }

    /// True once nothing has changed for a while, or something always does.
    pub(super) const fn is_quiet(&self) -> bool {
        let (first, last) = self.changed;
        self.now - last >= FOUNDING_QUIET_TICKS || self.now - first >= NEWS_TICKS_MAX
    }

    /// How many ticks ago something changed.
    pub(super) const fn quiet_ticks(&self) -> u32 {
        self.now - self.changed.1
    }
}

#[cfg(test)]
mod news_tests {
    use crate::limits::FOUNDING_QUIET_TICKS;
    use crate::roll::founding::tests::Swarm;
    use crate::roll::tests::record;
    use crate::wire::PeerRecord;
    use crate::{FoundingMessage, PeerId, Site};

    /// A newer record of a peer, at a site.
    fn moved(id: u16, site: &str, sequence: u64) -> PeerRecord {
        let mut record = record(id);
        record.sequence = sequence;
        record.locality.site = Some(Site::new(site).unwrap());
        record
    }

    /// The peers of the roll that all hold, and their sites.
    fn placed(swarm: &Swarm) -> Vec<(PeerId, Option<Site>)> {
        let rolls = swarm
            .peers
            .values()
            .map(|peer| peer.roll().expect("a roll"));
        let mut rolls: Vec<_> = rolls.collect();
        rolls.dedup_by_key(|roll| roll.digest());
        assert_eq!(rolls.len(), 1, "all hold one roll");
        let places = (0..rolls[0].len()).filter_map(|place| rolls[0].place(place));
        let places = places.map(|p| (p.record.peer, p.record.locality.site.clone()));
        places.collect()
    }

    #[test]
    fn a_founding_waits_for_sites_and_places_by_them() {
        let mut swarm = Swarm::new(0..8, 8);
        // Each finds its site while the founding is under way, the last one late.
        swarm.ticks(FOUNDING_QUIET_TICKS - 2, |_| true);
        for id in 0..8u16 {
            let site = ["x", "y"][usize::from(id % 2)];
            let peer = swarm.peers.get_mut(&record(id).peer).expect("it is there");
            peer.renew(&moved(id, site, 2));
            swarm.ticks(1, |_| true);
        }
        let undecided = swarm.peers.values().all(|peer| peer.roll().is_none());
        assert!(undecided, "sites still change");
        swarm.ticks(4 * FOUNDING_QUIET_TICKS, |_| true);
        let placed = placed(&swarm);
        // One column at this size, whose places are in the order of sites all the same.
        let sites: Vec<&str> = placed
            .iter()
            .filter_map(|(_, site)| Some(site.as_ref()?.as_str()))
            .collect();
        assert_eq!(sites.len(), 8);
        let changes = sites.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 1, "{sites:?}");
    }

    #[test]
    fn a_peer_that_claims_two_sites_has_the_one_of_its_newest_record() {
        let mut swarm = Swarm::new(0..4, 4);
        let founder = swarm.founder();
        let liar = (0..4).find(|id| record(*id).peer != founder).unwrap();
        for said in [
            moved(liar, "x", 4),
            moved(liar, "y", 7),
            moved(liar, "z", 6),
        ] {
            let founder = swarm.peers.get_mut(&founder).expect("it is there");
            founder.said(&said, &FoundingMessage::Here(vec![said.clone()]));
        }
        swarm.ticks(6 * FOUNDING_QUIET_TICKS, |_| true);
        let placed = placed(&swarm);
        let claims = placed.iter().filter(|(peer, _)| *peer == record(liar).peer);
        let claims: Vec<&str> = claims
            .filter_map(|(_, s)| Some(s.as_ref()?.as_str()))
            .collect();
        assert_eq!(claims, ["y"]);
    }
}
