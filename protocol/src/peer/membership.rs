//! Membership: links, hellos, records by anti-entropy, signs of life, and what a broken rule costs. For a peer
//! of a grid or of cells also its place in the roll, and the links that follow from it.

use crate::core::deadlines::Timer;
use crate::core::view::DIALS_REFUSED;
use crate::core::{Event, Output, Phase};
use crate::exchange::Signal;
use crate::limits::{
    ABSENT_ROUNDS_MAX, ACTIVE_LINKS_MAX, ALIVE_EVERY, CLOCK_SKEW_MAX, DIAL_ATTEMPTS_MAX,
    FOUNDING_EVERY, RECORD_LIFETIME, RECORDS_BYTES_MAX, RECORDS_PER_MESSAGE_MAX, SCORE_MAX,
    SPONSORS_MAX, STRANGER_LINKS, STRANGER_LINKS_MAX,
};
use crate::peer::Peer;
use crate::peer::life::{Missing, Patience};
use crate::roll::Founding;
use crate::wire::{
    Alive, ExchangeMessage, Hello, MembershipMessage, Message, Muster, PeerRecord, Rates, Reason,
    RecordFields, WireError, canonical,
};
use crate::{Checked, Digest, FoundingMessage, LinkRates, PeerError, PeerId, Proof, Round, Time};
use core::time::Duration;
use rand_core::Rng;

impl Peer {
    pub(super) fn link_up(&mut self, peer: PeerId) {
        let Some(remote) = self.cx.view.entry(peer) else {
            let reason = Reason::Full;
            self.cx.put(Output::Disconnect { peer, reason });
            return;
        };
        if remote.banned {
            let reason = Reason::Misbehaved;
            self.cx.put(Output::Disconnect { peer, reason });
            return;
        }
        remote.linked = true;
        // A new link may be to a new life: what the old one said does not hold.
        remote.greeted = false;
        remote.contact.observes = false;
        remote.suspected = false;
        remote.contact.refused = false;
        remote.contact.spared = false;
        remote.forgive_dials();
        self.send_hello(peer);
    }

    fn send_hello(&mut self, to: PeerId) {
        let now = self.cx.now;
        if let Some(remote) = self.cx.view.get_mut(to) {
            remote.contact.hello_at = Some(now);
        }
        let ready = self.ready();
        let hello = Hello {
            run: self.cx.plan.run,
            layout: self.cx.plan.layout,
            plan: self.cx.directed.plan_hash,
            round: self.cx.round,
            anchor: self.cx.anchor(),
            ready,
            muster: self.muster(),
            branch: self.cx.view.split.branch_for(to).map(Box::new),
        };
        self.cx.send(to, MembershipMessage::Hello(hello));
    }

    pub(super) fn link_down(&mut self, peer: PeerId) {
        let redial = self.cx.now + Duration::from_secs(1);
        if let Some(remote) = self.cx.view.get_mut(peer) {
            remote.linked = false;
            remote.forgive_dials();
            remote.contact.dial_at = Some(redial);
        }
        self.peer_gone(peer);
    }

    /// A peer no longer takes part: tells the parts that wait for it.
    fn peer_gone(&mut self, peer: PeerId) {
        let (now, round) = (self.cx.now, self.cx.round);
        // One that knows no result does not know who counts: all that it has met do.
        let new_here = self.cx.view.seats.of(round).is_empty();
        let greeted = self.cx.view.get_mut(peer).and_then(|remote| {
            let recent = |last: Round| round.since(last) <= ABSENT_ROUNDS_MAX;
            let counts = remote.grouped.is_some_and(recent) || (new_here && remote.greeted);
            if counts && !remote.contact.left {
                remote.contact.lost = Some(now);
            }
            remote.ready = false;
            remote.muster = Muster::Waiting;
            remote.grouped = None;
            // Its branch may be another one when it comes back.
            remote.contact.branch = None;
            remote.contact.apart = false;
            std::mem::take(&mut remote.greeted).then_some(remote.contact.left)
        });
        if let Some(left) = greeted {
            self.cx.emit(Event::gone(peer, left));
        }
        self.cx.forget_link(peer);
        self.donor.forget(peer);
        self.founder_gone(peer);
        self.signal(Signal::Gone(peer));
        self.catch_up_gone(peer);
    }

