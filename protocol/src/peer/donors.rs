//! Which peers a newcomer or a straggler asks for their state.

use crate::core::Wait;
use crate::limits::{DONORS_MAX, VIEW_PEERS_MAX};
use crate::peer::Peer;
use crate::peer::lag::CatchUp;
use crate::wire::TransferMessage;
use crate::{PeerId, Round};
use std::collections::{BTreeMap, BTreeSet};

impl Peer {
    /// Asks the peers that are furthest ahead for their state.
    pub(super) fn ask_state(&mut self) {
        self.drop_replay();
        let mut donors = self.helpful();
        donors.truncate(self.donors_max());
        donors.sort_unstable();
        if donors.is_empty() {
            self.give_up_catching_up();
            return;
        }
        self.cx.waited(Wait::State, true);
        self.send_asks(&donors);
        self.wait_for_state(self.cx.deadlines.answer() * 4);
        self.catch_up = CatchUp::Asking {
            asked: donors.into_iter().collect(),
            offers: BTreeMap::new(),
        };
    }

    /// While donors are asked: asks those too that were met since. A newcomer often asks the first
    /// peer that it meets, and the chunks of a state come faster from several.
    pub(super) fn ask_more_donors(&mut self) {
        let CatchUp::Asking { asked, offers } = &self.catch_up else {
            return;
        };
        // A straggler has met them all. In a grid a column may wait for this peer, and the slowest of
        // several donors takes longer to answer than one.
        if self.life.once.begun || self.has_rolls() {
            return;
        }
        let known: BTreeSet<PeerId> = asked
            .iter()
            .chain(offers.values().flatten())
            .copied()
            .collect();
        let mut more = self.helpful();
        more.retain(|peer| !known.contains(peer));
        more.truncate(self.donors_max().saturating_sub(known.len()));
        self.send_asks(&more);
        if let CatchUp::Asking { asked, .. } = &mut self.catch_up {
            asked.extend(more);
        }
    }

    /// Peers that can help, the furthest ahead first. Only those that failed to help least often
    /// count: a peer that claims to be ahead and never helps must not be asked for ever.
    fn helpful(&self) -> Vec<PeerId> {
        let at_rest = self.holders_at_rest();
        let ready = self.cx.view.of_this_branch();
        let ready = ready.filter(|(id, r)| r.ready || at_rest.contains(id));
        let donors: Vec<(u32, Round, PeerId)> = ready
            .map(|(id, r)| (self.in_vain(id), r.round, id))
            .collect();
        let least = donors.iter().map(|(vain, ..)| *vain).min();
        let donors = donors.into_iter().filter(|(vain, ..)| Some(*vain) == least);
        let mut donors: Vec<(Round, PeerId)> = donors.map(|(_, round, id)| (round, id)).collect();
        donors.sort_by_key(|(round, id)| (std::cmp::Reverse(*round), *id));
        // A state that opens an earlier round would mean more rounds to replay. Those that may lie do
        // not count, however far ahead they claim to be.
        let liars = match at_rest.is_empty() {
            true => self.liars(),
            false => 0,
        };
        let newest = donors.get(liars.min(donors.len().saturating_sub(1)));
        let newest = newest.map(|(round, _)| *round);
        donors.retain(|(round, _)| Some(round.next()) >= newest);
        donors.into_iter().map(|(_, id)| id).collect()
    }

    /// How many donors are asked: more than those that may lie.
    fn donors_max(&self) -> usize {
        DONORS_MAX.max(self.liars() + 1)
    }

    fn send_asks(&mut self, donors: &[PeerId]) {
        let at_least = self.oldest_wanted();
        for peer in donors {
            self.cx.send(*peer, TransferMessage::StateAsk { at_least });
        }
    }

    /// How often a peer failed to help in this catch-up.
    pub(super) fn in_vain(&self, peer: PeerId) -> u32 {
        self.helpers.vain.get(&peer).copied().unwrap_or(0)
    }

    /// These peers did not help.
    pub(super) fn blame_donors(&mut self, donors: impl IntoIterator<Item = PeerId>) {
        for peer in donors {
            let vain = &mut self.helpers.vain;
            if vain.len() < VIEW_PEERS_MAX || vain.contains_key(&peer) {
                let vain = vain.entry(peer).or_default();
                *vain = vain.saturating_add(1);
            }
        }
    }
}
