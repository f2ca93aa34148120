//! The parts of a fragment's state, each with one concern: the versions whose bytes this peer holds, the shards
//! that it reduces, and the slices on their way.

use super::member::{Held, ShardVersion};
use crate::core::context::Context;
use crate::exchange::{broke, forbid};
use crate::limits::GROUP_MEMBERS_MAX;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Checked, Digest, Members, Order, OrderId, PeerId, Score, Scores, SliceId, SliceMeta,
    Time,
};
use core::time::Duration;

/// An order whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Encode this peer's contribution to a shard.
    Contribution(u16),
    /// Reduce a shard, in this attempt.
    Combine(u16, Attempt),
    /// Encode the aggregate of a shard, in this attempt.
    Aggregate(u16, Attempt),
    /// Put the note behind the aggregate of a shard.
    Noted(u16, Attempt),
    /// Encode the basis of a shard, in this attempt.
    Basis(u16, Attempt),
    /// Encode this peer's second contribution to a shard, in this attempt.
    Second(u16, Attempt),
    /// Add the values of one stage of the schedule.
    Fold(u16),
    /// Encode the sum.
    Value(u16),
    /// Put a member's contribution aside to be measured; none: the anchor.
    Stage(Option<u16>),
    /// Measure the loss of the parameters that were put aside.
    Measure(Option<u16>),
    /// Read what a member says, by its part.
    Read(u16),
}

/// Stage of a fragment's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentStage {
    /// Waits for contributions to its shards.
    Collecting,
    /// Waits for aggregates and votes.
    Gathering,
    /// Takes part in a ballot above zero.
    Repairing,
}

/// The version of a shard that the current ballot is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) owner: usize,
    pub(super) attempt: Attempt,
    /// Known when the ballot keeps a version that some member holds.
    pub(super) exact: Option<ShardVersion>,
}

/// This peer's own work on a fragment: its contributions and the shards it reduces.
#[derive(Debug, Default)]
pub(super) struct Reduction {
    /// Orders whose answers are awaited.
    pub(super) tasks: SortedMap<OrderId, Task>,
    /// Encoded bytes of this peer's contribution to each shard.
    pub(super) encoded: SortedMap<u16, u64>,
    /// Whose contributions are here, shard by shard.
    pub(super) here: SortedMap<u16, Members>,
    /// Shards this peer reduces.
    pub(super) duties: SortedMap<u16, Duty>,
    pub(super) seconds: SortedMap<(u16, Attempt), Members>,
    /// Bases that are here and not answered: of each shard by attempt and owner.
    pub(super) bases: SortedMap<(u16, Attempt), PeerId>,
    pub(super) scores: ScoringState,
}

impl Reduction {
    /// Orders work of the Executor.
    pub(super) fn order(&mut self, cx: &mut Context, order: Order, task: Task) {
        self.tasks.insert(cx.order(order), task);
    }
}

/// The slices of a fragment: those that the Executor holds, those pushed and those fetched.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// Slices whose bytes the Executor holds for this exchange.
    pub(super) slices: SortedSet<SliceId>,
    /// The headers of pushed slices, to push them again.
    pub(super) metas: SortedMap<SliceId, SliceMeta>,
    pub(super) retries: SortedMap<(PeerId, SliceId), u8>,
    pub(super) fetching: SortedSet<SliceId>,
    /// Digest of each part that its first owner sent this peer itself.
    pub(super) given: SortedMap<u16, Digest>,
    /// Members whose bytes had not all come when a wait for them ended.
    pub(super) overdue: Members,
    /// Searches for decided slices that this peer lacks.
    pub(super) searches: u8,
    /// The member that was asked last which versions a majority voted for.
    pub(super) asked: Option<PeerId>,
}

/// Progress of the reduction of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Collecting,
    Combining,
    Encoding,
    Done,
}

/// Inputs of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Contributions.
    First,
    /// Second contributions, for the basis that this peer made of the first ones.
    Second,
    /// This peer's scores of the others' contributions.
    Scores,
}

/// A shard that this peer reduces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duty {
    pub(super) attempt: Attempt,
    /// Members whose contribution is waited for.
    pub(super) expected: Members,
    /// Members whose contribution is in the reduction.
    pub(super) included: Members,
    pub(super) progress: Progress,
    pub(super) pass: Pass,
}

impl Duty {
    pub(super) fn new(attempt: Attempt, expected: Members) -> Self {
        Self {
            attempt,
            expected,
            included: Members::NONE,
            progress: Progress::Collecting,
            pass: Pass::First,
        }
    }

    /// This peer's contribution as it is, that is being encoded.
    pub(super) fn offer(me: usize) -> Self {
        Self {
            included: Members::one(me),
            progress: Progress::Encoding,
            ..Self::new(Attempt::FIRST, Members::NONE)
        }
    }