    pub(super) fn hello(&mut self, from: PeerId, hello: &Hello) {
        let plan = &self.cx.plan;
        let reason = if hello.run != plan.run {
            Some(Reason::OtherRun)
        } else if hello.layout != plan.layout {
            Some(Reason::OtherModel)
        } else if hello.plan != self.cx.directed.plan_hash {
            Some(Reason::OtherPlan)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.cut_off(from, reason);
            return;
        }
        let under_way = !matches!(self.phase, Phase::New | Phase::Join);
        let now = self.cx.now;
        let Some(remote) = self.cx.view.get_mut(from).filter(|r| r.linked && !r.banned) else {
            return;
        };
        remote.contact.dials = 0;
        let known = std::mem::replace(&mut remote.greeted, true);
        remote.round = hello.round;
        remote.anchor = Some(hello.anchor);
        remote.ready = hello.ready && !remote.contact.observes;
        remote.muster = hello.muster;
        remote.contact.branch = hello.branch.clone();
        remote.contact.left = false;
        remote.contact.lost = None;
        remote.suspected = false;
        // It begins its first round after the others; they do not wait for it in this one.
        remote.probation = under_way && !known;
        // A repeated hello means that ours was lost. A hello that was sent just now may have
        // crossed this one.
        let stale = |at: Time| now.since(at) >= ALIVE_EVERY / 2;
        let answer = known && remote.contact.hello_at.is_some_and(stale);
        self.cx.sort_sides();
        if !known {
            self.cx.emit(Event::PeerUp(from));
            // Counterparts have the records of all in the roll.
            if !self.cx.rolls.is_counterpart(from) {
                self.send_records(from);
            }
            self.greet_founder(from);
        }
        if answer {
            self.send_hello(from);
        }
        self.try_begin_with(from);
    }

    pub(super) fn goodbye(&mut self, from: PeerId, reason: Reason) {
        if reason == Reason::Spare {
            self.spared(from);
            return;
        }
        if reason != Reason::Leaving {
            if let Some(remote) = self.cx.view.get_mut(from) {
                remote.contact.dials = DIALS_REFUSED;
            }
            self.cx.emit(Event::RefusedBy { peer: from, reason });
        } else {
            if let Some(remote) = self.cx.view.get_mut(from) {
                remote.contact.left = true;
            }
            // It went on purpose, so its absence is no split.
            self.cx.view.split.left(from);
        }
        self.peer_gone(from);
        if self.phase == Phase::Finished {
            self.maybe_leave();
        }
    }

    /// Notes that a peer has sent a message; false if it must say hello first.
    pub(super) fn heard(&mut self, from: PeerId, message: &Message) -> bool {
        let round = match message {
            Message::Exchange(ExchangeMessage::Agreed(message)) => message.takes_part_in(),
            _ => None,
        };
        let Some(remote) = self.cx.view.get_mut(from).filter(|r| r.greeted) else {
            return false;
        };
        if let Some(round) = round {
            remote.round = remote.round.max(round);
            // A word about an older round may be late, and shows nothing of what the peer does now.
            if round >= self.cx.round {
                remote.suspected = false;
                remote.ready = true;
            }
        }
        true
    }

    pub(super) fn alive(&mut self, from: PeerId, alive: &Alive) {
        let (mine, round, anchor) = (self.cx.round, alive.round, alive.anchor);
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let ready = alive.ready && !remote.contact.observes;
        if ready && !remote.ready {
            match self.phase {
                // Before the first round all begin together, so it is no newcomer.
                Phase::New | Phase::Join => remote.settle(),
                _ if std::mem::take(&mut remote.contact.together) => remote.settle(),
                _ => remote.on_trial(round),
            }
        }
        remote.round = round;
        remote.ready = ready;
        remote.muster = alive.muster;
        remote.anchor = Some(anchor);
        remote.contact.branch = alive.branch.clone();
        // One that is further behind takes part in no round of this peer.
        if round.next() >= mine {
            remote.suspected = false;
        }
        self.cx.sort_sides();
        self.signal(Signal::Heard(from));
        self.try_begin_with(from);
        // In a grid hundreds of counterparts end with the same bits and say so.
        let same = self.has_rolls() && round == mine && anchor == self.cx.anchor();
        if self.phase == Phase::Finished && (same || !self.settle_the_end()) {
            self.maybe_leave();
        }
    }

