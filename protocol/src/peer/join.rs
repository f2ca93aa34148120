//! Before the first round of a life: when a peer begins, and with which state.
//!
//! A fresh peer waits until `start_with` peers are here, itself included, and as many of them say the same. A peer
//! with a checkpoint joins a run that is under way at once. If no run is under way, the whole swarm was restarted: it
//! waits for the peers that it trained with. Those that hold the newest state begin; the others take that state over.

use crate::core::deadlines::Timer;
use crate::core::{Event, Phase, Remote, Wait};
use crate::limits::{
    ALIVE_EVERY, COMPANIONS_WAIT, MISSING_AGAIN_MAX, OBSERVE_EVERY, REST_ASKED_AGAIN,
    VIEW_PEERS_MAX,
};
use crate::peer::Peer;
use crate::peer::life::{Missing, Patience, Said, Standing};
use crate::peer::replay::STALENESS_MAX;
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{Muster, TransferMessage};
use crate::{Base, Digest, PeerId, Round};
use core::time::Duration;

impl Peer {
    /// [`Peer::try_begin`] after a message of another peer. A peer of a grid hears hundreds of them, and
    /// looks at all its counterparts again only if its wait for one of them ended or the sender has news.
    pub(super) fn try_begin_with(&mut self, from: PeerId) {
        if self.phase == Phase::Paused {
            // In a pause no round ends, so signs of life are all that shows others further ahead.
            self.catch_up_in_a_pause();
            return;
        }
        if self.phase != Phase::Join
            || (self.waits_for_a_counterpart() && self.says_nothing_new(from))
        {
            return;
        }
        self.try_begin();
        if self.phase == Phase::Join {
            self.life.once.waits_for = self.missing_counterpart();
        }
    }

    fn waits_for_a_counterpart(&self) -> bool {
        let plain =
            self.waits_for_all_counterparts() && self.fresh() && !self.cx.plan.agreement.signs();
        plain
            && match self.life.once.waits_for {
                Some(Missing::Link(counterpart)) => !self.cx.view.is_here(counterpart),
                Some(Missing::Met(counterpart)) => {
                    self.cx.view.is_here(counterpart) && !self.has_met(counterpart)
                }
                None => false,
            }
    }

    /// A peer waits for its first round as this one does.
    fn says_nothing_new(&self, from: PeerId) -> bool {
        let same = |anchor| anchor == self.cx.anchor() || !self.cx.config.join;
        self.cx.view.get(from).is_some_and(|remote| {
            let rests = remote.muster != Muster::Begun && remote.round == self.cx.round;
            rests && remote.anchor.is_none_or(same)
        })
    }

    /// In `Join`: begins when there is nothing to catch up with and enough peers are there.
    pub(super) fn try_begin(&mut self) {
        if self.phase != Phase::Join || !self.catch_up.idle() {
            return;
        }
        if self.only_follows() {
            self.follow();
            return;
        }
        if !self.cx.plan.exchange.facts().exchanges {
            self.begin();
            return;
        }
        if self.swarm_is_elsewhere() {
            self.take_over();
            return;
        }
        let founded = self.cx.rolls.roll.is_some();
        if self.has_rolls() && !self.sits() && !(founded && self.trains_outside()) {
            // The roll is being founded, or comes with the state of a swarm that is further.
            return;
        }
        // Before the question who is newest: some may lie about it, and others can tell.
        self.ask_about_rest();
        if self.cannot_tell() {
            return;
        }
        let fresh = self.fresh();
        let enough = if !fresh && (self.life.once.begun || self.under_way()) {
            // A peer that comes back continues with peers that take part in rounds, or waits for them.
            self.cx.view.live().next().is_some()
        } else {
            let late = !fresh && self.life.once.patience > Patience::ForAll;
            let behind = matches!(self.standing(), Standing::Behind(_));
            self.met() && (late || behind || self.others_met())
        };
        if enough {
            self.begin_or_take_over();
        } else if self.met() {
            self.meet();
        }
    }

    /// Tells the others once that it has met enough of them.
    fn meet(&mut self) {
        if !self.life.once.met {
            self.life.once.met = true;
            self.tell_alive();
        }
    }

