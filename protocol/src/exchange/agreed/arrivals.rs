//! Slices that arrive for one fragment's round.

use super::EXCHANGE;
use super::ballot::ShardVersion;
use super::fragment::FragmentRound;
use super::state::FragmentStage;
use crate::core::context::Context;
use crate::exchange::{broke, foreign_tag};
use crate::limits::{BALLOTS_MAX, BALLOTS_SIGNED_MAX, GROUP_MEMBERS_MAX};
use crate::{Attempt, Digest, Members, Part, PeerError, PeerId, SliceId, SliceMeta, Tag, Wait};
use core::time::Duration;

impl FragmentRound {
    /// A slice of this exchange arrived.
    pub(super) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    ) -> Result<(), PeerError> {
        let Some(index) = self.scope.group.index(from) else {
            return broke("a slice from a peer outside the group");
        };
        let contributors = self.contributors_of(index, &slice, &meta)?;
        let handed_on = slice.part == Part::Aggregate && slice.attempt == Attempt::FIRST;
        if slice.part == Part::Partial || (handed_on && self.pipeline.is_some()) {
            return self.pipeline_arrived(cx, from, slice, meta, contributors, digest);
        }
        if slice.origin != from {
            return broke("a slice that its sender did not make");
        }
        match (slice.part, digest) {
            (Part::Partial | Part::Bundle, _) => {}
            (Part::Basis, _) => self.basis_arrived(cx, index, slice, contributors),
            (Part::Second, _) => self.second_arrived(index, slice),
            (Part::Contribution | Part::RowMean, _) => {
                self.transfers.slices.insert(slice);
                self.pipeline_came(cx, index, slice, Members::one(index));
                if let Tag::RowMean { weight, .. } = meta.tag {
                    self.scope.group.members[index].weight = weight;
                }
                let part = self.scope.part_of(&slice);
                *self.reduction.here.entry(part).or_default() |= Members::one(index);
                let waited = match &self.scope.within {
                    // By how much its row was later than this peer's.
                    Some(within) => within.fed.map_or(Duration::ZERO, |fed| cx.now.since(fed)),
                    None => cx.now.since(self.since),
                };
                // One that came after the deadline counts too: otherwise a deadline that is too short
                // would stay so. Where members may lie, it would let a late one slow all others.
                let in_time = self.stage == FragmentStage::Collecting;
                let counts = in_time || (self.agreement.signed.is_none() && !self.over());
                if counts && self.pipeline.is_none() {
                    cx.deadlines.record(Wait::Contributions, from, waited);
                }
            }
            (Part::Aggregate | Part::Scores, Some(digest)) => {
                self.aggregate_arrived(from, &slice, contributors, digest)?;
                if self.scope.scoring.is_some() && slice.part == Part::Aggregate && !self.over() {
                    let waited = cx.now.since(self.since);
                    cx.deadlines.record(Wait::Contributions, from, waited);
                }
            }
            (Part::Aggregate | Part::Scores, None) => {
                return broke("an aggregate without a digest");
            }
        }
        self.advance(cx);
        Ok(())
    }

    /// Checks that a slice fits the group and the exchange; gives the members whose mean it is.
    fn contributors_of(
        &self,
        index: usize,
        slice: &SliceId,
        meta: &SliceMeta,
    ) -> Result<Members, PeerError> {
        let attempts = match slice.part {
            Part::Contribution | Part::RowMean | Part::Bundle => 1,
            Part::Aggregate if self.agreement.signed.is_some() => BALLOTS_SIGNED_MAX,
            // No ballot makes scores again.
            Part::Scores => 1,
            Part::Aggregate | Part::Basis | Part::Second => BALLOTS_MAX,
            Part::Partial => u8::MAX,
        };
        if meta.of != self.scope.cut()
            || slice.shard >= self.scope.cut()
            || (self.scope.within.is_some() && self.scope.part_of(slice) >= self.scope.of)
            || slice.attempt.0 >= attempts
        {
            return broke("a slice that does not fit the group's shards");
        }
        let contributors = match (slice.part, meta.tag) {
            (Part::Contribution, Tag::Contribution { .. }) if self.scope.within.is_none() => {
                Members::NONE
            }
            (Part::RowMean, Tag::RowMean { weight, .. }) if self.scope.within.is_some() => {
                match weight.is_finite() && weight > 0.0 {
                    true => Members::NONE,
                    false => return broke("a row without weight"),
                }
            }
            (Part::Partial | Part::Aggregate, Tag::Mean { members, .. }) => members,
            (Part::Scores, Tag::Mean { members, .. }) if self.scope.scoring.is_some() => members,
            (Part::Basis, Tag::Mean { members, .. }) if self.scope.passes.are_two() => members,
            (Part::Second, Tag::Contribution { .. }) if self.scope.passes.are_two() => {
                Members::NONE
            }
            _ => return Err(foreign_tag(meta.tag, EXCHANGE)),
        };
        if self.scope.gathered
            && (!matches!(slice.part, Part::Aggregate | Part::Scores)
                || contributors != Members::one(index))
        {
            return broke("a contribution that is not its sender's own");
        }
        Ok(contributors)
    }

    /// An aggregate arrived from the member that made it.
    fn aggregate_arrived(
        &mut self,
        from: PeerId,
        slice: &SliceId,
        contributors: Members,
        digest: Digest,
    ) -> Result<(), PeerError> {
        let part = self.scope.part_of(slice);
        if !contributors.is_within(self.scope.group.all()) || contributors.is_empty() {
            return broke("an aggregate of contributors outside the group");
        }
        let versions = self.held.entry(part).or_default();
        let same = |v: &ShardVersion| v.owner == from && v.attempt == slice.attempt;
        if versions.iter().any(|v| same(v) && v.digest != digest) {
            // The others may have got either of them, so this peer holds neither.
            versions.retain(|v| !same(v));
            return broke("two versions of one shard under one name");
        }
        if versions.len() >= GROUP_MEMBERS_MAX {
            return broke("too many versions of one shard");
        }
        if slice.attempt == Attempt::FIRST {
            self.transfers.given.entry(part).or_insert(digest);
        }
        let version = ShardVersion {
            owner: from,
            attempt: slice.attempt,
            contributors,
            digest,
        };
        self.hold(part, version);
        Ok(())
    }
}
