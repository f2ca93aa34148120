//! What a daemon says and does when its swarm is split and when the sides meet again.

use super::driver::Driver;
use crate::splits::SplitChange;
use murmurate_protocol::wire::PeerRecord;
use murmurate_protocol::{Event, Phase, Remote, Round};
use std::collections::BTreeSet;

impl Driver {
    /// Begins or ends a split that the daemon was started with.
    pub(super) fn split_on_request(&mut self, round: Round, phase: Phase) {
        match self.on_request.splits.due(round, phase) {
            None => {}
            Some(SplitChange::Cut(peers)) => {
                self.console.printer.split(round.0, peers.len());
                let _ = self.net.block(peers);
            }
            Some(SplitChange::Healed(peers)) => {
                self.console.printer.split(round.0, 0);
                let _ = self.net.block(BTreeSet::new());
                // The other end may have dialled in vain, and pauses. Whichever end comes last dials.
                let known = peers.iter().filter_map(|peer| self.peer.view().get(*peer));
                let records: Vec<PeerRecord> = known.filter_map(Remote::record).cloned().collect();
                for record in records {
                    let _ = self.net.dial(record);
                }
            }
        }
    }

    /// Says that the branches of a swarm that was split meet, and whether they are merged.
    pub(super) fn tell_of_branches(&mut self, event: &Event) {
        let printer = &mut self.console.printer;
        match event {
            Event::BranchesMet { base, weight, .. } => printer.note(&format!(
                "the swarm was split in round {base}, and daemons of another side are here: both \
                 sides are merged (weight of this side: {weight})"
            )),
            Event::Merged {
                round,
                digest,
                sides,
            } => printer.merged(round.0, digest, sides),
            Event::NotMerged { round, given_up } => printer.note(&match given_up {
                false => format!("round {round}: the sides could not be merged; trying again"),
                true => format!(
                    "round {round}: the sides are not merged, and one takes over the other's state"
                ),
            }),
            _ => {}
        }
    }
}
