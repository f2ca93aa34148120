//! Agreement on one value although some members lie: what a member may sign, what decides, and which
//! value a higher ballot may propose. Nothing here sends, signs or checks a signature: statements
//! arrive here with their signatures checked.
//!
//! A group of m seats survives k liars; Q is the quorum of all n seats of the run, `Q <= m <= n`
//! and `n > 3k`. Values are whatever the members vote on. A ballot is a number; all members know who
//! coordinates it.
//!
//! 1. **Vote.** A member votes once in a ballot. Q equal votes of one ballot are a *certificate*.
//! 2. **Decide.** Equal votes of all m seats in ballot zero decide. So do Q *locks*: a member signs
//!    a lock once it has a certificate of a ballot that is not below its promise.
//! 3. **Promise.** A member that promises a ballot votes and locks in no lower one. The promise names
//!    its vote in ballot zero, and its highest certificate.
//! 4. **Choose.** The coordinator of a higher ballot needs Q promises. The value of the highest
//!    certificate among them must be proposed; without one, the value that at least Q - k of them
//!    voted for in ballot zero; without that, any value may be.
//! 5. **Repair.** The proposal carries the promises. A member votes for it only if it is what 4
//!    gives, so a lying coordinator can stop a ballot and do nothing else.
//!
//! **Why two values are never decided.** Two quorums share k + 1 seats, so they share one that does
//! not lie. So a ballot has one certified value at most. Say v is decided by locks in ballot b. Any
//! Q promises to a higher ballot include one of a member that locked v in b and said so, because it
//! would not lock after its promise. So, ballot by ballot, the highest certificate is of v. Say v
//! is decided by all votes of ballot zero. All who do not lie voted for v, so no other value has a
//! certificate of ballot zero. Of any Q promises Q - k or more name v, and at most `k < Q - k` name
//! another value. So the next certificate is of v too, and the highest one stays with v.
//!
//! `model` checks this: all schedules of the smallest group, and random ones of larger groups.
//!
//! **Source:** Castro and Liskov 1999, "Practical Byzantine Fault Tolerance" (certificates, two
//! phases); Martin and Alvisi 2006, "Fast Byzantine Consensus" (deciding on equal votes of all);
//! Lamport 2001, "Paxos Made Simple" (promises).

use crate::plan::Tolerance;
use crate::sorted::{SortedMap, SortedSet};

/// Sizes of a group, of its quorum, and of the liars that it survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) members: usize,
    /// Members that decide: a quorum of all seats, at most `members`.
    pub(super) quorum: usize,
    pub(super) tolerance: Tolerance,
}

/// The claims of a promise, beside its ballot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claim<V> {
    pub(super) zero: Option<V>,
    /// Ballot and value of the highest certificate that it has.
    pub(super) highest: Option<(u8, V)>,
}

/// Equal votes of a quorum in one ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate<V, S> {
    pub(super) ballot: u8,
    pub(super) value: V,
    /// The signatures, by member.
    pub(super) votes: SortedMap<usize, S>,
}

/// The values that a ballot may propose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Choice<V> {
    /// This value and no other: it may be decided already.
    Must(V),
    /// Any value: none is decided.
    Free,
}

/// What follows from promises, by member; `None` where they are less than a quorum.
pub(super) fn choose<V: Ord + Clone>(
    terms: Terms,
    claims: &SortedMap<usize, Claim<V>>,
) -> Option<Choice<V>> {
    // Fewer promises could all be of members that have not seen what is decided.
    if claims.len() < terms.quorum {
        return None;
    }
    let certified = claims.values().filter_map(|claim| claim.highest.as_ref());
    if let Some((_, value)) = certified.max_by_key(|(ballot, _)| *ballot) {
        return Some(Choice::Must(value.clone()));
    }
    let mut votes: SortedMap<&V, usize> = SortedMap::new();
    for value in claims.values().filter_map(|claim| claim.zero.as_ref()) {
        *votes.entry(value).or_default() += 1;
    }
    // All members may have voted for it, and some node may have seen that. Of a quorum, all but the
    // liars then say so.
    let may_be_decided = |votes: usize| terms.tolerance.may_be(terms.quorum, votes);
    let most = votes.into_iter().max_by_key(|(_, count)| *count);
    Some(match most {
        Some((value, count)) if may_be_decided(count) => Choice::Must(value.clone()),
        _ => Choice::Free,
    })
}

