//! Names of what travels: slices of fragments, and what a receiver must know about one.

use crate::limits::JOINED_GROUPS_MAX;
use crate::{FragmentId, GroupTag, Members, PeerId, Round, Taken};
use serde::{Deserialize, Serialize};

/// Which way a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// From a member to the peer that reduces or mixes it.
    Contribution,
    /// From a shard's owner back to the members: what they vote on by its hash. Where contributions
    /// are gathered, each of them as it is; between neighbours with replicas the whole parameters,
    /// which a session begins with.
    Aggregate,
    /// From member to member along a schedule: the mean of some contributions.
    Partial,
    /// In a grid: from the member that sums its row's contributions to the owner of a part in its
    /// column.
    RowMean,
    /// In a grid: the decided parts of a column's shard, handed on to the rows. Its origin is the
    /// first member of the column, whichever member made it: all make the same bytes.
    Bundle,
    /// In an exchange of two passes: what a shard's owner makes of the first contributions. Members encode
    /// their second ones for it.
    Basis,
    /// In an exchange of two passes: a member's second contribution, for the basis of this attempt.
    Second,
    /// Where contributions are admitted by scores: what a member says about those of the others. It is voted
    /// on as contributions are.
    Scores,
}

impl Part {
    /// Returns `true` if peers vote on its hash, or were told the hash that won the vote.
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Aggregate | Self::Bundle | Self::Scores)
    }
}

/// Tells slices apart that agree in everything else: see [`SliceId::attempt`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Attempt(pub u8);

impl Attempt {
    /// The first attempt: ballot zero of an agreed exchange.
    pub const FIRST: Self = Self(0);

    /// In a grid: a column found no result, and its bundle has no bytes.
    pub const VOID: Self = Self(u8::MAX);
}

/// A slice: what travels of one fragment, from one peer, in one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SliceId {
    /// The round it belongs to.
    pub round: Round,
    /// The fragment it was cut from.
    pub fragment: FragmentId,
    /// Which of the fragment's equal shards, from zero.
    pub shard: u16,
    /// Which way it goes.
    pub part: Part,
    /// The peer that encoded it. Schedules in which all members make the same aggregate name one.
    pub origin: PeerId,
    /// Tells slices apart that agree in everything else.
    ///
    /// - Of an aggregate, a basis or a second contribution: the number of the ballot in which its shard was
    ///   reduced.
    /// - Of a partial sum: the step of its sender's part in the schedule.
    /// - In other exchanges: a tag of the sender's life, so that a slice pushed before a restart is
    ///   not taken for one pushed after it; between neighbours also which of the round's slices.
    pub attempt: Attempt,
}

/// What the receiver of a slice must know beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceMeta {
    /// Into how many shards the fragment is cut; the slice's shard is below it.
    pub of: u16,
    /// Encoded bytes.
    pub bytes: u64,
    /// What the slice is in its exchange.
    pub tag: Tag,
}

/// What a slice is in its exchange. A run has one exchange, and its peers use no other's tags.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Tag {
    /// In a group that agrees: one member's contribution to a shard.
    Contribution {
        /// The group it was made for.
        group: GroupTag,
    },
    /// In a group that agrees: the weighted mean of some members' contributions, which is a partial
    /// sum or an aggregate.
    Mean {
        /// The group it was made for.
        group: GroupTag,
        /// Whose contributions are in it.
        members: Members,
    },
    /// In a grid: one peer's contribution to a shard, for its row.
    Share {
        /// The roll, round and anchor that it was made for.
        group: GroupTag,
        /// Samples behind it.
        weight: f64,
        /// The data behind it, where peers agree on the data.
        taken: Option<Taken>,
    },
    /// In a grid: a part of the mean of a row's contributions, for its column.
    RowMean {
        /// The column that it was made for.
        group: GroupTag,
        /// Samples behind it.
        weight: f64,
    },
    /// In a grid: what a column decided, for a peer of its member's row.
    Result {
        /// The roll, round and anchor that it was made for.
        group: GroupTag,
        /// The rows whose contributions are in every part.
        rows: Members,
        /// Set if the receiver's contribution is in it.
        counted: bool,
    },
    /// In gossip: parameters with a share of their sender's push-sum weight.
    Mass {
        /// The push-sum weight that travels with them.
        weight: f64,
    },
    /// Between two neighbours: one half of an exchange; or a numbered difference, the same to all
    /// neighbours.
    Half {
        /// The session of the two neighbours, from one. Of differences one more than the sender's
        /// life.
        session: u32,
        /// The number of the exchange in its session, from zero. Of differences their number, or
        /// that of the one after a whole copy.
        exchange: u32,
        /// The share that its sender offers to mix with, from zero to one.
        share: f64,
    },
    /// Along a spanning tree: the mean of the parameters on the sender's side of the link.
    Relayed {
        /// Set on the way towards the root.
        up: bool,
        /// How many peers' parameters it is the mean of.
        peers: u32,
    },
    /// Where parameters are pulled: what the sender published last.
    Answer {
        /// The round in which the receiver asked.
        round: Round,
    },
    /// To the owner of a shard of the center: a worker's contribution.
    Update {
        /// The version of the shard that the worker trained from.
        base: u64,
        /// The worker's round.
        round: Round,
    },
    /// From the owner of a shard of the center: the shard.
    Version {
        /// Its version.
        version: u64,
        /// The worker's round.
        round: Round,
    },
    /// To a new owner of a shard of the center: a worker's copy of the shard.
    Copy {
        /// Its version.
        version: u64,
    },
    /// Where groups are pulled from: the mean of a group, from the member that made it.
    GroupMean {
        /// The round of the mean.
        round: Round,
        /// How many members' parameters it is the mean of.
        parts: u32,
        /// The round of the receiver's parameters in it; `None` where they are not.
        own: Option<Round>,
    },
}

