//! Which of two pushes of one name stays at its receiver.

use crate::limits::JOINED_GROUPS_MAX;
use crate::{GroupTag, Round, SliceId, Tag};

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

    /// Whether a push with the tag `new` replaces the slice that is here with the tag `here`.
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
