//! Before the first round: when a peer begins. It waits until `start_with` peers are
//! here, itself included, and as many of them say the same, or until `start_wait` is over.

use crate::Round;
use crate::core::timers::Timer;
use crate::core::{Event, Phase, Wait};
use crate::peer::Peer;
use crate::wire::Muster;

impl Peer {
    /// In `Join`: begins when there is nothing to catch up with and enough peers are there.
    pub(super) fn try_begin(&mut self) {
        if self.phase != Phase::Join || !self.catch_up.idle() {
            return;
        }
        let exchanging = self.cx.plan.exchange.facts().exchanges;
        if exchanging && self.swarm_is_elsewhere() {
            self.cx.waited(Wait::Peers, false);
            self.cx.timers.stop(Timer::Join);
            self.ask_state();
            return;
        }
        let fresh = self.cx.round == Round(0);
        // A peer that comes back continues with peers that take part in rounds, or waits for them.
        let enough = if fresh {
            self.met() && self.others_met()
        } else {
            self.cx.view.live().next().is_some()
        };
        if !exchanging || enough {
            self.begin();
        } else if fresh && self.met() && !self.life.met {
            self.life.met = true;
            self.tell_alive();
        }
    }

    /// Whether as many others are here as a fresh run begins with.
    fn met(&self) -> bool {
        let others = self.cx.view.greeted().count();
        others + 1 >= self.cx.config.start_with && (others > 0 || !self.cx.config.join)
    }

    /// Whether the others have met as many too. A peer that begins before them would find them
    /// unready and exchange with few of them. Once one of them has begun, nothing is left to wait
    /// for.
    fn others_met(&self) -> bool {
        let others = || self.cx.view.greeted().map(|(_, remote)| remote.muster);
        let met = others().filter(|muster| *muster >= Muster::Met).count();
        met + 1 >= self.cx.config.start_with || others().any(|muster| muster == Muster::Begun)
    }

    /// How far this peer is on its way to its first round.
    pub(super) fn muster(&self) -> Muster {
        match self.phase {
            Phase::New | Phase::Join if self.cx.round == Round(0) => match self.met() {
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
        self.cx.view.live().any(|(_, remote)| {
            let other =
                agreed && remote.round == round && remote.anchor.is_some_and(|a| a != anchor);
            remote.round > round || (other && self.cx.config.join)
        })
    }

    /// No peer, or not enough peers, came in time.
    pub(super) fn join_expired(&mut self) {
        if self.phase != Phase::Join || !self.catch_up.idle() {
            return;
        }
        let alone = self.cx.view.greeted().next().is_none();
        let fresh = self.cx.round == Round(0);
        self.cx.waited(Wait::Peers, true);
        if alone && self.cx.config.join && fresh {
            let waited = self.cx.config.start_wait;
            self.cx.emit(Event::JoinFailed { waited });
            self.enter(Phase::Leaving);
            self.left();
        } else {
            self.begin();
        }
    }
}
