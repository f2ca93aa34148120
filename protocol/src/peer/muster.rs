//! Before the first round of a life: when a peer begins, and with which state.
//!
//! A fresh peer waits until `start_with` peers are here, itself included, and as many of them say
//! the same. A peer with a checkpoint joins a run that is under way at once. If no run is under way,
//! the whole swarm was restarted: it waits for the peers that it trained with. Those that hold the
//! newest state begin; the others take that state over.

use crate::core::timers::Timer;
use crate::core::{Event, Phase, Wait};
use crate::limits::{COMPANIONS_WAIT, MISSING_AGAIN_MAX};
use crate::peer::Peer;
use crate::peer::life::{Missing, Patience};
use crate::peer::resting::Standing;
use crate::wire::Muster;
use crate::{PeerId, Round};
use core::time::Duration;

impl Peer {
    /// [`Peer::try_begin`] after a message of another peer. A peer of a grid hears hundreds of them, and
    /// looks at all its mates again only where what it waits for may have come.
    pub(super) fn try_begin_with(&mut self, from: PeerId) {
        if self.phase == Phase::Paused {
            self.catch_up_in_a_pause();
            return;
        }
        if self.phase != Phase::Join || (self.waits_for_a_mate() && self.says_nothing_new(from)) {
            return;
        }
        self.try_begin();
        if self.phase == Phase::Join {
            self.life.once.waits_for = self.missing_mate();
        }
    }

    /// Whether what this peer last waited for is still missing.
    fn waits_for_a_mate(&self) -> bool {
        let plain = self.waits_for_all_mates() && self.fresh() && !self.cx.plan.agreement.signs();
        plain
            && match self.life.once.waits_for {
                Some(Missing::Link(mate)) => !self.is_here(mate),
                Some(Missing::Met(mate)) => self.is_here(mate) && !self.has_met(mate),
                None => false,
            }
    }

    /// Whether a peer waits for its first round as this one does.
    fn says_nothing_new(&self, from: PeerId) -> bool {
        let same = |anchor| anchor == self.cx.anchor() || !self.cx.config.join;
        self.cx.view.get(from).is_some_and(|remote| {
            let rests = remote.muster != Muster::Begun && remote.round == self.cx.round;
            rests && remote.anchor.is_none_or(same)
        })
    }

    /// Whether this peer of a grid begins when all its mates are here and say the same.
    fn waits_for_all_mates(&self) -> bool {
        self.life.once.patience == Patience::ForAll && self.sits()
    }

    fn has_met(&self, peer: PeerId) -> bool {
        let remote = self.cx.view.get(peer);
        remote.is_some_and(|remote| remote.muster >= Muster::Met)
    }

    /// Mates in a grid that are not here, or have not met theirs.
    pub(super) fn missing_mates(&self) -> Vec<PeerId> {
        if !self.waits_for_all_mates() {
            return Vec::new();
        }
        let mates = self.cx.rolls.mates.iter().copied();
        let missing = mates.filter(|peer| !self.is_here(*peer) || !self.has_met(*peer));
        missing.collect()
    }

