//! What a peer keeps of a split: since when it has not been in a group with whom, and how much its
//! side has done since.

use crate::limits::{
    BRANCH_BASES, BRANCH_ROUNDS_MAX, BRANCH_WEIGHT_FACTOR, MERGE_ATTEMPTS_MAX, MERGE_WAIT,
    TRAIL_ROUNDS_MAX, VIEW_PEERS_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Base, Branch, Digest, KeptSplit, PeerId, Plan, Round, Time};
use std::collections::VecDeque;

/// The last group that a peer was in together with this one.
#[derive(Clone, Copy, Debug)]
struct Together {
    base: Base,
    /// This peer's total when that group's round was decided.
    total: f64,
}

/// How far this peer is with merging its branch.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    /// Merges that did not come about.
    failed: u8,
    /// The first round in which it tries again.
    resume: Round,
    /// Since when peers of another branch are here.
    since: Option<Time>,
    /// Set once it tries no more.
    given_up: bool,
}

/// How far a peer is with merging its branch, at a look at the peers that are here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Look {
    /// It is in no branch that is to be merged.
    Whole,
    /// It waits, or merges.
    Tries,
    /// Peers of another branch have just come. With this peer's branch.
    Met(Box<Branch>),
    /// They have been here for too long without a merge.
    GivenUp,
}

/// What this peer keeps of groups, of the peers that it lost from them, and of its branch.
#[derive(Debug, Default)]
pub(crate) struct Split {
    together: SortedMap<PeerId, Together>,
    /// The states that opened this peer's last rounds, newest last.
    trail: VecDeque<Base>,
    /// Where the branch began; none while no peer is missing.
    began: Option<Together>,
    bases: [Option<Base>; BRANCH_BASES],
    /// Peers that were in the group at the base and whose links went down.
    missing: SortedSet<PeerId>,
    members: u16,
    /// Weight that this peer's rounds have decided so far.
    total: f64,
    /// The largest weight of a member of its groups so far.
    heaviest: f64,
    attempts: Attempts,
    /// Set while the branch is one of an earlier life, and this life has been in no group.
    restored: bool,
    /// Set where the plan's sides are not merged when they meet.
    pub(super) unmerged: bool,
}

