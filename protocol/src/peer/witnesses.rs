//! How many peers must say the same before this one believes it, and which of them helped in vain.
//!
//! Links are authenticated. So what `liars + 1` linked peers say, at least one says that does not lie.

use crate::Round;
use crate::peer::Peer;
use crate::peer::lag::CatchUp;
use core::time::Duration;
use std::collections::BTreeMap;

/// Doublings of the pause after a catch-up whose bytes were wrong.
const PAUSE_DOUBLINGS_MAX: u32 = 4;

impl Peer {
    /// How many of the peers that take part may lie. Until a peer has met the run it may have met
    /// liars only, so for a while it counts all peers that it knows of.
    pub(super) fn liars(&self) -> usize {
        let greeted = 1 + self.cx.view.greeted().count();
        let config = &self.cx.config;
        let young =
            !self.life.once.begun && self.cx.now.since(self.life.started) < config.start_wait;
        let members = match young {
            true => {
                let known = self.cx.view.iter().filter(|(_, r)| !r.banned).count() + 1;
                let expected = config.start_with.max(config.companions + 1);
                greeted.max(known).max(expected)
            }
            false => greeted,
        };
        // Its first links may be all liars that the run allows for.
        let fewest = match self.cx.plan.false_donors() {
            u16::MAX => 1,
            liars => usize::from(liars),
        };
        let liars = match self.cx.plan.false_donors() {
            0 => 0,
            _ => self.cx.plan.liars_of(members),
        };
        if young { liars.max(fewest) } else { liars }
    }

    /// Whether more live peers are ahead of this one than may lie.
    pub(super) fn others_are_ahead(&self) -> bool {
        let round = self.cx.round;
        let ahead = self.cx.view.live().filter(|(_, r)| r.round > round);
        ahead.count() > self.liars()
    }

    /// The newest round that one of these peers is in which does not lie.
    pub(super) fn believed_round(&self, rounds: impl Iterator<Item = Round>) -> Option<Round> {
        let mut rounds: Vec<Round> = rounds.collect();
        rounds.sort_unstable_by_key(|round| core::cmp::Reverse(*round));
        rounds.get(self.liars()).copied()
    }

    /// Bytes of a catch-up were missing or wrong: asks others at once, and the same ones only after
    /// a pause that grows.
    pub(super) fn ask_others(&mut self) {
        self.drop_replay();
        let ready = self.cx.view.greeted().filter(|(_, r)| r.ready);
        let fresh = ready.map(|(id, _)| self.in_vain(id)).min() == Some(0);
        if fresh {
            self.ask_state();
            return;
        }
        let pause = self.cx.deadlines.answer() * (1 << self.witnesses.failures);
        self.witnesses.failures = (self.witnesses.failures + 1).min(PAUSE_DOUBLINGS_MAX);
        self.ask_later(pause);
    }

    /// Asks for a state once this time has passed.
    pub(super) fn ask_later(&mut self, pause: Duration) {
        self.catch_up = CatchUp::Asking {
            asked: Default::default(),
            offers: BTreeMap::new(),
        };
        self.wait_for_state(pause);
    }
}
