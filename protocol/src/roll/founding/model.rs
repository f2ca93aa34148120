//! All schedules of two founders, each of which proposes twice to three registrars.
//!
//! The model has no network: a request can reach a registrar at any time, more than once, or
//! never. A promise reaches its founder at once or never; later would be as if the founder asked
//! later. What a registrar accepts is counted at once, because it stays accepted.
//!
//! The registrars and founders are the [`Acceptor`] and [`Proposal`] of the code. The four ballots
//! are (1, A), (1, B), (2, A), (2, B); the proposals of a founder go on beside each other, which
//! allows more than the code does.

use super::{Acceptor, FoundingBallot, Proposal, RollName, quorum};
use crate::sorted::SortedSet;
use crate::{Digest, PeerId};
use std::collections::BTreeSet;
use std::ops::Range;

const BALLOTS: usize = 4;

#[derive(Clone)]
struct Model {
    /// The registrars of each founder.
    registrars: [Range<u8>; 2],
    /// How many of them decide.
    quorum: [usize; 2],
    /// Set if a founder proposes its own roll whatever the registrars have accepted.
    forgets: bool,
    /// Set if a registrar may accept below its promise.
    slips: bool,
}

#[derive(Clone)]
struct State {
    acceptors: Vec<Acceptor>,
    proposals: Vec<Proposal>,
}

fn peer(registrar: u8) -> PeerId {
    PeerId::from_bytes([registrar; 32])
}

/// The roll that a founder proposes of itself.
fn own(founder: usize) -> RollName {
    RollName {
        digest: Digest::from_bytes([founder as u8; 32]),
        peers: 3,
    }
}

/// The founder of a proposal.
const fn founder(proposal: usize) -> usize {
    proposal % 2
}

impl Model {
    fn start(&self) -> State {
        let proposal = |index: usize| {
            let founder = founder(index);
            let ballot = FoundingBallot {
                number: 1 + index as u32 / 2,
                founder: Some(peer(founder as u8)),
            };
            let registrars: SortedSet<PeerId> =
                self.registrars[founder].clone().map(peer).collect();
            Proposal::new(ballot, Some(own(founder)), registrars, self.quorum[founder])
        };
        let count = self.registrars[0].end.max(self.registrars[1].end);
        State {
            acceptors: vec![Acceptor::default(); usize::from(count)],
            proposals: (0..BALLOTS).map(proposal).collect(),
        }
    }

    /// Every state that one step of one registrar leads to.
    fn steps(&self, state: &State, mut next: impl FnMut(State)) {
        for index in 0..BALLOTS {
            let ballot = state.proposals[index].ballot;
            for registrar in self.registrars[founder(index)].clone() {
                let at = usize::from(registrar);
                let mut after = state.clone();
                if after.acceptors[at].prepare(ballot) {
                    let accepted = after.acceptors[at].accepted;
                    next(after.clone());
                    let proposal = &mut after.proposals[index];
                    if proposal.promised(peer(registrar), accepted).is_some() && self.forgets {
                        proposal.value = proposal.own;
                    }
                    next(after);
                }
                let Some(roll) = state.proposals[index].value else {
                    continue;
                };
                let mut after = state.clone();
                let acceptor = &mut after.acceptors[at];
                if self.slips {
                    acceptor.promised = FoundingBallot::default();
                }
                if acceptor.accept(ballot, roll) {
                    after.proposals[index].accepted(peer(registrar));
                    next(after);
                }
            }
        }
    }

