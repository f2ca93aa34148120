//! What one member has signed and heard in one decision.

use super::Terms;
use super::said::{Certificate, Claim};
use std::collections::{BTreeMap, BTreeSet};

/// Signed statements of one ballot, by member.
type Signed<V, S> = BTreeMap<usize, (V, S)>;

/// Why a value is decided: equal votes of all members in ballot zero, or locks of a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Decision<V, S> {
    pub(in super::super) ballot: u8,
    pub(in super::super) value: V,
    /// Whether the signatures are of locks; otherwise they are of votes.
    pub(in super::super) locked: bool,
    /// The signatures, by member.
    pub(in super::super) signatures: BTreeMap<usize, S>,
}

/// What one member has signed and heard in one decision. `V` is a value, `S` a signature.
#[derive(Clone, Debug)]
pub(in super::super) struct Ledger<V, S> {
    terms: Terms,
    /// This member votes and locks in no ballot below.
    promised: u8,
    /// This member's votes.
    voted: BTreeMap<u8, V>,
    /// The highest ballot in which this member has locked.
    locked: Option<u8>,
    votes: BTreeMap<u8, Signed<V, S>>,
    locks: BTreeMap<u8, Signed<V, S>>,
    highest: Option<Certificate<V, S>>,
}

impl<V: Ord + Clone, S: Clone> Ledger<V, S> {
    pub(in super::super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            promised: 0,
            voted: BTreeMap::new(),
            locked: None,
            votes: BTreeMap::new(),
            locks: BTreeMap::new(),
            highest: None,
        }
    }

    pub(in super::super) fn terms(&self) -> Terms {
        self.terms
    }

    /// The ballot below which this member signs nothing.
    pub(in super::super) fn promised(&self) -> u8 {
        self.promised
    }

    /// Whether this member has signed anything.
    pub(in super::super) fn has_signed(&self) -> bool {
        self.promised > 0 || self.locked.is_some() || !self.voted.is_empty()
    }

    /// Whether this member may still vote in a ballot: not below its promise, and only once.
    pub(in super::super) fn may_vote(&self, ballot: u8) -> bool {
        ballot >= self.promised && self.voted.keys().all(|voted| *voted < ballot)
    }

    /// This member votes. Its signature follows as a vote that is heard.
    pub(in super::super) fn vote(&mut self, ballot: u8, value: V) {
        assert!(
            self.may_vote(ballot),
            "a second vote, or one below a promise"
        );
        self.follow(ballot);
        self.voted.insert(ballot, value);
    }

    /// A vote, its signature checked.
    pub(in super::super) fn heard_vote(&mut self, from: usize, ballot: u8, value: V, signature: S) {
        note(&mut self.votes, from, ballot, &value, signature);
        let votes = self.votes.get(&ballot).into_iter().flatten();
        let equal: BTreeMap<usize, S> = votes
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

    /// A certificate, its signatures checked. The highest one stays; of one ballot, the first,
    /// because no other value can have one.
    pub(in super::super) fn heard_certificate(&mut self, certificate: Certificate<V, S>) {
        let complete = certificate.votes.len() >= self.terms.quorum;
        let known = self.highest.as_ref().map(|known| known.ballot);
        if complete && known.is_none_or(|known| certificate.ballot > known) {
            self.highest = Some(certificate);
        }
    }

    /// The highest certificate.
    pub(in super::super) fn certificate(&self) -> Option<&Certificate<V, S>> {
        self.highest.as_ref()
    }

    /// What this member may lock: the value of its highest certificate, if it is not below its
    /// promise and this member has not locked in that ballot yet.
    pub(in super::super) fn may_lock(&self) -> Option<(u8, V)> {
        let highest = self.highest.as_ref()?;
        let fresh = self.locked.is_none_or(|locked| locked < highest.ballot);
        (fresh && highest.ballot >= self.promised).then(|| (highest.ballot, highest.value.clone()))
    }

    /// This member locks. Its signature follows as a lock that is heard.
    pub(in super::super) fn lock(&mut self, ballot: u8) {
        self.follow(ballot);
        self.locked = Some(ballot);
    }

    /// A lock, its signature checked.
    pub(in super::super) fn heard_lock(&mut self, from: usize, ballot: u8, value: V, signature: S) {
        note(&mut self.locks, from, ballot, &value, signature);
    }

    /// This member promises a ballot. `None` where it has promised this one or a higher one.
    pub(in super::super) fn promise(&mut self, ballot: u8) -> Option<Claim<V>> {
        if ballot <= self.promised {
            return None;
        }
        self.promised = ballot;
        Some(self.claim(ballot))
    }

    /// What this member says with its promise of a ballot.
    fn claim(&self, ballot: u8) -> Claim<V> {
        let highest = self.highest.as_ref().filter(|c| c.ballot < ballot);
        Claim {
            zero: self.voted.get(&0).cloned(),
            highest: highest.map(|c| (c.ballot, c.value.clone())),
        }
    }

    /// A proposal of this ballot is followed: nothing is signed below it any more.
    pub(in super::super) fn follow(&mut self, ballot: u8) {
        self.promised = self.promised.max(ballot);
    }

    /// What a member has voted for in a ballot, with its signature.
    pub(in super::super) fn vote_of(&self, member: usize, ballot: u8) -> Option<&(V, S)> {
        self.votes.get(&ballot)?.get(&member)
    }

    /// What a member has locked in a ballot, with its signature.
    pub(in super::super) fn lock_of(&self, member: usize, ballot: u8) -> Option<&(V, S)> {
        self.locks.get(&ballot)?.get(&member)
    }

    /// The votes of a ballot, by member, if they are not all for one value.
    pub(in super::super) fn split(&self, ballot: u8) -> Option<&BTreeMap<usize, (V, S)>> {
        let votes = self.votes.get(&ballot)?;
        let mut values = votes.values().map(|(value, _)| value);
        let first = values.next()?;
        values.any(|value| value != first).then_some(votes)
    }

    /// The members that have voted for a value, in any ballot.
    pub(in super::super) fn voters_for(&self, value: &V) -> impl Iterator<Item = usize> {
        let votes = self.votes.values().flatten();
        let equal = votes.filter(move |(_, (voted, _))| voted == value);
        let voters: BTreeSet<usize> = equal.map(|(member, _)| *member).collect();
        voters.into_iter()
    }

    /// What is decided.
    pub(in super::super) fn decided(&self) -> Option<Decision<V, S>> {
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
    all: &mut BTreeMap<u8, Signed<V, S>>,
    from: usize,
    ballot: u8,
    value: &V,
    signature: S,
) {
    let of_ballot = all.entry(ballot).or_default();
    of_ballot
        .entry(from)
        .or_insert_with(|| (value.clone(), signature));
}

/// The value that at least this number of members say, with their signatures.
fn equal<V: Ord + Clone, S: Clone>(
    said: &Signed<V, S>,
    quorum: usize,
) -> Option<(V, BTreeMap<usize, S>)> {
    let mut by_value: BTreeMap<&V, BTreeMap<usize, S>> = BTreeMap::new();
    for (member, (value, signature)) in said {
        let equal = by_value.entry(value).or_default();
        equal.insert(*member, signature.clone());
    }
    let decided = by_value
        .into_iter()
        .find(|(_, equal)| equal.len() >= quorum);
    decided.map(|(value, equal)| (value.clone(), equal))
}
