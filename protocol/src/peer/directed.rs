//! What the owner of the run changes while it trains.
//!
//! A change of the training is in force from the beginning of its round on. A pause holds a peer between two
//! rounds, in a phase of its own: it waits for no one, so no deadline passes, and it still answers, gives its
//! state to newcomers, and catches up with peers that had gone further before they heard of the pause.

use crate::core::timers::Timer;
use crate::core::{Event, Phase};
use crate::peer::Peer;
use crate::{Directive, Directives, InForce, PeerId};

impl Peer {
    /// The owner's directives that count.
    pub fn directives(&self) -> &Directives {
        self.cx.directed.all()
    }

    /// What is in force in this peer's round.
    pub fn in_force(&self) -> &InForce {
        self.cx.directed.in_force()
    }

    /// The host knows these directives of the owner.
    pub(super) fn directed(&mut self, directives: Vec<Directive>) {
        let new = self.cx.direct(directives);
        if new.is_empty() {
            return;
        }
        let round = self.cx.round;
        for directive in new {
            self.cx.emit(Event::Directed { round, directive });
        }
        match self.phase {
            Phase::Paused if !self.holds() => self.next_round(),
            Phase::Finished if !self.is_over() => self.train_on(),
            _ => {}
        }
    }

    /// Whether all rounds are done.
    pub(super) fn is_over(&self) -> bool {
        let rounds = self.cx.plan.rounds;
        rounds > 0 && self.cx.round.0 >= rounds
    }

    /// Whether this peer begins no round.
    pub(super) fn holds(&self) -> bool {
        !self.is_over() && self.cx.directed.pauses(self.cx.round)
    }

    /// Between two rounds, while the owner has paused the run.
    pub(super) fn pause(&mut self) {
        if self.phase != Phase::Paused {
            self.enter(Phase::Paused);
            self.tell_alive();
        }
    }

    /// The owner has added rounds to a run that was over.
    fn train_on(&mut self) {
        self.cx.timers.stop(Timer::Linger);
        self.enter(Phase::Join);
        self.begin();
    }

    /// In a pause: others went further before they heard of it. What they have decided is taken over.
    pub(super) fn catch_up_in_a_pause(&mut self) {
        if !self.cx.plan.exchange.agrees() {
            return;
        }
        let round = self.cx.round;
        let further = || self.cx.view.live().filter(|(_, r)| r.round > round);
        let furthest = further().max_by_key(|(id, r)| (r.round, *id));
        let furthest: Option<PeerId> = furthest.map(|(id, _)| id);
        if let Some(teller) = furthest.filter(|_| further().count() > self.liars()) {
            self.enter(Phase::Join);
            self.fall_behind(teller, false);
        }
    }
}
