//! The versions of shards whose bytes this peer holds in one fragment's round.

use super::ballot::{Held, ShardVersion};
use super::state::Target;
use crate::exchange::broke;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::sorted::SortedMap;
use crate::{Digest, Members, PeerError, PeerId};

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
    pub(super) fn came(&mut self, shard: u16, version: ShardVersion) -> Result<(), PeerError> {
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
        if versions.len() >= GROUP_MEMBERS_MAX {
            return broke("too many versions of one shard");
        }
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