impl Split {
    /// No peer is missing yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            unmerged: !plan.merges(),
            ..Self::default()
        }
    }

    /// A group formed at this base, with these members and the heaviest weight among them. Peers for
    /// which `lost` holds cannot be reached.
    pub(crate) fn grouped(
        &mut self,
        base: Base,
        members: &SortedSet<PeerId>,
        heaviest: f64,
        lost: impl Fn(PeerId) -> bool,
    ) {
        self.passed(base);
        self.restored = false;
        let others = self.together.keys().filter(|id| !members.contains(id));
        let newly: Vec<PeerId> = others
            .copied()
            .filter(|id| !self.missing.contains(id) && lost(*id))
            .collect();
        if self.began.is_none() {
            // Of several bases the newest: it is the one that most of the lost peers share.
            let bases = newly.iter().filter_map(|id| self.together.get(id));
            self.began = bases.max_by_key(|together| together.base.round).copied();
            self.attempts = Attempts::default();
            self.bases = self.bases_of(self.began.map_or(base.round, |began| began.base.round));
        }
        self.missing.extend(newly);
        self.missing.retain(|id| !members.contains(id));
        // Peers that are away for that long are taken for gone.
        let old = |began: &Together| base.round.since(began.base.round) > BRANCH_ROUNDS_MAX;
        if self.missing.is_empty() || self.began.as_ref().is_some_and(old) {
            self.end();
        }
        self.members = u16::try_from(members.len()).unwrap_or(u16::MAX);
        self.heaviest = self.heaviest.max(heaviest);
        self.met(base, members);
    }

    /// This peer is in a round that this state opens.
    pub(crate) fn passed(&mut self, base: Base) {
        if self.trail.back() != Some(&base) {
            self.trail.push_back(base);
        }
        if self.trail.len() > TRAIL_ROUNDS_MAX {
            self.trail.pop_front();
        }
    }

    /// Returns `true` if this peer began that round with other parameters, as far as it remembers.
    pub(crate) fn differs(&self, other: Base) -> bool {
        let own = self.began_with(other.round);
        own.is_some_and(|own| own != other.anchor)
    }

    /// The anchor with which this peer began a round, as far as it remembers.
    pub(crate) fn began_with(&self, round: Round) -> Option<Digest> {
        let mut newest_first = self.trail.iter().rev();
        let own = newest_first.find(|base| base.round == round);
        own.map(|own| own.anchor)
    }

    /// The last states of this peer up to a round, newest first.
    fn bases_of(&self, round: Round) -> [Option<Base>; BRANCH_BASES] {
        let past = self.trail.iter().rev().filter(|base| base.round <= round);
        let mut bases = [None; BRANCH_BASES];
        for (slot, base) in bases.iter_mut().zip(past) {
            *slot = Some(*base);
        }
        bases
    }

    fn met(&mut self, base: Base, members: &SortedSet<PeerId>) {
        for id in members {
            if self.together.len() < VIEW_PEERS_MAX || self.together.contains_key(id) {
                let total = self.total;
                self.together.insert(*id, Together { base, total });
            }
        }
    }

    pub(crate) fn decided(&mut self, round: Round, weight: f64) {
        self.total += weight;
        for together in self.together.values_mut() {
            // What a group decided together is no side's own.
            if together.base.round == round {
                together.total = self.total;
            }
        }
    }

    /// A peer said goodbye: it is not missing.
    pub(crate) fn left(&mut self, peer: PeerId) {
        self.together.remove(&peer);
        self.missing.remove(&peer);
    }

    /// This peer's branch, if it is in one.
    pub(crate) fn branch(&self) -> Option<Branch> {
        let began = self.began?;
        Some(Branch {
            bases: self.bases,
            members: self.members.max(1),
            weight: (self.total - began.total).max(0.0),
        })
    }

    /// This peer's branch, if it is to be merged with others. Asked after every message.
    pub(crate) fn mergeable(&self) -> Option<Branch> {
        let merges = !self.unmerged && !self.attempts.given_up;
        merges.then(|| self.branch()).flatten()
    }

    /// There is no branch of another peer to merge with this one's.
    pub(crate) fn is_whole(&self) -> bool {
        self.mergeable().is_none()
    }

    /// The branch of a peer whose side is merged with no other.
    pub(crate) fn unmerged_branch(&self) -> Option<Branch> {
        self.branch().filter(|_| self.unmerged)
    }

    /// What this peer tells another one of its branch. After a restart it is told to those that are missing
    /// from it: to its own side it is a member that comes back, like one without a branch. Where sides are not
    /// merged, only peers that have not begun yet compare what they hold.
    pub(crate) fn branch_for(&self, peer: PeerId) -> Option<Branch> {
        match (self.restored, self.unmerged_branch()) {
            (true, Some(unmerged)) => Some(unmerged),
            (true, None) => self.mergeable().filter(|_| self.misses(peer)),
            (false, _) => self.mergeable(),
        }
    }

    /// A branch and this peer's are to be merged.
    pub(crate) fn meets(&self, theirs: &Branch) -> bool {
        self.mergeable().is_some_and(|mine| theirs.meets(&mine))
    }

    /// Returns `true` if the peer is missing from this branch.
    pub(crate) fn misses(&self, peer: PeerId) -> bool {
        self.missing.contains(&peer)
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = PeerId> {
        self.missing.iter().copied()
    }

    /// Returns `true` if a peer in this round may claim this branch: its weight is at most
    /// [`BRANCH_WEIGHT_FACTOR`] times that of as many members in as many rounds, each as heavy as the
    /// heaviest that this peer has seen.
    pub(crate) fn credible(&self, claim: &Branch, round: Round) -> bool {
        let rounds = round.since(claim.began()).saturating_add(1);
        let each = BRANCH_WEIGHT_FACTOR * self.heaviest * f64::from(claim.members);
        claim.weight <= each * rounds as f64
    }

    /// Returns `true` if a merge may be tried in this round.
    pub(crate) fn may_try(&self, round: Round) -> bool {
        round >= self.attempts.resume
    }

    /// A merge did not come about: this side goes on for a round before the next attempt.
    pub(crate) fn failed(&mut self, round: Round) {
        self.attempts.failed = self.attempts.failed.saturating_add(1);
        self.attempts.resume = round.next();
        self.attempts.given_up |= self.attempts.failed >= MERGE_ATTEMPTS_MAX;
    }

    /// Peers of another branch are here, or none is.
    pub(crate) fn look(&mut self, here: bool, now: Time) -> Look {
        let Some(branch) = self.mergeable() else {
            return Look::Whole;
        };
        let came = self.apart(here, now);
        if self.attempts.given_up {
            Look::GivenUp
        } else if came {
            Look::Met(Box::new(branch))
        } else {
            Look::Tries
        }
    }

    /// Notes if peers of another branch are here; true if they came just now.
    fn apart(&mut self, here: bool, now: Time) -> bool {
        let since = &mut self.attempts.since;
        match (here, *since) {
            (false, _) => *since = None,
            (true, None) => {
                *since = Some(now);
                return true;
            }
            (true, Some(at)) => self.attempts.given_up |= now.since(at) > MERGE_WAIT,
        }
        false
    }

    /// Branches were merged into this anchor, by a group with these members and this weight in all.
    pub(crate) fn merged(&mut self, base: Base, members: &SortedSet<PeerId>, weight: f64) {
        self.missing.retain(|id| !members.contains(id));
        self.attempts = Attempts::default();
        self.members = u16::try_from(members.len()).unwrap_or(u16::MAX);
        match &mut self.began {
            // Others are still missing. To them all of this is one side.
            Some(began) if !self.missing.is_empty() => began.total = self.total - weight,
            _ => self.end(),
        }
        self.met(base, members);
    }

    /// This peer took over the state of its own side, with the branch of that state.
    pub(crate) fn took_over(&mut self, theirs: &Branch) {
        if let Some(began) = &mut self.began {
            began.total = self.total - theirs.weight;
        }
    }

    /// This peer took over the state of a branch that it did not know to be in.
    pub(crate) fn adopt(&mut self, theirs: &Branch, missing: SortedSet<PeerId>) {
        let base = theirs.bases.iter().flatten().next().copied();
        let Some(base) = base.filter(|_| !missing.is_empty()) else {
            return;
        };
        let total = self.total - theirs.weight;
        self.began = Some(Together { base, total });
        self.bases = theirs.bases;
        self.members = theirs.members;
        self.missing = missing;
    }

    /// What a checkpoint keeps of this.
    pub(crate) fn kept(&self) -> Option<KeptSplit> {
        let (branch, heaviest) = (self.branch()?, self.heaviest);
        let missing = self.missing.iter().copied().collect();
        Some(KeptSplit {
            branch,
            missing,
            heaviest,
        })
    }

    /// A life begins from a checkpoint that was written in a branch.
    pub(crate) fn restore(&mut self, kept: KeptSplit) {
        self.adopt(&kept.branch, kept.missing.into_iter().collect());
        self.heaviest = kept.heaviest;
        self.restored = self.began.is_some();
    }

    /// Peers that were in groups with this one.
    pub(crate) fn known(&self) -> impl Iterator<Item = PeerId> {
        self.together.keys().copied()
    }

    /// This peer took over another state: it knows of no group that led there.
    pub(crate) fn forget(&mut self) {
        self.end();
        self.together.clear();
        self.trail.clear();
    }

    fn end(&mut self) {
        self.restored = false;
        self.began = None;
        self.missing.clear();
        self.attempts = Attempts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::id::tests::peer;
    use core::time::Duration;

    fn peers(ids: &[u8]) -> SortedSet<PeerId> {
        ids.iter().map(|id| peer(*id)).collect()
    }

    fn base(round: u64) -> Base {
        Base {
            round: Round(round),
            anchor: Digest::of(&round.to_le_bytes()),
        }
    }

    /// A round of these members, each of weight 10, without these peers.
    fn round(split: &mut Split, number: u64, members: &[u8], lost: &[u8]) {
        let lost = peers(lost);
        split.grouped(base(number), &peers(members), 10.0, |id| lost.contains(&id));
        split.decided(Round(number), 10.0 * members.len() as f64);
    }

    #[test]
    fn a_branch_begins_with_the_last_group_of_all_and_counts_what_came_after_it() {
        let mut split = Split::default();
        round(&mut split, 3, &[0, 1, 2, 3], &[]);
        round(&mut split, 4, &[0, 1, 2, 3], &[]);
        assert_eq!(split.branch(), None);
        // They are suspected, and their links go down a round later.
        round(&mut split, 5, &[0, 1], &[]);
        assert_eq!(split.branch(), None);
        round(&mut split, 6, &[0, 1], &[2, 3]);
        let branch = split.branch().expect("a branch");
        let bases: Vec<Base> = branch.bases.iter().flatten().copied().collect();
        assert_eq!(bases, [base(4), base(3)]);
        assert_eq!((branch.members, branch.weight), (2, 40.0));
        assert!(split.misses(peer(2)) && !split.misses(peer(1)));
        // One of them comes back, then the other.
        round(&mut split, 7, &[0, 1, 2], &[3]);
        assert_eq!(split.branch().map(|b| b.weight), Some(70.0));
        round(&mut split, 8, &[0, 1, 2, 3], &[]);
        assert_eq!(split.branch(), None);
    }

    #[test]
    fn a_round_that_began_with_other_parameters_is_of_another_branch() {
        let mut split = Split::default();
        round(&mut split, 3, &[0, 1], &[]);
        let other = Base {
            round: Round(3),
            ..base(4)
        };
        assert!(split.differs(other) && !split.differs(base(3)));
        // It began this round in another way before, or does not remember it.
        split.passed(other);
        assert!(!split.differs(other) && split.differs(base(3)));
        assert!(!split.differs(base(9)));
    }

    #[test]
    fn a_peer_that_says_goodbye_is_not_missing() {
        let mut split = Split::default();
        round(&mut split, 0, &[0, 1], &[]);
        split.left(peer(1));
        round(&mut split, 1, &[0], &[1]);
        assert_eq!(split.branch(), None);
    }

    #[test]
    fn a_branch_is_forgotten_after_a_number_of_rounds() {
        let mut split = Split::default();
        round(&mut split, 0, &[0, 1], &[]);
        round(&mut split, 1, &[0], &[1]);
        assert!(split.branch().is_some());
        round(&mut split, BRANCH_ROUNDS_MAX + 1, &[0], &[1]);
        assert_eq!(split.branch(), None);
    }

    #[test]
    fn a_branch_comes_back_with_the_next_life_until_its_first_group() {
        let mut split = Split::default();
        round(&mut split, 4, &[0, 1, 2], &[]);
        round(&mut split, 5, &[0], &[1, 2]);
        round(&mut split, 6, &[0], &[1, 2]);
        let kept = split.kept().expect("it is in a branch");
        kept.check().expect("it can be read back");
        let mut again = Split::default();
        again.restore(kept.clone());
        assert_eq!(again.branch(), split.branch());
        assert_eq!(again.kept(), Some(kept));
        assert!(again.misses(peer(1)) && again.misses(peer(2)) && again.restored);
        // It goes on counting.
        round(&mut again, 7, &[0], &[1, 2]);
        assert!(!again.restored);
        assert_eq!(again.branch().map(|b| b.weight), Some(30.0));
        assert_eq!(Split::default().kept(), None);
    }

    #[test]
    fn a_merge_with_some_makes_one_side_of_both_against_the_others() {
        let mut split = Split::default();
        round(&mut split, 0, &[0, 1, 2], &[]);
        round(&mut split, 1, &[0], &[1, 2]);
        split.merged(base(5), &peers(&[0, 1]), 70.0);
        let branch = split.branch().expect("peer 2 is still missing");
        assert_eq!((branch.weight, branch.members), (70.0, 2));
        split.merged(base(9), &peers(&[0, 1, 2]), 99.0);
        assert_eq!(split.branch(), None);
    }

    #[test]
    fn merges_are_given_up_after_some_attempts_or_some_time() {
        let mut split = Split::default();
        round(&mut split, 0, &[0, 1], &[]);
        round(&mut split, 1, &[0], &[1]);
        for attempt in 0..u64::from(MERGE_ATTEMPTS_MAX) {
            assert!(split.mergeable().is_some(), "attempt {attempt}");
            split.failed(Round(attempt));
            assert!(!split.may_try(Round(attempt)));
            assert!(split.may_try(Round(attempt + 1)));
        }
        assert!(split.mergeable().is_none() && split.branch().is_some());
        let mut split = Split::default();
        round(&mut split, 0, &[0, 1], &[]);
        round(&mut split, 1, &[0], &[1]);
        let now = Time::ZERO;
        assert!(split.apart(true, now) && !split.apart(true, now));
        assert!(!split.apart(true, now + MERGE_WAIT + Duration::from_nanos(1)));
        assert!(split.mergeable().is_none());
    }

    #[test]
    fn a_claim_far_above_what_members_contribute_is_not_credible() {
        let mut split = Split::default();
        round(&mut split, 4, &[0, 1, 2, 3], &[]);
        let claim = |weight| Branch {
            bases: core::array::from_fn(|at| (at == 0).then(|| base(4))),
            members: 2,
            weight,
        };
        let most = BRANCH_WEIGHT_FACTOR * 10.0 * 2.0 * 7.0;
        assert!(split.credible(&claim(most), Round(10)));
        assert!(!split.credible(&claim(most * 1.01), Round(10)));
    }
}