    pub(super) fn done(&self) -> bool {
        self.progress == Progress::Done
    }
}

/// How many times its own scoring time a member waits for the others: machines differ.
const PATIENCE: u32 = 3;

/// This peer's evaluation of the others' contributions, and what all say.
#[derive(Debug, Default)]
pub(super) struct ScoringState {
    /// Members whose contributions are still to be evaluated, the next one last.
    pub(super) queue: Vec<usize>,
    /// The loss at the anchor.
    pub(super) before: Option<f64>,
    pub(super) own: SortedMap<usize, Score>,
    pub(super) began: Time,
    pub(super) took: Duration,
    /// Decided scores that are being read; `None` until that begins.
    pub(super) unread: Option<SortedSet<u16>>,
    pub(super) said: SortedMap<PeerId, Scores>,
}

impl ScoringState {
    /// Time that this peer waits for others beside the usual wait, because they score, too.
    pub(super) fn patience(&self) -> Duration {
        self.took * PATIENCE
    }
}

/// Versions by shard. Bounded: of each shard one for each member and ballot, and at most [`GROUP_MEMBERS_MAX`] that
/// others sent.
#[derive(Debug, Default)]
pub(super) struct Holdings(SortedMap<u16, Vec<ShardVersion>>);

impl Holdings {
    fn of(&self, shard: u16) -> &[ShardVersion] {
        self.0.get(&shard).map_or(&[], Vec::as_slice)
    }

    pub(super) fn hold(&mut self, shard: u16, version: ShardVersion) {
        let versions = self.0.entry(shard).or_default();
        // The bytes of an earlier version with the same name were overwritten.
        versions.retain(|v| (v.owner, v.attempt) != (version.owner, version.attempt));
        versions.push(version);
    }

    /// The bytes of a version came from the member that made it.
    ///
    /// # Errors
    /// If it made other bytes under this name before, or there are too many versions.
    pub(super) fn came(&mut self, shard: u16, version: ShardVersion) -> Checked {
        let versions = self.0.entry(shard).or_default();
        let same = |v: &ShardVersion| (v.owner, v.attempt) == (version.owner, version.attempt);
        if versions
            .iter()
            .any(|v| same(v) && v.digest != version.digest)
        {
            // The others may have got either of them, so this peer holds neither.
            versions.retain(|v| !same(v));
            return broke("two versions of one shard under one name");
        }
        forbid(
            versions.len() >= GROUP_MEMBERS_MAX,
            "too many versions of one shard",
        )?;
        self.hold(shard, version);
        Ok(())
    }

    /// Bytes with this digest, which no one asked for, took the place of others with the same name.
    pub(super) fn overwritten(
        &mut self,
        shard: u16,
        digest: Option<Digest>,
        same: impl Fn(&ShardVersion) -> bool,
    ) {
        if let Some(versions) = self.0.get_mut(&shard) {
            versions.retain(|v| Some(v.digest) == digest || !same(v));
        }
    }

    /// A ballot leaves a member's contribution out. This version has no bytes to hold.
    pub(super) fn do_without(&mut self, part: u16, version: ShardVersion) {
        let versions = self.0.entry(part).or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }

    pub(super) fn has(&self, shard: u16, version: &ShardVersion) -> bool {
        self.of(shard).contains(version)
    }

    /// The version of a shard that a target names, if it is here. `owner` is the target's.
    pub(super) fn fitting(
        &self,
        shard: u16,
        target: &Target,
        owner: PeerId,
    ) -> Option<ShardVersion> {
        let fits = |v: &&ShardVersion| match target.exact {
            Some(exact) => **v == exact,
            None => v.owner == owner && v.attempt == target.attempt,
        };
        self.of(shard).iter().find(fits).copied()
    }

    /// A version with contributors, where parts are the members' contributions.
    pub(super) fn contribution(&self, part: u16) -> Option<&ShardVersion> {
        let mut versions = self.of(part).iter();
        versions.find(|version| !version.contributors.is_empty())
    }

    /// Members, of this number, whose contributions are here, where parts are contributions.
    pub(super) fn contributed(&self, members: usize) -> Members {
        let here = |index: &usize| self.contribution(*index as u16).is_some();
        (0..members).filter(here).collect()
    }

    /// The newest version of each shard.
    pub(super) fn newest(&self) -> Vec<Held> {
        let newest = self.0.iter().filter_map(|(shard, versions)| {
            let version = *versions.iter().max_by_key(|v| v.attempt)?;
            let shard = *shard;
            Some(Held { shard, version })
        });
        newest.collect()
    }
}
