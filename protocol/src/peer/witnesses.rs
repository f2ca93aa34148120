//! How many peers must say the same before this one believes it, and whether an offered state is the
//! run's.
//!
//! Links are authenticated. So what `liars + 1` linked peers say, at least one says that does not lie.

use crate::core::timers::Timer;
use crate::core::{Output, Phase, Wait};
use crate::limits::VOUCHERS_SOUGHT_MAX;
use crate::peer::Peer;
use crate::peer::lag::{CatchUp, Helpers, Offer, Vouching};
use crate::wire::TransferMessage;
use crate::{Base, Digest, PeerId, Round};
use core::time::Duration;
use std::collections::BTreeMap;

/// Doublings of the pause after a catch-up whose bytes were wrong.
const PAUSE_DOUBLINGS_MAX: u32 = 4;

impl Peer {
    /// How many of the peers that take part may lie. Until a peer has met the run it may have met
    /// liars only, so for a while it counts all peers that it knows of.
    pub(super) fn liars(&self) -> usize {
        if !self.cx.plan.agreement.signs() {
            return 0;
        }
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
        let fewest = match self.cx.plan.agreement.liars {
            u16::MAX => 1,
            liars => usize::from(liars),
        };
        let liars = self.cx.plan.liars_of(members);
        if young { liars.max(fewest) } else { liars }
    }

    /// Asks the others whether an offered state is the run's.
    pub(super) fn seek_vouchers(&mut self, offer: Offer, donors: Vec<PeerId>) {
        self.catch_up = CatchUp::Vouching(Vouching {
            offer,
            donors,
            said: BTreeMap::new(),
            asked: 0,
        });
        self.seek_again();
    }

    /// Asks those that have not answered, because they have not reached the state's round or a message
    /// was lost. After some times its donors have helped in vain.
    pub(super) fn seek_again(&mut self) {
        let CatchUp::Vouching(vouching) = &mut self.catch_up else {
            return;
        };
        if vouching.asked >= VOUCHERS_SOUGHT_MAX {
            let donors = std::mem::take(&mut vouching.donors);
            self.blame_donors(donors);
            self.ask_others();
            return;
        }
        vouching.asked += 1;
        let round = vouching.offer.state.round;
        let silent = self.cx.view.greeted().map(|(id, _)| id);
        let silent = silent.filter(|id| !vouching.said.contains_key(id));
        for peer in silent.collect::<Vec<_>>() {
            self.cx.send(peer, TransferMessage::AnchorAsk { round });
        }
        self.wait_for_state(self.cx.deadlines.answer());
    }

    /// Another peer asks with which parameters a round began here.
    pub(super) fn anchor_asked(&mut self, from: PeerId, round: Round) {
        let anchor = self.began(round);
        self.cx
            .send(from, TransferMessage::Anchor { round, anchor });
    }

    /// A peer says with which parameters it began a round, or that it did not begin it.
    pub(super) fn anchor_said(&mut self, from: PeerId, round: Round, anchor: Option<Digest>) {
        self.rest_answered(from, round, anchor);
        let (liars, Some(anchor)) = (self.liars(), anchor) else {
            return;
        };
        let CatchUp::Vouching(vouching) = &mut self.catch_up else {
            return;
        };
        if vouching.offer.state.round != round {
            return;
        }
        vouching.said.insert(from, anchor);
        let count = |true_anchor: bool| {
            let said = vouching.said.values();
            let same = said.filter(|said| (**said == vouching.offer.anchor) == true_anchor);
            same.count()
        };
        let (vouch, deny) = (count(true), count(false));
        if vouch > liars {
            let (offer, donors) = (vouching.offer, std::mem::take(&mut vouching.donors));
            self.fetch_state(offer, donors);
        } else if deny > liars {
            let donors = std::mem::take(&mut vouching.donors);
            self.blame_donors(donors);
            self.ask_others();
        }
    }

    /// A round begins here from a state that this peer has by its own work, or for which others have
    /// vouched: it vouches for it too.
    pub(super) fn remember_opening(&mut self) {
        if !self.cx.plan.agreement.signs() {
            return;
        }
        let opening = Base {
            round: self.cx.round,
            anchor: self.cx.anchor(),
        };
        if self.donor.opened.back() != Some(&opening) {
            self.donor.open(opening);
            self.cx.put(Output::Opened(opening));
        }
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
        if self.liars() > 0 && self.life.once.begun && self.helpers.failures > 0 {
            // Each that could help has failed to. This peer goes on with what it has; should that be
            // wrong, more than may lie will say so.
            self.give_up_on_others();
            return;
        }
        let pause = self.cx.deadlines.answer() * (1 << self.helpers.failures);
        self.helpers.failures = (self.helpers.failures + 1).min(PAUSE_DOUBLINGS_MAX);
        self.ask_later(pause);
    }

    fn give_up_on_others(&mut self) {
        self.catch_up = CatchUp::Idle;
        self.helpers = Helpers::default();
        self.cx.timers.stop(Timer::CatchUp);
        self.cx.waited(Wait::State, true);
        self.cx.this_life.newcomer = true;
        if self.phase == Phase::Join {
            self.begin();
        }
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