/// What a proposal of `ballot` may contain that carries these promises; `None` where they do not
/// justify any. The highest certificate that they name must be there, because a liar can name one
/// that does not exist. Lower ones change nothing.
pub(super) fn justified<V: Ord + Clone, S>(
    terms: Terms,
    ballot: u8,
    claims: &SortedMap<usize, Claim<V>>,
    certificate: Option<&Certificate<V, S>>,
) -> Option<Choice<V>> {
    let named = claims.values().filter_map(|claim| claim.highest.as_ref());
    let highest = named.max_by_key(|(ballot, _)| *ballot);
    let shown = certificate.map(|shown| (shown.ballot, &shown.value));
    let fits = match highest {
        None => true,
        Some((of, value)) => {
            let complete = certificate.is_some_and(|shown| shown.votes.len() >= terms.quorum);
            *of < ballot && complete && shown == Some((*of, value))
        }
    };
    let members = claims.keys().all(|member| *member < terms.members);
    if fits && members {
        choose(terms, claims)
    } else {
        None
    }
}

/// Signed statements of one ballot, by member.
type Signed<V, S> = SortedMap<usize, (V, S)>;

/// Why a value is decided: equal votes of all members in ballot zero, or locks of a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision<V, S> {
    pub(super) ballot: u8,
    pub(super) value: V,
    /// The signatures are of locks; otherwise they are of votes.
    pub(super) locked: bool,
    pub(super) signatures: SortedMap<usize, S>,
}

/// Statements that one member has signed and heard in one decision. `V` is a value, `S` a signature.
#[derive(Clone, Debug)]
pub(super) struct Ledger<V, S> {
    terms: Terms,
    /// This member votes and locks in no ballot below.
    promised: u8,
    voted: SortedMap<u8, V>,
    /// The highest ballot in which this member has locked.
    locked: Option<u8>,
    votes: SortedMap<u8, Signed<V, S>>,
    locks: SortedMap<u8, Signed<V, S>>,
    highest: Option<Certificate<V, S>>,
}

