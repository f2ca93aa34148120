//! A member of a group.

use super::said::Said;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::wire::{WireError, check};
use crate::{Loss, PeerId, Taken};
use serde::{Deserialize, Serialize};

/// A member of a group with the weight of its contribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "(PeerId, Said)", from = "(PeerId, Said)")]
pub struct Member {
    /// The peer.
    pub peer: PeerId,
    /// Samples it trained on this round.
    pub weight: f64,
    /// The data behind its contribution, where peers agree on the data.
    pub taken: Option<Taken>,
    /// The mean training loss of its round, where the pace follows it.
    pub loss: Option<Loss>,
}

impl From<Member> for (PeerId, Said) {
    fn from(member: Member) -> Self {
        let Member {
            peer,
            weight,
            taken,
            loss,
        } = member;
        let said = Said {
            weight,
            taken,
            loss,
        };
        (peer, said)
    }
}

impl From<(PeerId, Said)> for Member {
    fn from((peer, said): (PeerId, Said)) -> Self {
        let Said {
            weight,
            taken,
            loss,
        } = said;
        Self {
            peer,
            weight,
            taken,
            loss,
        }
    }
}

/// What holds for the members of any group.
pub(super) fn group(members: &[Member]) -> Result<(), WireError> {
    check::ok(
        !members.is_empty() && members.len() <= GROUP_MEMBERS_MAX,
        "members",
    )?;
    check::ok(
        members.iter().all(|m| check::weight_ok(m.weight)),
        "members.weight",
    )?;
    check::ok(
        members.is_sorted_by(|a, b| a.peer < b.peer),
        "members.order",
    )
}