    /// Begins, or takes over the state of a peer that waits with a newer one.
    fn begin_or_take_over(&mut self) {
        match self.standing() {
            Standing::Newest => self.begin(),
            // The others count this peer among those that are here.
            Standing::Behind(_) => {
                self.life.once.met = true;
                self.tell_alive();
                self.take_over();
            }
            Standing::Unclear if self.returns() => self.take_over(),
            Standing::Unclear => self.meet(),
        }
    }

    /// This peer goes back to the state of those that are in rounds: too few know its own.
    fn returns(&self) -> bool {
        self.under_way() && self.is_refuted()
    }

    fn take_over(&mut self) {
        self.stop_waiting_for_peers();
        self.ask_state();
    }

    pub(super) fn stop_waiting_for_peers(&mut self) {
        self.cx.waited(Wait::Peers);
        self.cx.timers.stop(Timer::Join);
    }

    pub(super) fn fresh(&self) -> bool {
        self.cx.round == Round(0)
    }

    /// This peer waits for its first round with a state that it can give to others.
    pub(super) fn at_rest(&self) -> bool {
        self.phase == Phase::Join && !self.life.once.begun && self.catch_up.idle()
    }

    /// The run is under way: some peer takes part in rounds.
    pub(super) fn under_way(&self) -> bool {
        let live = self.cx.view.live();
        let begun = live.filter(|(_, remote)| remote.muster == Muster::Begun);
        self.believes(begun.count())
    }

    /// How many peers, this one included, it waits for.
    fn wanted(&self) -> usize {
        let most = |peers: usize| peers / 2 + 1;
        if self.sits() {
            let (_, others) = self.counterparts_here();
            return match self.life.once.patience {
                Patience::ForAll => 1 + others,
                _ => most(1 + others),
            };
        }
        let config = &self.cx.config;
        let all = config.start_with.max(config.companions + 1);
        match self.life.once.patience {
            _ if self.fresh() => config.start_with,
            Patience::ForAll => all,
            Patience::ForMost => most(all),
            Patience::Over => most(config.start_with),
        }
    }

    /// How many peers are here, this one included.
    fn here(&self) -> usize {
        if self.sits() {
            1 + self.counterparts_here().0
        } else {
            1 + self.cx.view.greeted().count()
        }
    }

    /// As many others are here as this peer begins with.
    fn met(&self) -> bool {
        let alone = if self.fresh() {
            !self.cx.config.join
        } else {
            // Without a companion it may still be found by others.
            match self.life.once.patience {
                Patience::ForAll => false,
                Patience::ForMost => !self.cx.config.join,
                Patience::Over => true,
            }
        };
        if self.waits_for_all_counterparts() {
            // The first that is missing answers it.
            return self.all_counterparts_here() && (alone || self.counterparts_here().1 > 0);
        }
        let here = self.here();
        here >= self.wanted() && (here > 1 || alone)
    }

    /// The others have met as many. A peer that begins before them finds them unready. Once one of
    /// them has begun, nothing is left to wait for.
    fn others_met(&self) -> bool {
        if self.waits_for_all_counterparts() {
            let mut others = self.cx.view.greeted();
            return self.all_counterparts_met()
                || others.any(|(_, remote)| remote.muster == Muster::Begun);
        }
        let others = || self.cx.view.greeted().map(|(_, remote)| remote.muster);
        let met = others().filter(|muster| *muster >= Muster::Met).count();
        met + 1 >= self.wanted() || others().any(|muster| muster == Muster::Begun)
    }

    /// How far this peer is on its way to its first round.
    pub(super) fn muster(&self) -> Muster {
        match self.phase {
            Phase::New | Phase::Join if !self.life.once.begun => {
                if self.met() {
                    Muster::Met
                } else {
                    Muster::Waiting
                }
            }
            _ => Muster::Begun,
        }
    }

    /// Some peer takes part in rounds from another state than this peer's.
    fn swarm_is_elsewhere(&self) -> bool {
        let (round, anchor) = (self.cx.round, self.cx.anchor());
        let agreed = self.cx.plan.exchange.agrees();
        let elsewhere = self.cx.view.live().filter(|(_, remote)| {
            let other =
                agreed && remote.round == round && remote.anchor.is_some_and(|a| a != anchor);
            remote.round > round || (other && self.cx.config.join)
        });
        self.believes(elsewhere.count())
    }

