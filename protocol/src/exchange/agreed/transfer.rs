//! Slices of one fragment's round on their way: arrivals, pushes with their order, and fetches.

use super::EXCHANGE;
use super::ballot::ShardVersion;
use super::fragment::FragmentRound;
use super::state::FragmentStage;
use crate::core::FetchId;
use crate::core::context::Context;
use crate::core::sends::{SendTurn, Waiting};
use crate::exchange::{Arrived, PushEnd, broke, foreign_tag};
use crate::limits::{BALLOTS_MAX, GROUP_MEMBERS_MAX};
use crate::{
    Attempt, Digest, Layers, Members, Output, Part, PeerError, PeerId, PushOutcome, SliceId,
    SliceMeta, Tag, Wait,
};
use core::time::Duration;

/// Repetitions of a push that certainly failed.
const PUSH_RETRIES: u8 = 2;

impl FragmentRound {
    /// A slice of this exchange arrived.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn arrived(
        &mut self,
        cx: &mut Context,
        arrived: Arrived,
    ) -> Result<(), PeerError> {
        let Arrived {
            from,
            slice,
            meta,
            digest,
        } = arrived;
        let Some(index) = self.scope.group.index(from) else {
            return broke("a slice from a peer outside the group");
        };
        let contributors = self.contributors_of(index, &slice, &meta)?;
        let handed_on = slice.part == Part::Aggregate && slice.attempt == Attempt::FIRST;
        if slice.part == Part::Partial || (handed_on && self.pipeline.is_some()) {
            return self.pipeline_arrived(cx, arrived, index, contributors);
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
                    self.scope.group.members[index].said.weight = weight;
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
                let counts = in_time || (!self.agreement.signs() && !self.over());
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
        let scope = &self.scope;
        let attempts = match slice.part {
            Part::Contribution | Part::RowMean | Part::Bundle => 1,
            Part::Aggregate => self.agreement.ballots_max(),
            // No ballot makes scores again.
            Part::Scores => 1,
            Part::Basis | Part::Second => BALLOTS_MAX,
            Part::Partial => u8::MAX,
        };
        if meta.of != scope.cut()
            || slice.shard >= scope.cut()
            || (scope.within.is_some() && scope.part_of(slice) >= scope.of)
            || slice.attempt.0 >= attempts
        {
            return broke("a slice that does not fit the group's shards");
        }
        let two_passes = scope.passes.are_two();
        let contributors = match (slice.part, meta.tag) {
            (Part::Contribution, Tag::Contribution { .. }) if scope.within.is_none() => {
                Members::NONE
            }
            (Part::RowMean, Tag::RowMean { weight, .. }) if scope.within.is_some() => {
                if !weight.is_finite() || weight <= 0.0 {
                    return broke("a row without weight");
                }
                Members::NONE
            }
            (Part::Partial | Part::Aggregate, Tag::Mean { members, .. }) => members,
            (Part::Scores, Tag::Mean { members, .. }) if scope.scoring.is_some() => members,
            (Part::Basis, Tag::Mean { members, .. }) if two_passes => members,
            (Part::Second, Tag::Contribution { .. }) if two_passes => Members::NONE,
            _ => return Err(foreign_tag(meta.tag, EXCHANGE)),
        };
        if scope.gathered
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

    /// Notes that the bytes of a version are here.
    pub(super) fn hold(&mut self, shard: u16, version: ShardVersion) {
        let slice = self.scope.aggregate(shard, &version);
        self.transfers.slices.insert(slice);
        let versions = self.held.entry(shard).or_default();
        // The bytes of an earlier version with the same name were overwritten.
        versions.retain(|v| (v.owner, v.attempt) != (version.owner, version.attempt));
        versions.push(version);
    }

    /// Pushes a slice to a member, in the order of the schedule where it says one.
    pub(super) fn push(&mut self, cx: &mut Context, to: PeerId, slice: SliceId, meta: SliceMeta) {
        self.transfers.metas.insert(slice, meta);
        let down = slice.part == Part::Aggregate;
        let needed = u8::try_from(slice.fragment.0).map_or(u8::MAX / 2, |at| at.min(u8::MAX / 2));
        // Aggregates overtake contributions, because they end an exchange. With priorities, the
        // fragment that is needed first overtakes both. Decoupled, contributions leave as they come,
        // and only aggregates have an order.
        let first_needed = match cx.plan.overlap.layers {
            Layers::ByPriority | Layers::IntoForward => needed,
            Layers::Decoupled if down => needed,
            Layers::Together | Layers::AsReady | Layers::Decoupled => 0,
        };
        let priority = match cx.plan.overlap.layers {
            Layers::Decoupled => first_needed + u8::from(down),
            _ => 2 * first_needed + u8::from(!down),
        };
        let open = self.pipeline.as_ref().filter(|pipeline| pipeline.open);
        let turns = open.and_then(|pipeline| pipeline.program.turns());
        let (Some(turns), Some(index)) = (turns, self.scope.group.index(to)) else {
            cx.push(to, slice, meta, priority);
            return;
        };
        let turn = SendTurn {
            round: slice.round,
            needed: first_needed,
            fragment: slice.fragment,
            place: turns.place(slice.shard, index, down),
        };
        let window = turns.window;
        let send = Waiting {
            meta,
            priority,
            window,
        };
        cx.push_in_turn(turn, to, slice, send);
    }

    /// A push ended. One that certainly failed is repeated while it can still help.
    pub(in crate::exchange) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        // The exchange may have ended here while others still lack this aggregate.
        let open = self.transfers.slices.contains(&slice)
            && (!self.over() || slice.part == Part::Aggregate);
        let index = self.scope.group.index(to);
        let hopeful = index.is_some_and(|index| self.hopeful.has(index));
        if outcome != PushOutcome::Lost || !open || !hopeful {
            return;
        }
        let tries = self.transfers.retries.entry((to, slice)).or_default();
        if *tries >= PUSH_RETRIES {
            return;
        }
        *tries += 1;
        if let Some(meta) = self.transfers.metas.get(&slice).copied() {
            self.push(cx, to, slice, meta);
        }
    }

    /// Fetches one version from a member that holds it.
    pub(super) fn fetch(
        &mut self,
        cx: &mut Context,
        shard: u16,
        version: &ShardVersion,
        holder: PeerId,
    ) {
        let slice = self.scope.aggregate(shard, version);
        if self.transfers.fetching.insert(slice) {
            let deadline = cx.now + cx.deadlines.ceiling();
            cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from: vec![holder],
                deadline,
            });
        }
    }

    /// A fetch ended.
    pub(in crate::exchange) fn fetched(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        digest: Option<Digest>,
    ) {
        self.transfers.slices.insert(slice);
        if !self.transfers.fetching.remove(&slice) {
            return;
        }
        // Held are only versions with the expected digest. Other bytes under the same name count
        // for nothing.
        let part = self.scope.part_of(&slice);
        let decided = self.agreement.decided.iter();
        let decided = decided.flat_map(|(_, v)| v.get(usize::from(part)));
        let wanted = self.targets.get(usize::from(part)).and_then(|t| t.exact);
        let version = decided
            .copied()
            .chain(wanted)
            .find(|v| Some(v.digest) == digest && self.scope.aggregate(part, v) == slice);
        if let Some(version) = version {
            self.hold(part, version);
        } else if let Some(held) = self.held.get_mut(&part) {
            // These bytes took the place of those that arrived meanwhile under the same name.
            held.retain(|v| Some(v.digest) == digest || self.scope.aggregate(part, v) != slice);
        }
        self.advance(cx);
    }

    /// A fetch failed. Another member may hold the slice, or the next ballot has it reduced again,
    /// so the deadline comes sooner.
    pub(in crate::exchange) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if self.transfers.fetching.remove(&slice) && !self.over() {
            self.deadline = self.deadline.min(cx.now + cx.deadlines.answer());
        }
    }
}