    pub(super) fn audience(&self) -> Vec<PeerId> {
        self.cx.view.audience().map(|(id, _)| id).collect()
    }

    /// Tells every linked peer how far this one is.
    pub(super) fn tell_alive(&mut self) {
        let (round, ready, anchor) = (self.cx.round, self.ready(), self.cx.anchor());
        let muster = self.muster();
        for peer in self.audience() {
            let alive = Alive {
                round,
                ready,
                anchor,
                muster,
                branch: self.cx.view.split.branch_for(peer).map(Box::new),
            };
            self.cx.send(peer, MembershipMessage::Alive(alive));
        }
    }

    pub(super) fn alive_tick(&mut self) {
        let now = self.cx.now;
        self.cx.timers.set(Timer::Alive, now + ALIVE_EVERY);
        self.cx.view.expire(now);
        self.tell_alive();
        let linked = self.cx.view.iter().filter(|(_, r)| r.linked);
        let silent = linked.filter(|(_, r)| !r.greeted && !r.banned && !r.contact.spared);
        let silent: Vec<PeerId> = silent.map(|(id, _)| id).collect();
        // Without a hello from the other end, this peer's own may have been lost.
        silent.into_iter().for_each(|peer| self.send_hello(peer));
        self.spread_records();
        self.dial_counterparts();
        self.dial_due(ACTIVE_LINKS_MAX);
        self.close_spare_links();
        if (self.only_follows() || self.trains_outside()) && self.is_outside() {
            self.ask_for_a_place();
        }
        self.donor.tick(&mut self.cx, self.exchange.as_mut());
        self.keep_donors();
    }

    /// Anti-entropy: sends what this peer knows to one linked peer at random.
    fn spread_records(&mut self) {
        let linked = self.audience();
        if !linked.is_empty() {
            let pick = self.cx.rng.next_u64() % linked.len() as u64;
            if let Some(peer) = linked.get(pick as usize) {
                self.send_records(*peer);
            }
        }
    }

    /// A window of the known records, at random when they are more than one message holds.
    fn send_records(&mut self, to: PeerId) {
        let start = self.cx.rng.next_u64() as usize;
        let all: Vec<&PeerRecord> = self.cx.view.records(self.cx.now).collect();
        if all.is_empty() {
            return;
        }
        let first = if all.len() <= RECORDS_PER_MESSAGE_MAX {
            0
        } else {
            start % all.len()
        };
        let count = all.len().min(RECORDS_PER_MESSAGE_MAX);
        let window = all.iter().cycle().skip(first).take(count);
        let mut room = RECORDS_BYTES_MAX;
        let fits = |r: &&&PeerRecord| {
            let bytes = r.wire_bytes();
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        };
        let window = window.filter(|r| r.peer != to).filter(fits);
        let records = window.map(|r| (*r).clone()).collect();
        self.cx.send(to, MembershipMessage::Records(records));
    }

    pub(super) fn records(&mut self, from: PeerId, records: &[PeerRecord]) -> Checked {
        let now = self.cx.now;
        let me = self.cx.me();
        let latest = now + RECORD_LIFETIME + CLOCK_SKEW_MAX;
        let (mut news, mut newcomers) = (false, Vec::new());
        for record in records.iter().filter(|r| r.peer != me) {
            // No honest peer holds one: each of them checks this before it learns a record.
            if record.run != self.cx.plan.run {
                let what = format!("a record of {} for another run", record.peer);
                return Err(PeerError::unexpected(what));
            }
            // Before the record is refused by its expiry: that may be what shows a wrong clock.
            self.note_clock(from, record);
            if record.expires > latest {
                // A wrong clock, here or there, breaks no rule.
                continue;
            }
            let known = self.cx.view.get(record.peer);
            let first = known.is_none_or(|remote| remote.record().is_none());
            if record.expires > now && self.cx.view.learn(record, now) {
                news = true;
                if first {
                    newcomers.push(record.clone());
                }
            }
        }
        if news {
            self.pass_on(from, &newcomers);
            self.dial_due(0);
        }
        Ok(())
    }