    /// Too few are there to believe, or to contradict, those that say the run is elsewhere.
    fn cannot_tell(&self) -> bool {
        let round = self.cx.round;
        let live = || self.cx.view.live();
        let ahead = live().filter(|(_, remote)| remote.round > round).count();
        let others = live().count() - ahead;
        !self.life.once.begun && ahead > 0 && !self.believes(ahead.max(others))
    }

    /// No peer, or not enough peers, came in time.
    pub(super) fn join_expired(&mut self) {
        if self.phase != Phase::Join || !self.catch_up.idle() {
            // A catch-up has clocks of its own.
            self.cx.waited(Wait::Peers);
            return;
        }
        // It was told to join a run, so it must not found another one by itself.
        let lonely = self.here() == 1 && self.cx.config.join && self.fresh();
        if self.only_follows() && !lonely {
            self.follow_later();
            return;
        }
        if self.life.once.begun {
            self.cx.waited(Wait::Peers);
            self.begin();
            return;
        }
        let waited = self.cx.now.since(self.life.started);
        let fresh = self.fresh();
        if lonely {
            self.cx.waited(Wait::Peers);
            self.cx.emit(Event::JoinFailed { waited });
            self.enter(Phase::Leaving);
            self.left();
            return;
        }
        if self.swarm_is_elsewhere() {
            // Too few others were there until now to be believed.
            self.take_over();
            return;
        }
        self.life.once.patience = if fresh || waited >= self.cx.config.start_wait {
            Patience::Over
        } else {
            Patience::ForMost
        };
        let clear = self.standing() != Standing::Unclear || self.returns();
        // A round without a roll is a round with no other peer, and the founding ends with the first rounds.
        let founded = !fresh || !self.has_rolls() || self.cx.rolls.roll.is_some();
        if self.met() && clear && founded {
            self.cx.waited(Wait::Peers);
            self.begin_or_take_over();
            return;
        }
        let (here, wanted) = (self.here(), self.wanted());
        self.cx.emit(if self.met() {
            Event::Unconfirmed {
                round: self.cx.round,
            }
        } else {
            Event::Missing {
                here,
                wanted,
                waited,
            }
        });
        let again = match self.life.once.patience {
            Patience::Over => waited.min(MISSING_AGAIN_MAX),
            _ => self.cx.config.start_wait.saturating_sub(waited),
        };
        self.wait_for_peers(again.max(COMPANIONS_WAIT));
    }

    /// Starts the clock of the wait before the first round of this life.
    pub(super) fn gather(&mut self) {
        let start_wait = self.cx.config.start_wait;
        self.wait_for_peers(if self.fresh() {
            start_wait
        } else {
            start_wait.min(COMPANIONS_WAIT)
        });
    }

    fn wait_for_peers(&mut self, allowed: Duration) {
        let deadline = self.cx.wait(Wait::Peers, allowed);
        self.cx.timers.set(Timer::Join, deadline);
    }
}

/// Answer to the question if enough peers began a round with a state's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Confirmed,
    Refuted,
    Open,
}

/// With which state a swarm goes on after all its members were restarted.
///
/// Peers with a checkpoint say which state they hold. The newest one counts. Where members sign, some
/// may lie about it: then it counts only if more peers than may lie began its round with the same
/// parameters, in this life or an earlier one. A peer whose own state is not confirmed, because it was
/// alone in beginning its round, goes back to the newest one that is.
///
/// Peers that were on two sides of a split are merged once they have begun. Where sides are not merged, the
/// state of the side with more weight counts, however far the other one is: a peer that trained alone is ahead
/// of those that trained together.
impl Peer {
    /// Where this peer's state stands, before its first round.
    pub(super) fn standing(&self) -> Standing {
        if self.life.once.begun {
            return Standing::Newest;
        }
        if self.cx.plan.agreement.signs() {
            self.confirmed_standing()
        } else {
            self.believed_standing()
        }
    }

