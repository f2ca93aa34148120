//! Membership: links, hellos, records by anti-entropy, signs of life.

use crate::core::remote::DIALS_REFUSED;
use crate::core::timers::Timer;
use crate::core::{Event, Output, PeerError, Phase};
use crate::exchange::Signal;
use crate::limits::{
    ABSENT_ROUNDS_MAX, ACTIVE_LINKS_MAX, ALIVE_EVERY, CLOCK_SKEW_MAX, RECORD_LIFETIME,
    RECORDS_BYTES_MAX, RECORDS_PER_MESSAGE_MAX,
};
use crate::peer::Peer;
use crate::wire::{ExchangeMessage, Hello, MembershipMessage, Message, Muster, PeerRecord, Reason};
use crate::{Branch, Digest, PeerId, Round, Time};
use core::time::Duration;
use rand_core::Rng;

impl Peer {
    pub(super) fn link_up(&mut self, peer: PeerId) {
        let Some(remote) = self.cx.view.entry(peer) else {
            self.cx.put(Output::Disconnect {
                peer,
                reason: Reason::Full,
            });
            return;
        };
        if remote.banned {
            self.cx.put(Output::Disconnect {
                peer,
                reason: Reason::Misbehaved,
            });
            return;
        }
        remote.linked = true;
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
            branch: self.cx.branch_for(to).map(Box::new),
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
    pub(super) fn peer_gone(&mut self, peer: PeerId) {
        let (now, round) = (self.cx.now, self.cx.round);
        let greeted = self.cx.view.get_mut(peer).and_then(|remote| {
            let recent = |last: Round| round.since(last) <= ABSENT_ROUNDS_MAX;
            if remote.grouped.is_some_and(recent) && !remote.contact.left {
                remote.contact.lost = Some(now);
            }
            remote.ready = false;
            remote.muster = Muster::Waiting;
            remote.grouped = None;
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
        remote.probation = under_way && !known;
        // A repeated hello means that ours was lost. A hello that was sent just now may have
        // crossed this one.
        let stale = |at: Time| now.since(at) >= ALIVE_EVERY / 2;
        let answer = known && remote.contact.hello_at.is_some_and(stale);
        self.cx.sort_sides();
        if !known {
            self.cx.emit(Event::PeerUp(from));
            // Mates have the records of all in the roll.
            if !self.cx.rolls.mates.contains(&from) {
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
            if round >= self.cx.round {
                remote.suspected = false;
                remote.ready = true;
            }
        }
        true
    }

    pub(super) fn alive(
        &mut self,
        from: PeerId,
        round: Round,
        ready: bool,
        anchor: Digest,
        (muster, branch): (Muster, Option<Branch>),
    ) {
        let mine = self.cx.round;
        let Some(remote) = self.cx.view.get_mut(from) else {
            return;
        };
        let ready = ready && !remote.contact.observes;
        if ready && !remote.ready {
            match self.phase {
                Phase::New | Phase::Join => remote.settle(),
                _ if std::mem::take(&mut remote.contact.together) => remote.settle(),
                _ => remote.on_trial(round),
            }
        }
        remote.round = round;
        remote.ready = ready;
        remote.muster = muster;
        remote.anchor = Some(anchor);
        remote.contact.branch = branch.map(Box::new);
        if round.next() >= mine {
            remote.suspected = false;
        }
        self.cx.sort_sides();
        self.signal(Signal::Heard(from));
        self.try_begin_with(from);
        // In a grid hundreds of mates end with the same bits and say so.
        let same = self.has_rolls() && round == mine && anchor == self.cx.anchor();
        if self.phase == Phase::Finished && (same || !self.settle_the_end()) {
            self.maybe_leave();
        }
    }

    /// Tells every linked peer how far this one is.
    pub(super) fn tell_alive(&mut self) {
        let (round, ready, anchor) = (self.cx.round, self.ready(), self.cx.anchor());
        let muster = self.muster();
        let peers: Vec<PeerId> = self.cx.view.audience().map(|(id, _)| id).collect();
        for peer in peers {
            let branch = self.cx.branch_for(peer).map(Box::new);
            let alive = MembershipMessage::Alive {
                round,
                ready,
                anchor,
                muster,
                branch,
            };
            self.cx.send(peer, alive);
        }
    }

    pub(super) fn alive_tick(&mut self) {
        let now = self.cx.now;
        self.cx.timers.set(Timer::Alive, now + ALIVE_EVERY);
        self.cx.view.expire(now);
        self.tell_alive();
        let silent = self
            .cx
            .view
            .iter()
            .filter(|(_, r)| r.linked && !r.greeted && !r.banned && !r.contact.spared);
        let silent: Vec<PeerId> = silent.map(|(id, _)| id).collect();
        silent.into_iter().for_each(|peer| self.send_hello(peer));
        self.spread_records();
        self.dial_mates();
        self.dial_due(ACTIVE_LINKS_MAX);
        self.close_spare_links();
        if (self.only_follows() || self.trains_outside()) && self.is_outside() {
            self.ask_for_a_place();
        }
        self.donor_tick();
        self.keep_donors();
    }

    /// Anti-entropy: sends what this peer knows to one linked peer at random.
    fn spread_records(&mut self) {
        let linked: Vec<PeerId> = self.cx.view.audience().map(|(id, _)| id).collect();
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
        let window = all
            .iter()
            .cycle()
            .skip(first)
            .take(all.len().min(RECORDS_PER_MESSAGE_MAX));
        let mut room = RECORDS_BYTES_MAX;
        let fits = |r: &&&PeerRecord| {
            let bytes = r.wire_bytes();
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        };
        let records = window
            .filter(|r| r.peer != to)
            .filter(fits)
            .map(|r| (*r).clone())
            .collect();
        self.cx.send(to, MembershipMessage::Records(records));
    }

    pub(super) fn records(
        &mut self,
        from: PeerId,
        records: &[PeerRecord],
    ) -> Result<(), PeerError> {
        let now = self.cx.now;
        let me = self.cx.me();
        let latest = now + RECORD_LIFETIME + CLOCK_SKEW_MAX;
        let (mut news, mut newcomers) = (false, Vec::new());
        for record in records.iter().filter(|r| r.peer != me) {
            if record.run != self.cx.plan.run {
                return Err(PeerError::Unexpected {
                    what: format!("a record of {} for another run", record.peer),
                });
            }
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
        let others = self.cx.view.audience().map(|(id, _)| id);
        let others: Vec<PeerId> = others.filter(|id| *id != from).collect();
        for to in others {
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
        let peers: Vec<PeerId> = self.cx.view.audience().map(|(id, _)| id).collect();
        peers
            .into_iter()
            .take(ACTIVE_LINKS_MAX)
            .for_each(|peer| self.send_records(peer));
    }

    /// Dials known peers without a link until there are enough: all of them while the view is
    /// complete, but a few at a time, because a young view of a large swarm looks complete too.
    fn dial_due(&mut self, beyond_active: usize) {
        if self.sits() {
            self.dial_strangers();
            return;
        }
        let linked = self.cx.view.iter().filter(|(_, r)| r.linked).count();
        // In a grid only mates are linked, and few others until there is a roll.
        let complete = self.cx.view.is_complete() && !self.has_rolls();
        let beyond = if complete { beyond_active } else { 0 };
        let now = self.cx.now;
        // Dials under way count as links, or a burst of records would make far more than enough.
        let under_way = match self.has_rolls() {
            true => self.cx.view.dialling(now),
            false => 0,
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