    /// Tells the others of newcomers while the swarm is small, so that a run of few begins without
    /// waiting for anti-entropy. In a large one that would be a flood.
    fn pass_on(&mut self, from: PeerId, newcomers: &[PeerRecord]) {
        if self.cx.view.len() > ACTIVE_LINKS_MAX {
            return;
        }
        for to in self.audience().into_iter().filter(|id| *id != from) {
            let news = newcomers.iter().filter(|record| record.peer != to);
            let news: Vec<PeerRecord> = news.cloned().collect();
            if !news.is_empty() {
                self.cx.send(to, MembershipMessage::Records(news));
            }
        }
    }

    pub(super) fn own_record(&mut self, record: PeerRecord) {
        self.begin_founding(&record);
        self.cx.view.set_mine(record);
        let some = self.audience().into_iter().take(ACTIVE_LINKS_MAX);
        some.for_each(|peer| self.send_records(peer));
    }

    /// Dials known peers without a link until there are enough: all of them while the view is
    /// complete, but a few at a time, because a young view of a large swarm looks complete too.
    fn dial_due(&mut self, beyond_active: usize) {
        if self.sits() {
            self.dial_strangers();
            return;
        }
        let linked = self.cx.view.iter().filter(|(_, r)| r.linked).count();
        // In a grid only counterparts are linked, and few others until there is a roll.
        let complete = self.cx.view.is_complete() && !self.has_rolls();
        let beyond = if complete { beyond_active } else { 0 };
        let now = self.cx.now;
        // Dials under way count as links, or a burst of records would make far more than enough.
        let under_way = if self.has_rolls() {
            self.cx.view.dialling(now)
        } else {
            0
        };
        let room = ACTIVE_LINKS_MAX.saturating_sub(linked + under_way);
        let room = room.max(beyond);
        if room == 0 {
            return;
        }
        for record in self.cx.view.due_dials(now, room) {
            self.cx.put(Output::Dial(record));
        }
    }
}

/// What one broken rule costs; ten of them cut a peer off.
const PENALTY: u32 = 10;

/// What a broken rule costs, and when a peer is cut off.
impl Peer {
    /// Scores a peer that broke a rule, and cuts it off if it continues.
    pub(super) fn judge(&mut self, from: PeerId, result: Checked) -> Checked {
        let Err(error) = &result else { return Ok(()) };
        let Some(remote) = self.cx.view.get_mut(from) else {
            return result;
        };
        remote.score = remote.score.saturating_add(PENALTY);
        let (score, banned) = (remote.score, remote.banned);
        let what = error.to_string();
        self.cx.emit(Event::Misbehaved {
            peer: from,
            score,
            what,
        });
        if score >= SCORE_MAX && !banned {
            self.cut_off(from, Reason::Misbehaved);
        }
        result
    }

    /// Cuts off a peer that lies. A proof is passed on, also when the peer is cut off already.
    pub(super) fn convict(&mut self, peer: PeerId, what: String, proof: Option<Box<Proof>>) {
        let proven = proof.is_some();
        if let Some(proof) = proof {
            self.cx.put(Output::Prove(proof));
        }
        // The proof was passed on above; to say and do the rest again would change nothing.
        if self.cx.view.get(peer).is_some_and(|remote| remote.banned) {
            return;
        }
        let round = self.cx.round;
        self.cx.emit(Event::Lied {
            peer,
            proven,
            round,
            what,
        });
        self.cut_off(peer, Reason::Misbehaved);
    }

    /// Says goodbye and closes the link; for good where the peer broke rules.
    fn cut_off(&mut self, peer: PeerId, reason: Reason) {
        if let Some(remote) = self.cx.view.get_mut(peer) {
            // Another run, model, plan or version is a mistake that the user may correct.
            remote.banned |= reason == Reason::Misbehaved;
            remote.contact.refused = true;
            remote.contact.dials = DIALS_REFUSED;
        }
        self.cx.emit(Event::Refused { peer, reason });
        self.cx.send(peer, MembershipMessage::Goodbye(reason));
        self.cx.put(Output::Disconnect { peer, reason });
        self.peer_gone(peer);
    }

    /// Bytes that are not a message. Another version breaks no rule, but the two cannot talk.
    pub(super) fn malformed(&mut self, from: PeerId, error: WireError) -> Checked {
        if matches!(error, WireError::Version { .. }) {
            self.cut_off(from, Reason::OtherVersion);
            return Err(PeerError::Malformed(error));
        }
        self.cx.emit(Event::Malformed {
            peer: from,
            error: error.clone(),
        });
        self.judge(from, Err(PeerError::Malformed(error)))
    }
}

