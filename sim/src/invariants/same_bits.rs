//! All-reduce: all members of a group that apply its decision hold the same bits.
//!
//! Where members do not sign, two groups of one round are compared separately: if links were down or messages lost,
//! both sides continue and settle the difference when they meet, which the end of a run checks. Where members sign,
//! a round has one result in all groups of peers that were once in a group with all: before that, a part of the swarm
//! may not know that there are others. A peer whose
//! round was void kept its anchor and is not compared. A decision that only dead peers know does
//! not bind the others: a peer that is left alone decides again.

use murmurate_protocol::{Digest, Event, PeerId, Round};
use std::collections::{BTreeMap, BTreeSet};

/// Number of groups to remember. No peer may end an older round.
const WINDOW: usize = 1024;

type Group = (Round, Vec<PeerId>);

/// The final digests of groups.
#[derive(Debug)]
pub(super) struct SameBits {
    digests: BTreeMap<Group, BTreeMap<usize, Digest>>,
    groups: BTreeMap<usize, Group>,
    voided: BTreeMap<usize, Round>,
    /// The last round of each peer whose group agreed that it is void.
    void_agreed: BTreeMap<usize, Round>,
    /// Where groups of one round are compared too, the size of a group of all: those whose members sign decide one
    /// result, unless machines are gone for long.
    across: Option<usize>,
    /// The peers that were in a group of all.
    met: BTreeSet<usize>,
}

impl SameBits {
    pub(super) const fn new(across: Option<usize>) -> Self {
        Self {
            digests: BTreeMap::new(),
            groups: BTreeMap::new(),
            voided: BTreeMap::new(),
            void_agreed: BTreeMap::new(),
            across,
            met: BTreeSet::new(),
        }
    }

    /// Forgets a peer.
    pub(super) fn gone(&mut self, index: usize) {
        self.groups.remove(&index);
        for ended in self.digests.values_mut() {
            ended.remove(&index);
        }
    }

    /// Notes that a peer gives up a round.
    pub(super) fn voided(&mut self, index: usize, round: Round) {
        self.voided.insert(index, round);
    }

    pub(super) fn check(&mut self, index: usize, event: &Event) -> Result<(), String> {
        match event {
            Event::Group { round, members } => {
                if self.across.is_some_and(|all| members.len() >= all) {
                    self.met.insert(index);
                }
                let members = if self.met.contains(&index) {
                    Vec::new()
                } else {
                    members.clone()
                };
                self.groups.insert(index, (*round, members));
                // What it gave up was an earlier attempt.
                self.voided.remove(&index);
                self.void_agreed.remove(&index);
                Ok(())
            }
            // Peers with the same roll, anchor and round exchange together.
            Event::Seated { round, state, .. } => {
                let together = PeerId::from_bytes(*state.as_bytes());
                self.groups.insert(index, (*round, vec![together]));
                Ok(())
            }
            Event::Voided { round, .. } => {
                self.voided.insert(index, *round);
                self.void_agreed.insert(index, *round);
                Ok(())
            }
            Event::RoundEnded { round, digest, .. } => self.ended(index, *round, *digest),
            _ => Ok(()),
        }
    }

    fn ended(&mut self, index: usize, round: Round, digest: Digest) -> Result<(), String> {
        let group = self.groups.remove(&index).filter(|(r, _)| *r == round);
        let void = self.voided.get(&index) == Some(&round);
        // Groups that survive liars agree that a round is void.
        let agreed = self.across.is_some() && self.void_agreed.get(&index) == Some(&round);
        let Some(group) = group.filter(|_| agreed || !void) else {
            return Ok(());
        };
        let ended = self.digests.entry(group).or_default();
        // Those that ended it before hold the same bits, or the run was over by now: one of them tells.
        let mut others = ended.iter().filter(|(peer, _)| **peer != index);
        let other = others.next().filter(|(_, theirs)| **theirs != digest);
        let other = other.map(|(peer, theirs)| (*peer, *theirs));
        ended.insert(index, digest);
        if self.digests.len() > WINDOW {
            self.digests.pop_first();
        }
        match other {
            None => Ok(()),
            Some((peer, theirs)) => Err(format!(
                "ended round {round} with {digest}, peer {peer} of the same group with {theirs}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(round: u64, members: &[u8]) -> Event {
        let members = members
            .iter()
            .map(|m| PeerId::from_bytes([*m; 32]))
            .collect();
        Event::Group {
            round: Round(round),
            members,
        }
    }

    fn ended(round: u64, byte: u8) -> Event {
        Event::RoundEnded {
            round: Round(round),
            digest: Digest::from_bytes([byte; 32]),
            seconds: 0.0,
        }
    }

    #[test]
    fn a_member_with_other_bits_is_found() {
        let mut bits = SameBits::new(None);
        for (peer, event, good) in [
            (0, group(0, &[0, 1]), true),
            (1, group(0, &[0, 1]), true),
            (0, ended(0, 1), true),
            (1, ended(0, 1), true),
            (0, group(1, &[0, 1]), true),
            (1, group(1, &[0, 1]), true),
            (2, group(1, &[2]), true),
            (0, ended(1, 2), true),
            (2, ended(1, 7), true),
            (1, ended(1, 3), false),
        ] {
            assert_eq!(bits.check(peer, &event).is_ok(), good, "{peer} {event:?}");
        }
    }

    #[test]
    fn decisions_of_the_dead_and_void_rounds_do_not_bind() {
        let mut bits = SameBits::new(None);
        for peer in 0..3 {
            bits.check(peer, &group(4, &[0, 1, 2])).unwrap();
        }
        bits.check(0, &ended(4, 1)).unwrap();
        bits.gone(0);
        bits.voided(1, Round(4));
        bits.check(1, &ended(4, 2)).unwrap();
        bits.check(2, &ended(4, 3)).unwrap();
    }
}