    /// All that matters about a state, in a number: which promises a proposal has only matters until it
    /// has a value.
    fn key(&self, state: &State) -> u128 {
        let of = |ballot: FoundingBallot| {
            let mut all = state.proposals.iter();
            all.position(|p| p.ballot == ballot)
                .map_or(0, |n| n as u128 + 1)
        };
        let value = |roll: Option<RollName>| roll.map_or(0, |r| 1 + u128::from(r == own(1)));
        let mut key = 0;
        for acceptor in &state.acceptors {
            key = key << 3 | of(acceptor.promised);
            key = key << 3 | acceptor.accepted.map_or(0, |(ballot, _)| of(ballot));
        }
        for proposal in &state.proposals {
            let open = proposal.value.is_none();
            let promises = proposal.promises.iter().filter(|_| open);
            let bit = |peer: &PeerId| 1u128 << peer.as_bytes()[0];
            let mask: u128 = promises.clone().map(|(peer, _)| bit(peer)).sum();
            let highest = promises.filter_map(|(_, accepted)| accepted.as_ref()).max();
            let accepted: u128 = proposal.accepted.iter().map(bit).sum();
            key = key << 5 | mask;
            key = key << 3 | highest.map_or(0, |(ballot, _)| of(*ballot));
            key = key << 2 | value(proposal.value);
            key = key << 5 | accepted;
        }
        key
    }

    /// Goes through all states: how many there are, and whether both rolls are chosen in one.
    fn explore(&self) -> (usize, bool) {
        let start = self.start();
        let mut seen = BTreeSet::from([self.key(&start)]);
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            let is_chosen = |p: &&Proposal| p.accepted.len() >= p.quorum;
            let chosen = state.proposals.iter().filter(is_chosen);
            let chosen: SortedSet<RollName> = chosen.filter_map(|p| p.value).collect();
            if chosen.len() > 1 {
                return (seen.len(), true);
            }
            self.steps(&state, |after| {
                if seen.insert(self.key(&after)) {
                    open.push(after);
                }
            });
            assert!(seen.len() < 30_000_000, "too many states");
        }
        (seen.len(), false)
    }
}

const EQUAL: [Range<u8>; 2] = [0..3, 0..3];
const ADDED: [Range<u8>; 2] = [0..2, 0..3];
const SWAPPED: [Range<u8>; 2] = [0..3, 1..4];

const MAJORITY: [usize; 2] = [2, 2];
const MORE: [usize; 2] = [quorum(3), quorum(3)];

fn model(registrars: [Range<u8>; 2], quorum: [usize; 2]) -> Model {
    Model {
        registrars,
        quorum,
        forgets: false,
        slips: false,
    }
}

#[test]
fn no_schedule_chooses_two_rolls() {
    // Two of three equal registrars would do; the lists of the code may differ by one.
    for (registrars, quorum) in [
        (EQUAL, MAJORITY),
        (EQUAL, MORE),
        (ADDED, [quorum(2), quorum(3)]),
        (SWAPPED, MORE),
    ] {
        let (states, forks) = model(registrars.clone(), quorum).explore();
        println!("{registrars:?}, quorums {quorum:?}: {states} states");
        assert!(!forks, "two rolls: {registrars:?}, quorums {quorum:?}");
        assert!(states > 1000, "the model does not move: {states} states");
    }
}

#[test]
fn a_founder_that_forgets_what_was_accepted_makes_two_rolls() {
    for (registrars, quorum) in [(EQUAL, MAJORITY), (SWAPPED, MORE)] {
        let model = Model {
            forgets: true,
            ..model(registrars, quorum)
        };
        assert!(model.explore().1);
    }
}

#[test]
fn a_registrar_that_accepts_below_its_promise_makes_two_rolls() {
    let model = Model {
        slips: true,
        ..model(EQUAL, MAJORITY)
    };
    assert!(model.explore().1);
}

#[test]
fn majorities_of_lists_that_differ_by_one_make_two_rolls() {
    assert!(model(SWAPPED, MAJORITY).explore().1);
}

#[test]
fn quorums_meet_while_lists_share_more_than_a_third_of_their_lengths_together() {
    for a in 1..=63usize {
        for b in 1..=63usize {
            for shared in 0..=a.min(b) {
                let meet = quorum(a) + quorum(b) > a + b - shared;
                assert!(meet || 3 * shared <= a + b, "{a} and {b} share {shared}");
            }
        }
    }
}