/// By how many seconds the clock that signed a record is ahead of this peer's, if that cannot be the
/// record's age: a record is passed on for as long as it is believed.
fn ahead(record: &PeerRecord, now: Time) -> Option<i64> {
    let seconds = |time: Time| i64::try_from(time.since(Time::ZERO).as_secs()).unwrap_or(i64::MAX);
    let signed = seconds(record.expires).saturating_sub(RECORD_LIFETIME.as_secs() as i64);
    let ahead = signed.saturating_sub(seconds(now));
    let (most, least) = (
        CLOCK_SKEW_MAX.as_secs() as i64,
        RECORD_LIFETIME.as_secs() as i64,
    );
    (ahead > most || ahead < -(least + most)).then_some(ahead)
}

/// Wrong clocks. A peer signs its record with an expiry by its own clock, so a record says what time
/// it is there, give or take its age.
impl Peer {
    /// Notes what the record of a linked peer, from itself, says about its clock.
    fn note_clock(&mut self, from: PeerId, record: &PeerRecord) {
        let now = self.cx.now;
        // A record that is passed on says how old it is, and not what time it is there.
        if record.peer != from {
            return;
        }
        let ahead = ahead(record, now);
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let before = remote.contact.clock.replace(ahead.unwrap_or(0));
        if before != Some(ahead.unwrap_or(0)) && (ahead.is_some() || self.life.once.clock_off) {
            self.judge_clocks(from);
        }
    }

    /// Whose clock is wrong: this peer's, if more than half of all agree on another time.
    fn judge_clocks(&mut self, from: PeerId) {
        let told = self.cx.view.greeted();
        let mut clocks: Vec<i64> = told.filter_map(|(_, r)| r.contact.clock).collect();
        clocks.sort_unstable();
        let median = clocks.get(clocks.len() / 2).copied().unwrap_or(0);
        let skew = CLOCK_SKEW_MAX.as_secs();
        let agreeing = clocks.iter().filter(|c| c.abs_diff(median) <= skew).count();
        // This peer counts as one that disagrees, so the others need more than half of all.
        let mine = median != 0 && self.believes(agreeing) && 2 * agreeing > clocks.len() + 1;
        if mine {
            if !self.life.once.clock_off {
                self.life.once.clock_off = true;
                self.cx.emit(Event::ClockOff {
                    peer: None,
                    ahead: median,
                });
            }
            return;
        }
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let ahead = remote.contact.clock.unwrap_or(0);
        if ahead != 0 && !remote.contact.clock_told {
            remote.contact.clock_told = true;
            let peer = Some(from);
            self.cx.emit(Event::ClockOff { peer, ahead });
        }
    }
}

/// A peer of a grid or of cells: its place in the roll, links to its counterparts, and the way in for one without a place.
impl Peer {
    pub(super) const fn has_rolls(&self) -> bool {
        self.cx.plan.agreement.grouping.has_roll()
    }

    /// This peer takes part in no round, because it has no place in the roll.
    fn is_outside(&self) -> bool {
        let roll = self.cx.rolls.roll.as_ref();
        self.has_rolls() && roll.and_then(|roll| roll.place_of(self.cx.me())).is_none()
    }

