//! Members that are given up in a round.

use super::Agreed;
use super::fragment::FragmentRound;
use crate::core::context::Context;
use crate::{Members, PeerId};

impl Agreed {
    /// A member's link is gone, or it is in another group: no fragment waits for it.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        for fragment_round in &mut self.fragment_rounds {
            if let Some(index) = fragment_round.scope.group.index(peer) {
                fragment_round.give_up(Members::one(index));
                fragment_round.advance(cx);
            }
        }
        self.early.drop_of(cx, peer);
    }

    /// A member that was given up in one fragment is given up in all. Giving up may end the wait
    /// for more members, so this repeats until nothing changes.
    pub(super) fn share_losses(&mut self, cx: &mut Context) {
        loop {
            for fragment_round in &self.fragment_rounds {
                self.lost |= fragment_round
                    .scope
                    .group
                    .all()
                    .without(fragment_round.hopeful);
            }
            let lost = self.lost;
            let hopes = |b: &&mut FragmentRound| !b.over() && !(b.hopeful & lost).is_empty();
            let mut hopeful = self.fragment_rounds.iter_mut().filter(hopes).peekable();
            if hopeful.peek().is_none() {
                return;
            }
            for fragment_round in hopeful {
                fragment_round.give_up(lost);
                fragment_round.advance(cx);
            }
        }
    }
}