    /// Every peer is believed. Of several states of one round the one with most holders counts.
    fn believed_standing(&self) -> Standing {
        if self.under_way() {
            return Standing::Newest;
        }
        let mine = self.cx.base();
        if let Some(heavier) = self.heavier_side() {
            return Standing::Behind(heavier);
        }
        let mut holders: SortedMap<(Round, Digest), usize> =
            SortedMap::from([((mine.round, mine.anchor), 1)]);
        let of_this_side = self
            .resting()
            .filter(|(id, _)| !self.is_of_another_side(*id));
        for (_, base) in of_this_side.filter(|(_, base)| base.round >= mine.round) {
            *holders.entry((base.round, base.anchor)).or_default() += 1;
        }
        let newest = holders.into_iter();
        let newest = newest.max_by_key(|((round, anchor), count)| (*round, *count, *anchor));
        let Some(((round, anchor), _)) = newest else {
            return Standing::Newest;
        };
        // Peers of a fresh run, and of exchanges without a common anchor, differ by nature.
        let comparable = round > Round(0) && self.cx.plan.exchange.agrees();
        if round > mine.round || (comparable && anchor != mine.anchor) {
            Standing::Behind(Base { round, anchor })
        } else {
            Standing::Newest
        }
    }

    /// A peer was on another side of a split, in an earlier life of both.
    fn is_of_another_side(&self, peer: PeerId) -> bool {
        let split = &self.cx.view.split;
        let said = self.cx.view.get(peer).and_then(|remote| {
            let theirs = remote.contact.branch.as_deref()?;
            split.credible(theirs, remote.round).then_some(theirs)
        });
        let mine = split.branch().filter(|_| split.misses(peer));
        mine.zip(said).is_some_and(|(mine, said)| said.meets(&mine))
    }

    /// The newest state of a heavier side that waits here, where sides are not merged.
    fn heavier_side(&self) -> Option<Base> {
        let split = &self.cx.view.split;
        let mine = split.unmerged_branch()?;
        let said = |id: PeerId| {
            let remote = self.cx.view.get(id)?;
            remote.contact.branch.as_deref()
        };
        // Members of a side have checkpoints of different ages: its furthest one speaks for it.
        let (mut ours, mut theirs) = ((mine.weight, self.cx.base().anchor), None);
        for (id, base) in self.resting() {
            let Some(branch) = said(id) else {
                continue;
            };
            let claim = (branch.weight, base.anchor);
            if self.is_of_another_side(id) {
                let best = theirs.get_or_insert((claim, base));
                if weighs_more(&claim, &best.0) {
                    *best = (claim, base);
                }
            } else if !split.misses(id) && branch.meets(&mine) && weighs_more(&claim, &ours) {
                ours = claim;
            }
        }
        theirs.and_then(|(claim, base)| weighs_more(&claim, &ours).then_some(base))
    }

    /// Some peers may lie: a state counts if more than these began its round with it.
    fn confirmed_standing(&self) -> Standing {
        let mine = self.cx.base();
        let claims = self.resting().map(|(_, base)| base).chain([mine]);
        let claims = claims.filter(|base| base.round > Round(0));
        let mut claims: Vec<(Round, usize, Digest)> = claims
            .map(|base| (base.round, self.vouchers(base), base.anchor))
            .collect();
        // Newest first, and of one round the state with most vouchers.
        claims.sort_unstable();
        claims.dedup();
        let under_way = self.under_way();
        for (round, _, anchor) in claims.into_iter().rev() {
            let base = Base { round, anchor };
            // Those that are in rounds are ahead of all that wait.
            if under_way && base != mine {
                continue;
            }
            match self.verdict(base) {
                Verdict::Confirmed if base == mine => return Standing::Newest,
                Verdict::Confirmed => return Standing::Behind(base),
                // A newer state may still be confirmed, so an older one must wait.
                Verdict::Open => return Standing::Unclear,
                Verdict::Refuted => {}
            }
        }
        if mine.round == Round(0) {
            Standing::Newest
        } else {
            Standing::Unclear
        }
    }

    fn verdict(&self, base: Base) -> Verdict {
        let vouchers = self.vouchers(base);
        let Some(said) = self.rest.rounds.get(&base.round) else {
            return Verdict::Open;
        };
        let silent = self.cx.view.greeted().filter(|(id, remote)| {
            !said.began.contains_key(id) && rests_with(remote) != Some(base)
        });
        let silent = silent.count();
        if self.believes(vouchers) {
            Verdict::Confirmed
        } else if self.believes(vouchers + silent) && said.is_open(self.cx.now) {
            Verdict::Open
        } else {
            Verdict::Refuted
        }
    }