impl<V: Ord + Clone, S: Clone> Ledger<V, S> {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            promised: 0,
            voted: SortedMap::new(),
            locked: None,
            votes: SortedMap::new(),
            locks: SortedMap::new(),
            highest: None,
        }
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    /// The ballot below which this member signs nothing.
    pub(super) fn promised(&self) -> u8 {
        self.promised
    }

    pub(super) fn has_signed(&self) -> bool {
        self.promised > 0 || self.locked.is_some() || !self.voted.is_empty()
    }

    /// A signature may be part of a decision: a vote in ballot zero, or a lock.
    pub(super) fn is_bound(&self) -> bool {
        self.locked.is_some() || self.voted.contains_key(&0)
    }

    /// This member may still vote in a ballot: not below its promise, and only once.
    pub(super) fn may_vote(&self, ballot: u8) -> bool {
        ballot >= self.promised && self.voted.keys().all(|voted| *voted < ballot)
    }

    /// This member votes. Its signature follows as a vote that is heard.
    pub(super) fn vote(&mut self, ballot: u8, value: V) {
        assert!(
            self.may_vote(ballot),
            "a second vote, or one below a promise"
        );
        self.follow(ballot);
        self.voted.insert(ballot, value);
    }

    pub(super) fn heard_vote(&mut self, from: usize, ballot: u8, value: V, signature: S) {
        note(&mut self.votes, from, ballot, &value, signature);
        let votes = self.votes.get(&ballot).into_iter().flatten();
        let equal: SortedMap<usize, S> = votes
            .filter(|(_, (voted, _))| *voted == value)
            .map(|(member, (_, signature))| (*member, signature.clone()))
            .collect();
        if equal.len() >= self.terms.quorum {
            self.heard_certificate(Certificate {
                ballot,
                value,
                votes: equal,
            });
        }
    }

    /// A checked certificate. The highest stays; of one ballot, no other value can have one.
    pub(super) fn heard_certificate(&mut self, certificate: Certificate<V, S>) {
        let complete = certificate.votes.len() >= self.terms.quorum;
        let known = self.highest.as_ref().map(|known| known.ballot);
        if complete && known.is_none_or(|known| certificate.ballot > known) {
            self.highest = Some(certificate);
        }
    }

    pub(super) fn certificate(&self) -> Option<&Certificate<V, S>> {
        self.highest.as_ref()
    }

    /// What this member may lock: the value of its highest certificate, if it is not below its
    /// promise and this member has not locked in that ballot yet.
    pub(super) fn may_lock(&self) -> Option<(u8, V)> {
        let highest = self.highest.as_ref()?;
        let fresh = self.locked.is_none_or(|locked| locked < highest.ballot);
        (fresh && highest.ballot >= self.promised).then(|| (highest.ballot, highest.value.clone()))
    }

    /// This member locks. Its signature follows as a lock that is heard.
    pub(super) fn lock(&mut self, ballot: u8) {
        self.follow(ballot);
        self.locked = Some(ballot);
    }

    pub(super) fn heard_lock(&mut self, from: usize, ballot: u8, value: V, signature: S) {
        note(&mut self.locks, from, ballot, &value, signature);
    }

    /// This member promises a ballot. `None` where it has promised this one or a higher one.
    pub(super) fn promise(&mut self, ballot: u8) -> Option<Claim<V>> {
        if ballot <= self.promised {
            return None;
        }
        self.promised = ballot;
        Some(self.claim(ballot))
    }

    /// What this member says with its promise of a ballot.
    fn claim(&self, ballot: u8) -> Claim<V> {
        // One of this ballot or a later one cannot justify what this ballot proposes.
        let highest = self.highest.as_ref().filter(|c| c.ballot < ballot);
        Claim {
            zero: self.voted.get(&0).cloned(),
            highest: highest.map(|c| (c.ballot, c.value.clone())),
        }
    }

    /// A proposal of this ballot is followed: nothing is signed below it any more.
    pub(super) fn follow(&mut self, ballot: u8) {
        self.promised = self.promised.max(ballot);
    }

    pub(super) fn vote_of(&self, member: usize, ballot: u8) -> Option<&(V, S)> {
        self.votes.get(&ballot)?.get(&member)
    }

    pub(super) fn lock_of(&self, member: usize, ballot: u8) -> Option<&(V, S)> {
        self.locks.get(&ballot)?.get(&member)
    }

    /// The votes of a ballot, by member, if they are not all for one value.
    pub(super) fn split(&self, ballot: u8) -> Option<&SortedMap<usize, (V, S)>> {
        let votes = self.votes.get(&ballot)?;
        let mut values = votes.values().map(|(value, _)| value);
        let first = values.next()?;
        values.any(|value| value != first).then_some(votes)
    }

    /// The members that have voted for a value, in any ballot.
    pub(super) fn voters_for(&self, value: &V) -> impl Iterator<Item = usize> {
        let votes = self.votes.values().flatten();
        let equal = votes.filter(move |(_, (voted, _))| voted == value);
        let voters: SortedSet<usize> = equal.map(|(member, _)| *member).collect();
        voters.into_iter()
    }

    pub(super) fn decided(&self) -> Option<Decision<V, S>> {
        let all = self
            .votes
            .get(&0)
            .and_then(|votes| Some((0, false, equal(votes, self.terms.members)?)));
        let locked = self
            .locks
            .iter()
            .find_map(|(ballot, locks)| Some((*ballot, true, equal(locks, self.terms.quorum)?)));
        let (ballot, locked, (value, signatures)) = all.or(locked)?;
        Some(Decision {
            ballot,
            value,
            locked,
            signatures,
        })
    }
}

/// Counts the first statement of a member in a ballot.
fn note<V: Ord + Clone, S>(
    all: &mut SortedMap<u8, Signed<V, S>>,
    from: usize,
    ballot: u8,
    value: &V,
    signature: S,
) {
    let of_ballot = all.entry(ballot).or_default();
    of_ballot
        .entry(from)
        // A second one is no vote but the proof of a lie, which is judged elsewhere.
        .or_insert_with(|| (value.clone(), signature));
}

/// The value that at least this number of members say, with their signatures.
fn equal<V: Ord + Clone, S: Clone>(
    said: &Signed<V, S>,
    quorum: usize,
) -> Option<(V, SortedMap<usize, S>)> {
    let mut by_value: SortedMap<&V, SortedMap<usize, S>> = SortedMap::new();
    for (member, (value, signature)) in said {
        let equal = by_value.entry(value).or_default();
        equal.insert(*member, signature.clone());
    }
    let decided = by_value
        .into_iter()
        .find(|(_, equal)| equal.len() >= quorum);
    decided.map(|(value, equal)| (value.clone(), equal))
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod random;