    /// Dials counterparts without a link. Of two, the one with the lower id dials first.
    pub(super) fn dial_counterparts(&mut self) {
        let now = self.cx.now;
        let Some(roll) = self.cx.rolls.roll.clone() else {
            return;
        };
        for counterpart in self.cx.rolls.all_counterparts().iter().copied() {
            let place = roll
                .place_of(counterpart)
                .and_then(|place| roll.place(place));
            let Some(record) = place.map(|place| place.record.clone()) else {
                continue;
            };
            // Otherwise both ends would dial at the same time.
            let first = self.cx.me() < counterpart;
            // Counterparts take the place of others that are only known.
            let Some(remote) = self.cx.view.entry(counterpart) else {
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
            self.cx
                .send(sponsor, ExchangeMessage::apply(record.clone()));
        }
    }

    /// This peer has a place in the roll.
    pub(super) fn sits(&self) -> bool {
        self.cx.rolls.roll.is_some() && !self.is_outside()
    }

    /// This peer follows the others without taking part, for want of a place.
    pub(super) fn only_follows(&self) -> bool {
        let outside = self.cx.rolls.roll.is_some() && self.is_outside();
        self.life.once.observes || (outside && !self.trains_outside())
    }

    /// A peer without a place trains on from its own parameters: where peers agree on no anchor.
    pub(super) const fn trains_outside(&self) -> bool {
        self.cx.plan.exchange.facts().deals_cells
    }

    /// Another peer may say that this one has a place from a round on.
    pub(super) fn note_placed(&mut self, from: PeerId, message: &ExchangeMessage) {
        let Some(round) = message.placed() else {
            return;
        };
        if let Some(remote) = self.cx.view.get_mut(from) {
            remote.round = remote.round.max(round);
        }
        if self.phase == Phase::Join {
            self.try_begin();
        }
    }

    /// This peer of a grid begins when all its counterparts are here and say the same.
    pub(super) fn waits_for_all_counterparts(&self) -> bool {
        self.life.once.patience == Patience::ForAll && self.sits()
    }

    pub(super) fn has_met(&self, peer: PeerId) -> bool {
        let remote = self.cx.view.get(peer);
        remote.is_some_and(|remote| remote.muster >= Muster::Met)
    }

    /// Counterparts in a grid that are not here, or have not met theirs.
    pub(super) fn missing_counterparts(&self) -> Vec<PeerId> {
        if !self.waits_for_all_counterparts() {
            return Vec::new();
        }
        let missing = self
            .counterparts()
            .filter(|peer| !self.cx.view.is_here(*peer) || !self.has_met(*peer));
        missing.collect()
    }

    pub(super) fn missing_counterpart(&self) -> Option<Missing> {
        if !self.waits_for_all_counterparts() {
            return None;
        }
        let absent = self
            .counterparts()
            .find(|peer| !self.cx.view.is_here(*peer));
        let unmet = || self.counterparts().find(|peer| !self.has_met(*peer));
        absent
            .map(Missing::Link)
            .or_else(|| unmet().map(Missing::Met))
    }

    pub(super) fn all_counterparts_here(&self) -> bool {
        if let Some(Missing::Link(counterpart)) = self.life.once.waits_for
            && self.cx.rolls.is_counterpart(counterpart)
            && !self.cx.view.is_here(counterpart)
        {
            return false;
        }
        let mut counterparts = self.counterparts();
        counterparts.all(|peer| self.cx.view.is_here(peer))
    }

    pub(super) fn all_counterparts_met(&self) -> bool {
        self.counterparts().all(|peer| self.has_met(peer))
    }

    fn counterparts(&self) -> impl Iterator<Item = PeerId> {
        self.cx.rolls.counterparts()
    }

    pub(super) fn counterparts_here(&self) -> (usize, usize) {
        let here = self
            .counterparts()
            .filter(|peer| self.cx.view.is_here(*peer));
        (here.count(), self.counterparts().count())
    }
}

/// Orders a peer's links with strangers, alike at both ends, so that both keep the same ones.
fn rank(one: PeerId, other: PeerId) -> Digest {
    Digest::of(&canonical(&(one.min(other), one.max(other))))
}

/// Links that a peer of a grid can spare. Founding a run, and newcomers on their way in, leave links
/// between peers that are neither in one row nor in one column.
impl Peer {
    /// Closes links with members of the roll that are no counterparts, beyond [`STRANGER_LINKS_MAX`].
    fn close_spare_links(&mut self) {
        if !self.sits() || self.founding.is_some() || !self.catch_up.idle() {
            return;
        }
        let Some(roll) = &self.cx.rolls.roll else {
            return;
        };
        let (me, rolls) = (self.cx.me(), &self.cx.rolls);
        let linked = self.cx.view.greeted();
        // One that takes over a state, or has no place yet, may be here for help.
        let strangers = linked.filter(|(peer, remote)| {
            remote.ready && roll.place_of(*peer).is_some() && !rolls.is_counterpart(*peer)
        });
        let mut strangers: Vec<PeerId> = strangers.map(|(peer, _)| peer).collect();
        if strangers.len() <= STRANGER_LINKS_MAX {
            return;
        }
        strangers.sort_by_cached_key(|peer| rank(me, *peer));
        let reason = Reason::Spare;
        for peer in strangers.split_off(STRANGER_LINKS_MAX) {
            self.cx.send(peer, MembershipMessage::Goodbye(reason));
            self.cx.put(Output::Disconnect { peer, reason });
            self.spared(peer);
        }
    }