    /// How many peers, this one included, hold a state or began its round with it.
    fn vouchers(&self, base: Base) -> usize {
        let said = self.rest.rounds.get(&base.round);
        let began = |id: PeerId| said.and_then(|said| said.began.get(&id).copied().flatten());
        let others = self.cx.view.greeted().filter(|(id, remote)| {
            began(*id) == Some(base.anchor) || rests_with(remote) == Some(base)
        });
        usize::from(self.began(base.round) == Some(base.anchor)) + others.count()
    }

    /// Too few others know this peer's own state.
    fn is_refuted(&self) -> bool {
        let mine = self.cx.base();
        self.cx.plan.agreement.signs()
            && !self.life.once.begun
            && mine.round > Round(0)
            && self.verdict(mine) == Verdict::Refuted
    }

    /// The oldest state that is worth taking over.
    pub(super) fn oldest_wanted(&self) -> Round {
        let mine = self.cx.round;
        match self.standing() {
            _ if self.is_refuted() => Round(1),
            // A heavier side may have done fewer rounds.
            Standing::Behind(base) => mine.min(base.round),
            Standing::Newest | Standing::Unclear => mine,
        }
    }

    fn ask_about_rest(&mut self) {
        if self.life.once.begun || !self.cx.plan.agreement.signs() {
            return;
        }
        let mine = self.cx.round;
        let claimed = self.resting().map(|(_, base)| base.round).chain([mine]);
        let claimed: SortedSet<Round> = claimed.filter(|round| *round > Round(0)).collect();
        // Bounded by what is claimed now; answers about other rounds are of no use.
        self.rest.rounds.retain(|round, _| claimed.contains(round));
        let others: Vec<PeerId> = self.cx.view.greeted().map(|(id, _)| id).collect();
        let now = self.cx.now;
        let until = now + self.cx.deadlines.answer();
        for round in claimed.into_iter().rev().take(VIEW_PEERS_MAX) {
            let said = self.rest.rounds.entry(round).or_insert_with(|| Said {
                until,
                asked: SortedSet::new(),
                again: REST_ASKED_AGAIN,
                began: SortedMap::new(),
            });
            if now >= said.until && said.again > 0 {
                // A question or its answer may have been lost.
                said.again -= 1;
                let answered = &said.began;
                said.asked.retain(|peer| answered.contains_key(peer));
            }
            for peer in others.iter().filter(|peer| said.asked.insert(**peer)) {
                // Each peer that is asked has the time of an answer, also one that came late.
                said.until = until;
                self.cx.send(*peer, TransferMessage::AnchorAsk { round });
            }
        }
    }

    /// A peer says with which parameters it began a round, or that it knows no such round.
    pub(super) fn rest_answered(&mut self, from: PeerId, round: Round, anchor: Option<Digest>) {
        if let Some(said) = self.rest.rounds.get_mut(&round)
            && said.asked.contains(&from)
        {
            said.began.insert(from, anchor);
            self.try_begin();
        }
    }

    /// With which parameters this peer began a round, or waits to begin it.
    pub(super) fn began(&self, round: Round) -> Option<Digest> {
        let mine = self.cx.base();
        if mine.round == round && self.at_rest() {
            return Some(mine.anchor);
        }
        let opened = self.donor.opened.iter().find(|base| base.round == round);
        opened.map(|base| base.anchor)
    }

    /// The peers that wait for their first round, without those of a side that is to be merged.
    fn resting(&self) -> impl Iterator<Item = (PeerId, Base)> {
        let here = self.cx.view.of_this_branch();
        here.filter_map(|(id, remote)| Some((id, rests_with(remote)?)))
    }

    /// The peers that wait with the state with which this one begins will begin too. They are no
    /// newcomers: a first group without them would end in a void round.
    pub(super) fn await_holders(&mut self) {
        for peer in self.holders_of(self.cx.base()) {
            if let Some(remote) = self.cx.view.get_mut(peer) {
                remote.contact.together = true;
            }
        }
    }

