//! All schedules of the smallest group that survives a liar: four members, one of which lies.
//!
//! The model has no network: a statement that was signed can reach anybody at any time, or never. The
//! liar has signed everything that can be signed, and coordinates every ballot. A promise of an
//! honest member may name any certificate that exists and is not below its own lock, or none
//! without a lock; the code names the highest that it knows, so the model allows more.
//!
//! Bounded: ballots zero and one, two values. Members that behave alike are the same state.

use super::{Choice, Claim, Terms, choose};
use crate::plan::Tolerance;
use crate::sorted::{SortedMap, SortedSet};
use std::collections::BTreeSet;

const HONEST: usize = 3;
const BALLOTS: usize = 2;
const VALUES: u8 = 2;
const TERMS: Terms = Terms {
    members: 4,
    quorum: 3,
    tolerance: Tolerance::of(1, 4),
};

type Value = u8;
type Claims = SortedMap<usize, Claim<Value>>;
/// Which value a ballot may propose.
type Chooses = fn(Terms, &Claims) -> Option<Choice<Value>>;
/// A certificate: its ballot and value.
type Certified = (u8, Value);

/// What an honest member has signed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Honest {
    promised: u8,
    votes: [Option<Value>; BALLOTS],
    locks: [Option<Value>; BALLOTS],
    claims: [Option<Claim<Value>>; BALLOTS],
}

/// All honest members, in order: which one is which makes no difference.
type State = [Honest; HONEST];

/// Certificates that the votes of the honest and any vote of the liar make.
fn certificates(state: &State) -> SortedSet<Certified> {
    let mut all = SortedSet::new();
    for ballot in 0..BALLOTS {
        for value in 0..VALUES {
            let votes = state.iter().filter(|h| h.votes[ballot] == Some(value));
            if TERMS.tolerance.may_be(TERMS.quorum, votes.count()) {
                all.insert((ballot as u8, value));
            }
        }
    }
    all
}

/// Values that some member can take for decided.
fn decided(state: &State) -> SortedSet<Value> {
    let by_all = |value| state.iter().all(|h| h.votes[0] == Some(value));
    let by_locks = |value| {
        (0..BALLOTS).any(|ballot| {
            let locks = state.iter().filter(|h| h.locks[ballot] == Some(value));
            TERMS.tolerance.may_be(TERMS.quorum, locks.count())
        })
    };
    let is_decided = |value: &Value| by_all(*value) || by_locks(*value);
    (0..VALUES).filter(is_decided).collect()
}

/// Values for which a coordinator that lies can get votes in a ballot.
fn proposals(state: &State, ballot: u8, chooses: Chooses) -> SortedSet<Value> {
    let below = certificates(state).into_iter().filter(|(b, _)| *b < ballot);
    let certified: Vec<Option<Certified>> = below.map(Some).chain([None]).collect();
    let honest = || {
        let claims = state.iter().map(|h| h.claims[usize::from(ballot)].clone());
        claims.enumerate()
    };
    let mut all = SortedSet::new();
    for subset in 0..1u8 << HONEST {
        let told: Claims = honest()
            .filter(|(member, _)| subset >> member & 1 == 1)
            .filter_map(|(member, claim)| Some((member, claim?)))
            .collect();
        let mut sets = vec![told.clone()];
        for zero in [None, Some(0), Some(1)] {
            for highest in &certified {
                let mut with_liar = told.clone();
                let (zero, highest) = (zero, *highest);
                with_liar.insert(HONEST, Claim { zero, highest });
                sets.push(with_liar);
            }
        }
        for claims in sets {
            match chooses(TERMS, &claims) {
                Some(Choice::Must(value)) => {
                    all.insert(value);
                }
                Some(Choice::Free) => all.extend(0..VALUES),
                None => {}
            }
        }
    }
    all
}

/// Every state that one step of one honest member leads to.
fn steps(state: &State, chooses: Chooses) -> Vec<State> {
    let mut next = Vec::new();
    let certified = certificates(state);
    let mut step = |member: usize, change: &dyn Fn(&mut Honest)| {
        let mut after = state.clone();
        change(&mut after[member]);
        after.sort();
        next.push(after);
    };
    for ballot in 0..BALLOTS as u8 {
        let at = usize::from(ballot);
        let values = match ballot {
            0 => (0..VALUES).collect(),
            _ => proposals(state, ballot, chooses),
        };
        for (member, honest) in state.iter().enumerate() {
            if ballot >= honest.promised && honest.votes[at..].iter().all(Option::is_none) {
                for value in &values {
                    step(member, &|h| {
                        h.votes[at] = Some(*value);
                        h.promised = ballot;
                    });
                }
            }
            if ballot >= honest.promised && honest.locks[at].is_none() {
                for (_, value) in certified.iter().filter(|(of, _)| *of == ballot) {
                    step(member, &|h| {
                        h.locks[at] = Some(*value);
                        h.promised = ballot;
                    });
                }
            }
            if ballot > honest.promised {
                let locked = honest.locks.iter().rposition(Option::is_some);
                let may_name = |(of, _): &&Certified| {
                    *of < ballot && locked.is_none_or(|locked| usize::from(*of) >= locked)
                };
                let named = certified.iter().filter(may_name).copied().map(Some);
                let none = locked.is_none().then_some(None);
                for highest in named.chain(none) {
                    let zero = honest.votes[0];
                    step(member, &|h| {
                        h.claims[at] = Some(Claim { zero, highest });
                        h.promised = ballot;
                    });
                }
            }
        }
    }
    next
}

/// Goes through all states; a fork if there is one, otherwise the number of states.
fn explore(chooses: Chooses, most: usize) -> Result<usize, State> {
    let start = State::default();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        if decided(&state).len() > 1 {
            return Err(state);
        }
        for after in steps(&state, chooses) {
            if seen.insert(after.clone()) {
                open.push(after);
            }
        }
        assert!(seen.len() <= most, "more than {most} states");
    }
    Ok(seen.len())
}

/// The rule without its second step: only certificates bind.
pub(super) fn without_the_second_step<V: Ord + Clone>(
    terms: Terms,
    claims: &SortedMap<usize, Claim<V>>,
) -> Option<Choice<V>> {
    let certified = claims.values().any(|claim| claim.highest.is_some());
    match choose(terms, claims) {
        Some(Choice::Must(_)) if !certified => Some(Choice::Free),
        chosen => chosen,
    }
}

/// A member that votes for whatever the coordinator proposes.
pub(super) fn whatever_is_proposed<V: Ord + Clone>(
    _: Terms,
    _: &SortedMap<usize, Claim<V>>,
) -> Option<Choice<V>> {
    Some(Choice::Free)
}

#[test]
fn no_schedule_of_four_members_with_one_liar_decides_two_values() {
    let states = explore(choose, 20_000_000).unwrap_or_else(|_| panic!("two values are decided"));
    println!("{states} states");
    assert!(states > 1000, "the model does not move: {states} states");
}

#[test]
fn without_its_second_step_the_rule_forks() {
    assert!(explore(without_the_second_step, 20_000_000).is_err());
}

#[test]
fn a_member_that_follows_unjustified_repairs_makes_a_fork() {
    assert!(explore(whatever_is_proposed, 20_000_000).is_err());
}
