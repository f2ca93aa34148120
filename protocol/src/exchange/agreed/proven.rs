//! Whether the signatures of a decision prove it.

use super::ballot::Ballot;
use super::message::{FragmentMessage, Scoped};
use super::signed_message::SignedMessage;
use super::value::value_of;
use crate::core::context::Context;
use crate::{Digest, GroupTag, PeerId};
use std::collections::BTreeSet;

impl Scoped {
    /// A decision without its proof; the same where there is none.
    pub(crate) fn plain(&self) -> Self {
        let FragmentMessage::Signed(SignedMessage::Decided {
            group, versions, ..
        }) = &self.body
        else {
            return self.clone();
        };
        let members = group.weighted();
        let body = match (members.first(), versions.is_empty()) {
            (Some(first), true) => FragmentMessage::Void {
                ballot: Ballot {
                    number: 0,
                    coordinator: first.peer,
                },
            },
            _ => FragmentMessage::Decided {
                ballot: 0,
                members,
                versions: versions.clone(),
            },
        };
        Self { body, ..*self }
    }
}

/// What a decision with its proof says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proven {
    /// The same without the proof.
    pub(crate) plain: Scoped,
    /// The anchor of the group that decided.
    pub(crate) anchor: Digest,
    /// How many members have signed it. With more than may lie, one that does not lie has signed it in a
    /// group that it accepted, so no other decision of the round can have a proof. With fewer, its teller
    /// sees fewer peers that take part, and need not lie.
    pub(crate) signers: usize,
}

/// What a message says, if it is a decision that its signatures prove.
pub(crate) fn proven(cx: &Context, scoped: &Scoped) -> Option<Proven> {
    let FragmentMessage::Signed(SignedMessage::Decided {
        ballot,
        value,
        group,
        versions,
        locked,
        signatures,
    }) = &scoped.body
    else {
        return None;
    };
    let digest = group.digest(&cx.plan.run, scoped.round);
    let member = |peer: &PeerId| group.members.iter().any(|m| m.peer == *peer);
    let signers: BTreeSet<PeerId> = signatures.iter().map(|(peer, _)| *peer).collect();
    let quorum = cx.plan.quorum_of(usize::from(group.seats));
    let enough = match *locked {
        true => signers.len() >= quorum,
        false => *ballot == 0 && signers.len() == group.members.len(),
    };
    let holds = GroupTag::of_digest(&digest) == scoped.group
        && value_of(&digest, versions) == *value
        && signers.iter().all(member)
        && group.members.len() >= quorum
        && enough;
    holds.then(|| Proven {
        plain: scoped.plain(),
        anchor: group.anchor,
        signers: signers.len(),
    })
}