    /// Peers that wait for their first round and hold the state that this one is to take over.
    pub(super) fn holders_at_rest(&self) -> Vec<PeerId> {
        match self.standing() {
            Standing::Behind(base) => self.holders_of(base),
            Standing::Newest | Standing::Unclear => Vec::new(),
        }
    }

    fn holders_of(&self, base: Base) -> Vec<PeerId> {
        let agreed = self.cx.plan.exchange.agrees();
        let same = |r: &Remote| r.round == base.round && (!agreed || r.anchor == Some(base.anchor));
        let all = self.cx.view.greeted();
        let holders = all.filter(|(_, remote)| rests(remote) && same(remote));
        holders.map(|(id, _)| id).collect()
    }
}

/// Order of sides by weight; of equals the one with the higher anchor weighs more.
fn weighs_more((weight, anchor): &(f64, Digest), (other, than): &(f64, Digest)) -> bool {
    weight.total_cmp(other).then(anchor.cmp(than)).is_gt()
}

/// A peer waits for its first round, as it says.
fn rests(remote: &Remote) -> bool {
    remote.muster < Muster::Begun && remote.round > Round(0)
}

/// The state with which it does.
fn rests_with(remote: &Remote) -> Option<Base> {
    let round = remote.round;
    let anchor = remote.anchor.filter(|_| rests(remote));
    anchor.map(|anchor| Base { round, anchor })
}

/// Rounds that are replayed one by one. A state is fewer bytes than more of them.
const REPLAYED_MAX: u64 = 8;

/// Observing: a peer whose certificate gives it no part in rounds. It trains nothing and tells the
/// others that it is not ready, so no group contains it and no round waits for it. It stays in `Join`,
/// takes over what the others decide, and passes through `Settle` to evaluate and to save.
///
/// The others do not rely on its claims: their drivers know its certificate, and a message of it about
/// a round breaks a rule.
impl Peer {
    /// A certificate gives this peer, or a linked one, no part in rounds.
    pub(super) fn observes(&mut self, peer: PeerId) {
        if peer == self.cx.me() {
            self.life.once.observes = true;
        } else if let Some(remote) = self.cx.view.get_mut(peer) {
            remote.contact.observes = true;
            remote.ready = false;
        }
    }

    /// Another peer has no part in rounds.
    pub(super) fn only_observes(&self, peer: PeerId) -> bool {
        let remote = self.cx.view.get(peer);
        remote.is_some_and(|remote| remote.contact.observes)
    }

    /// In `Join`, with nothing under way: takes over what the others have decided, if they have.
    pub(super) fn follow(&mut self) {
        let (round, begun) = (self.cx.round, self.life.once.begun);
        let live = || self.cx.view.live();
        let furthest = live().max_by_key(|(id, remote)| (remote.round, *id));
        let Some((donor, newest)) = furthest.map(|(id, remote)| (id, remote.round)) else {
            return;
        };
        let agrees = self.cx.plan.exchange.agrees();
        let ended = self.cx.plan.rounds > 0 && newest.0 >= self.cx.plan.rounds;
        let rested = self.cx.now.since(self.life.once.followed) >= OBSERVE_EVERY;
        let ahead = live().filter(|(_, remote)| remote.round > round).count();
        // Where peers agree on nothing, their states differ in every round, and each costs a model.
        let due = agrees || ended || rested || !begun;
        if !self.believes(ahead) || !due {
            return;
        }
        self.stop_waiting_for_peers();
        self.life.once.followed = self.cx.now;
        if begun && agrees && newest.since(round) <= REPLAYED_MAX {
            // It has no delta of its own to keep.
            self.replay(donor, STALENESS_MAX);
        } else {
            self.ask_state();
        }
    }

    /// In `Join`: follows now, or when the others are ahead.
    pub(super) fn follow_later(&mut self) {
        self.follow();
        if self.catch_up.idle() {
            self.wait_for_peers(OBSERVE_EVERY.max(ALIVE_EVERY));
        }
    }

    /// A state is here or a round replayed: evaluates and saves if due, then follows on.
    pub(super) fn looked(&mut self) {
        self.life.once.begun = true;
        self.stop_waiting_for_peers();
        self.enter(Phase::Settle);
        self.settle();
        self.tell_alive();
    }
}