impl Tag {
    /// The tag's name in messages and in `docs/wire.md`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Contribution { .. } => "contribution",
            Self::Mean { .. } => "mean",
            Self::Share { .. } => "share",
            Self::RowMean { .. } => "row-mean",
            Self::Result { .. } => "result",
            Self::Mass { .. } => "mass",
            Self::Half { .. } => "half",
            Self::Relayed { .. } => "relayed",
            Self::Answer { .. } => "answer",
            Self::Update { .. } => "update",
            Self::Version { .. } => "version",
            Self::Copy { .. } => "copy",
            Self::GroupMean { .. } => "group-mean",
        }
    }

    /// The group that the slice was made for, in an exchange whose groups agree.
    pub const fn group(&self) -> Option<GroupTag> {
        match self {
            Self::Contribution { group }
            | Self::Mean { group, .. }
            | Self::Share { group, .. }
            | Self::RowMean { group, .. }
            | Self::Result { group, .. } => Some(*group),
            _ => None,
        }
    }
}

/// How a push ended, as its sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushOutcome {
    /// The receiver acknowledged it.
    Delivered,
    /// It certainly did not arrive.
    Lost,
    /// The receiver declined it.
    Refused,
    /// The link died with the slice under way: it may have arrived.
    Unknown,
}

/// What happened to a slice's content, as the peers agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settlement {
    /// It is part of the applied result: the residual is committed.
    Delivered,
    /// It is not: the decoded contribution goes back into the residual.
    Lost,
}

/// The groups that a peer has been in since its round began.
///
/// A slice that came for a group that its receiver never joined makes way for one of another group: its
/// sender is in the next attempt at the round. Once the receiver has been in a slice's group, members vote
/// on its bytes, and a second push must not replace them.
#[derive(Clone, Debug, Default)]
pub struct JoinedGroups {
    round: Round,
    joined: Vec<GroupTag>,
}

impl JoinedGroups {
    /// The peer is in this round, and in this group.
    pub fn note(&mut self, round: Round, group: Option<GroupTag>) {
        if round != self.round {
            self.round = round;
            self.joined.clear();
        }
        if let Some(group) = group
            && !self.joined.contains(&group)
            && self.joined.len() < JOINED_GROUPS_MAX
        {
            self.joined.push(group);
        }
    }

    /// Returns `true` if a push with the tag `new` replaces the slice that is here with the tag `here`.
    pub fn replaces(&self, slice: &SliceId, here: Tag, new: Tag) -> bool {
        let (Some(here), Some(new)) = (here.group(), new.group()) else {
            return false;
        };
        let unused = slice.round >= self.round && !self.joined.contains(&here);
        new != here && unused && self.joined.len() < JOINED_GROUPS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, FragmentId, Part, PeerId};

    fn tag(group: u64) -> Tag {
        Tag::Contribution {
            group: GroupTag::from_bits(group),
        }
    }

    fn slice(round: u64) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part: Part::Contribution,
            origin: PeerId::from_bytes([1; 32]),
            attempt: Attempt(0),
        }
    }

    #[test]
    fn what_came_for_a_group_that_was_never_joined_makes_way() {
        let mut groups = JoinedGroups::default();
        groups.note(Round(5), None);
        assert!(groups.replaces(&slice(5), tag(1), tag(2)));
        assert!(
            !groups.replaces(&slice(5), tag(1), tag(1)),
            "the same group"
        );
        groups.note(Round(5), Some(GroupTag::from_bits(1)));
        assert!(!groups.replaces(&slice(5), tag(1), tag(2)), "in use");
        groups.note(Round(5), None);
        assert!(!groups.replaces(&slice(5), tag(1), tag(2)), "applied");
        assert!(
            groups.replaces(&slice(6), tag(3), tag(4)),
            "of the next round"
        );
        groups.note(Round(6), None);
        assert!(
            !groups.replaces(&slice(5), tag(3), tag(4)),
            "of a round before"
        );
    }

    #[test]
    fn after_too_many_groups_nothing_is_replaced() {
        let mut groups = JoinedGroups::default();
        (0..=JOINED_GROUPS_MAX as u64)
            .for_each(|g| groups.note(Round(0), Some(GroupTag::from_bits(g))));
        let last = JOINED_GROUPS_MAX as u64;
        assert!(!groups.replaces(&slice(0), tag(last), tag(last + 1)));
    }
}
