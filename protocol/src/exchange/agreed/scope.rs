//! What a fragment's round is about, and the names and headers that follow from it.

use super::ballot::ShardVersion;
use super::group::Group;
use super::message::{FragmentMessage, Scoped};
use crate::exchange::Ending;
use crate::{
    Attempt, FragmentId, Members, Part, PeerError, Round, SliceId, SliceMeta, StoreId, Tag,
};

/// What a fragment's round is about; it never changes.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    pub(super) group: Group,
    /// Parts that are voted on: shards, or the members' contributions where they are gathered.
    /// There is one shard for each member, and fewer when the fragment is shorter than the group or
    /// when only some members own shards.
    pub(super) of: u16,
    /// Whether a part is a member's whole contribution, as it was encoded.
    pub(super) gathered: bool,
}

impl Scope {
    /// The name of a member's contribution to a shard.
    pub(super) fn contribution(&self, shard: u16, member: usize) -> SliceId {
        SliceId {
            round: self.round,
            fragment: self.fragment,
            shard: if self.gathered { 0 } else { shard },
            part: Part::Contribution,
            origin: self.group.peer(member),
            attempt: Attempt::FIRST,
        }
    }

    /// The name of a version's bytes.
    pub(super) fn aggregate(&self, shard: u16, version: &ShardVersion) -> SliceId {
        SliceId {
            round: self.round,
            fragment: self.fragment,
            shard: if self.gathered { 0 } else { shard },
            part: Part::Aggregate,
            origin: version.owner,
            attempt: version.attempt,
        }
    }

    /// The name of a member's value of a shard in one of its stages.
    pub(super) fn value(&self, shard: u16, member: usize, stage: usize) -> SliceId {
        let contribution = self.contribution(shard, member);
        match stage {
            0 => contribution,
            _ => SliceId {
                part: Part::Partial,
                attempt: Attempt(stage as u8),
                ..contribution
            },
        }
    }

    /// Into how many shards a slice's fragment is cut.
    pub(super) fn cut(&self) -> u16 {
        if self.gathered { 1 } else { self.of }
    }

    /// The part that a slice is of: a shard, or its origin's contribution.
    pub(super) fn part_of(&self, slice: &SliceId) -> u16 {
        match self.gathered {
            true => self.group.index(slice.origin).unwrap_or(0) as u16,
            false => slice.shard,
        }
    }

    /// What members contribute: their training, or their branch.
    pub(super) fn source(&self) -> StoreId {
        match self.group.merges() {
            true => StoreId::Branch,
            false => StoreId::Local,
        }
    }

    /// Where the reduction of a shard is.
    pub(super) fn reduction(&self, shard: u16) -> StoreId {
        match self.group.merges() {
            true => StoreId::Merged(shard),
            false => StoreId::Shard(shard),
        }
    }

    /// How the fragment ends with these aggregates.
    pub(super) fn ending(&self, aggregates: Vec<SliceId>) -> Ending {
        match self.group.merges() {
            true => Ending::Merge(aggregates),
            false => Ending::Apply(aggregates),
        }
    }

    /// Whether a version says that a member's contribution is left out.
    pub(super) fn left_out(&self, version: &ShardVersion) -> bool {
        self.gathered && version.contributors.is_empty()
    }

    /// The header of this peer's contributions.
    pub(super) fn contribution_meta(&self, bytes: u64) -> SliceMeta {
        let group = self.group.tag;
        SliceMeta {
            of: self.cut(),
            bytes,
            tag: Tag::Contribution { group },
        }
    }

    /// The header of a mean of these members' contributions.
    pub(super) fn mean_meta(&self, bytes: u64, members: Members) -> SliceMeta {
        let group = self.group.tag;
        SliceMeta {
            of: self.cut(),
            bytes,
            tag: Tag::Mean { group, members },
        }
    }

    /// Samples behind these members' contributions.
    pub(super) fn weight(&self, set: Members) -> f64 {
        let known = set.iter().filter_map(|i| self.group.members.get(i));
        known.map(|member| member.weight).sum()
    }

    /// A message about this fragment in this group.
    pub(super) fn scoped(&self, body: FragmentMessage) -> Scoped {
        Scoped {
            round: self.round,
            fragment: self.fragment,
            group: self.group.tag,
            body,
        }
    }
}

/// The error for a slice or a message that breaks a rule.
pub(super) fn broke<T>(what: &str) -> Result<T, PeerError> {
    Err(PeerError::Unexpected {
        what: what.to_owned(),
    })
}