    fn missing_mate(&self) -> Option<Missing> {
        if !self.waits_for_all_mates() {
            return None;
        }
        let mates = || self.cx.rolls.mates.iter().copied();
        let absent = mates().find(|peer| !self.is_here(*peer));
        let unmet = || mates().find(|peer| !self.has_met(*peer));
        absent
            .map(Missing::Link)
            .or_else(|| unmet().map(Missing::Met))
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
        self.ask_about_rest();
        if self.cannot_tell() {
            return;
        }
        let fresh = self.fresh();
        let enough = if !fresh && (self.life.once.begun || self.under_way()) {
            // A peer that comes back continues with peers that take part in rounds, or waits for
            // them.
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

    /// Whether this peer goes back to the state of those that are in rounds: too few know its own.
    fn returns(&self) -> bool {
        self.under_way() && self.is_refuted()
    }

    fn take_over(&mut self) {
        self.stop_waiting_for_peers();
        self.ask_state();
    }

    /// What it waited for other peers for is here.
    pub(super) fn stop_waiting_for_peers(&mut self) {
        self.cx.waited(Wait::Peers, false);
        self.cx.timers.stop(Timer::Join);
    }

    fn fresh(&self) -> bool {
        self.cx.round == Round(0)
    }

    /// Whether this peer waits for its first round with a state that it can give to others.
    pub(super) fn at_rest(&self) -> bool {
        self.phase == Phase::Join && !self.life.once.begun && self.catch_up.idle()
    }

    /// Whether some peer has begun and takes part in rounds.
    pub(super) fn under_way(&self) -> bool {
        let live = self.cx.view.live();
        let begun = live.filter(|(_, remote)| remote.muster == Muster::Begun);
        begun.count() > self.liars()
    }

    /// How many peers, this one included, it waits for.
    fn wanted(&self) -> usize {
        let most = |peers: usize| peers / 2 + 1;
        if self.sits() {
            let (_, mates) = self.mates_here();
            return match self.life.once.patience {
                Patience::ForAll => 1 + mates,
                _ => most(1 + mates),
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
        match self.sits() {
            true => 1 + self.mates_here().0,
            false => 1 + self.cx.view.greeted().count(),
        }
    }

    /// Whether as many others are here as this peer begins with.
    fn met(&self) -> bool {
        let alone = match self.fresh() {
            true => !self.cx.config.join,
            // Without a companion it may still be found by others.
            false => match self.life.once.patience {
                Patience::ForAll => false,
                Patience::ForMost => !self.cx.config.join,
                Patience::Over => true,
            },
        };
        if self.waits_for_all_mates() {
            // The first that is missing answers it.
            return self.all_mates_here() && (alone || !self.cx.rolls.mates.is_empty());
        }
        let here = self.here();
        here >= self.wanted() && (here > 1 || alone)
    }

    /// Whether the others have met as many too. A peer that begins before them would find them
    /// unready and exchange with few of them. Once one of them has begun, nothing is left to wait
    /// for.
    fn others_met(&self) -> bool {
        if self.waits_for_all_mates() {
            let mut mates = self.cx.rolls.mates.iter();
            let mut others = self.cx.view.greeted();
            return mates.all(|peer| self.has_met(*peer))
                || others.any(|(_, remote)| remote.muster == Muster::Begun);
        }
        let others = || self.cx.view.greeted().map(|(_, remote)| remote.muster);
        let met = others().filter(|muster| *muster >= Muster::Met).count();
        met + 1 >= self.wanted() || others().any(|muster| muster == Muster::Begun)
    }

    /// How far this peer is on its way to its first round.
    pub(super) fn muster(&self) -> Muster {
        match self.phase {
            Phase::New | Phase::Join if !self.life.once.begun => match self.met() {
                true => Muster::Met,
                false => Muster::Waiting,
            },
            _ => Muster::Begun,
        }
    }

    /// Whether some peer takes part in rounds from another state than this peer's.
    fn swarm_is_elsewhere(&self) -> bool {
        let (round, anchor) = (self.cx.round, self.cx.anchor());
        let agreed = self.cx.plan.exchange.agrees();
        let elsewhere = self.cx.view.live().filter(|(_, remote)| {
            let other =
                agreed && remote.round == round && remote.anchor.is_some_and(|a| a != anchor);
            remote.round > round || (other && self.cx.config.join)
        });
        elsewhere.count() > self.liars()
    }

    /// Whether some peers say that the run is under way elsewhere, and too few are there to believe or
    /// to contradict them.
    fn cannot_tell(&self) -> bool {
        let (liars, round) = (self.liars(), self.cx.round);
        let live = || self.cx.view.live();
        let ahead = live().filter(|(_, remote)| remote.round > round).count();
        let others = live().count() - ahead;
        !self.life.once.begun && ahead > 0 && ahead <= liars && others <= liars
    }

    /// No peer, or not enough peers, came in time.
    pub(super) fn join_expired(&mut self) {
        if self.phase != Phase::Join || !self.catch_up.idle() {
            // A catch-up has clocks of its own.
            self.cx.waited(Wait::Peers, true);
            return;
        }
        let lonely = self.here() == 1 && self.cx.config.join && self.fresh();
        if self.only_follows() && !lonely {
            self.follow_later();
            return;
        }
        if self.life.once.begun {
            self.cx.waited(Wait::Peers, true);
            self.begin();
            return;
        }
        let waited = self.cx.now.since(self.life.started);
        let fresh = self.fresh();
        if lonely {
            self.cx.waited(Wait::Peers, true);
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
        self.life.once.patience = match fresh || waited >= self.cx.config.start_wait {
            true => Patience::Over,
            false => Patience::ForMost,
        };
        let clear = self.standing() != Standing::Unclear || self.returns();
        // A round without a roll is a round with no other peer, and the founding ends with the first rounds.
        let founded = !fresh || !self.has_rolls() || self.cx.rolls.roll.is_some();
        if self.met() && clear && founded {
            self.cx.waited(Wait::Peers, true);
            self.begin_or_take_over();
            return;
        }
        let (here, wanted) = (self.here(), self.wanted());
        self.cx.emit(match self.met() {
            true => Event::Unconfirmed {
                round: self.cx.round,
            },
            false => Event::Missing {
                here,
                wanted,
                waited,
            },
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
        self.wait_for_peers(match self.fresh() {
            true => start_wait,
            false => start_wait.min(COMPANIONS_WAIT),
        });
    }

    pub(super) fn wait_for_peers(&mut self, allowed: Duration) {
        let deadline = self.cx.wait(Wait::Peers, allowed);
        self.cx.timers.set(Timer::Join, deadline);
    }
}