    /// This link was one too many for one of its ends.
    pub(super) fn spared(&mut self, peer: PeerId) {
        if let Some(remote) = self.cx.view.get_mut(peer) {
            remote.contact.spared = true;
            remote.linked = false;
        }
        self.peer_gone(peer);
    }

    /// Dials a few peers that are no counterparts, so that news reach the whole swarm.
    fn dial_strangers(&mut self) {
        let linked = self.cx.view.iter().filter(|(_, remote)| remote.linked);
        let strangers = linked
            .filter(|(peer, _)| !self.cx.rolls.is_counterpart(*peer))
            .count();
        let room = STRANGER_LINKS.saturating_sub(strangers);
        if room == 0 {
            return;
        }
        let (me, now) = (self.cx.me(), self.cx.now);
        let spared = |peer: &PeerId| {
            let remote = self.cx.view.get(*peer);
            remote.is_some_and(|remote| remote.contact.spared)
        };
        let mut due = self.cx.view.due(now);
        // A link that was one too many would be closed again at once.
        due.retain(|peer| !spared(peer));
        due.sort_by_cached_key(|peer| rank(me, *peer));
        for peer in due.into_iter().take(room) {
            if let Some(record) = self.cx.view.dial(peer, now) {
                self.cx.put(Output::Dial(record));
            }
        }
    }
}

/// Rounds after which no peer lacks the first roll any more.
const SERVED_UNTIL: Round = Round(3);

/// A fresh peer of a grid or of cells: takes part in founding the run's first roll.
impl Peer {
    /// This peer's record is known: it can be found, and can found.
    fn begin_founding(&mut self, record: &PeerRecord) {
        let Some(row) = self.cx.plan.agreement.grouping.first_row() else {
            return;
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

    /// A peer greeted this one: it is told the chosen roll or, before the choice, the known registrars.
    fn greet_founder(&mut self, peer: PeerId) {
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
        let view = &self.cx.view;
        let under_way = view.live().any(|(_, remote)| remote.round > Round(0));
        // Once this peer has its roll no neighbour need be told of registrars, and it has hundreds.
        let founds = self.cx.rolls.roll.is_none();
        let linked = self.cx.view.greeted().map(|(peer, _)| peer);
        let linked: Vec<PeerId> = linked.filter(|_| founds).collect();
        let linked = linked.into_iter().map(|peer| self.record_of(peer));
        let linked: Vec<PeerRecord> = linked.collect();
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

    fn founder_gone(&mut self, peer: PeerId) {
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
            if self.cx.view.is_here(to.peer) {
                self.cx.send(to.peer, message);
                continue;
            }
            // The founding may name peers that this one has never met.
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
            // Counterparts are known from here on, so the links to them can be dialled.
            self.cx.hold(Some(roll));
            self.dial_counterparts();
            self.try_begin();
        }
    }
}

/// Peers tell the rates of their links, where topology or schedule goes by them.
impl Peer {
    /// A round begins: tells the others what this peer has measured, if it opens an epoch.
    pub(super) fn tell_rates(&mut self) {
        let view = &self.cx.view;
        if !view.links.is_used() && !view.measured.is_used() {
            return;
        }
        let live: Vec<PeerId> = view.live().map(|(peer, _)| peer).collect();
        let (now, round, me) = (self.cx.now, self.cx.round, self.cx.me());
        let view = &mut self.cx.view;
        let told = if view.links.is_used() {
            view.links.enter(now, round, me, &live)
        } else {
            view.measured.enter(now, round, me, &live)
        };
        if let Some(told) = told {
            for peer in live {
                self.cx.send(peer, MembershipMessage::Rates(told.clone()));
            }
        }
    }

    /// Another peer tells the measured rates of its links.
    pub(super) fn rates(&mut self, from: PeerId, told: &Rates) -> Checked {
        let view = &mut self.cx.view;
        if view.measured.is_used() {
            view.measured.hear(from, told);
            return Ok(());
        }
        let classes = told.rates.iter().map(|(_, class)| *class);
        let known = classes
            .max()
            .is_none_or(|class| class <= LinkRates::CLASS_MAX);
        if !view.links.is_used() || !known {
            let what = "rates of links in a run that needs none, or none of its classes";
            return Err(PeerError::unexpected(what));
        }
        view.links.hear(from, told);
        Ok(())
    }
}
