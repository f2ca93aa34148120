//! Bounded lead: no peer begins a round while a peer that it waits for is more than `lead` rounds
//! behind.
//!
//! A peer waits for the peers that are linked, take part, and did not miss a deadline.

use murmurate_protocol::{Peer, PeerId, Round, SortedMap};

/// The actual rounds of the machines.
#[derive(Debug)]
pub(super) struct LeadBounded {
    lead: u64,
    rounds: SortedMap<PeerId, Round>,
}

impl LeadBounded {
    pub(super) const fn new(lead: u32) -> Self {
        Self {
            lead: lead as u64,
            rounds: SortedMap::new(),
        }
    }

    /// Forgets a machine.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.rounds.remove(&peer);
    }

    /// Checks a peer after an input.
    pub(super) fn check(&mut self, me: PeerId, peer: &Peer) -> Result<(), String> {
        let others = peer.view().live().filter(|(_, r)| !r.probation);
        let others = others.map(|(id, _)| id);
        self.moved(me, peer.round(), others)
    }

    fn moved(
        &mut self,
        me: PeerId,
        round: Round,
        others: impl Iterator<Item = PeerId>,
    ) -> Result<(), String> {
        let last = self.rounds.insert(me, round);
        // A peer that took a state over, or a straggler that caught up, jumps to the others' round.
        if last.is_none_or(|last| last.next() != round) {
            return Ok(());
        }
        for other in others {
            let Some(behind) = self.rounds.get(&other) else {
                continue;
            };
            let lead = round.since(*behind);
            if lead > self.lead {
                return Err(format!(
                    "began round {round}, {lead} ahead of {other} in round {behind}: at most {} may be",
                    self.lead
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_too_far_is_found() {
        let [a, b] = [1, 2].map(|id| PeerId::from_bytes([id; 32]));
        let mut lead = LeadBounded::new(2);
        assert!(lead.moved(b, Round(0), [a].into_iter()).is_ok());
        for round in 0..=2 {
            assert!(lead.moved(a, Round(round), [b].into_iter()).is_ok());
        }
        assert!(lead.moved(a, Round(3), [b].into_iter()).is_err());
        lead.gone(b);
        assert!(lead.moved(a, Round(4), [b].into_iter()).is_ok());
    }
}
