//! What a decision says: whose contributions are in it and what they said of them, which bytes it names, and whether
//! its signatures prove it.

use super::member::{Ballot, Member, ShardVersion, value_of};
use super::message::{FragmentMessage, Scoped};
use super::signed_message::SignedMessage;
use crate::core::context::Context;
use crate::loss::median;
use crate::sorted::SortedSet;
use crate::{Attempt, Digest, ExchangeKind, GroupTag, Loss, Members, Part, PeerId, SliceId, Taken};

/// The members whose contributions are in every part of a decision.
fn contributors(kind: ExchangeKind, decision: &Scoped) -> Vec<&Member> {
    let FragmentMessage::Decided {
        members, versions, ..
    } = &decision.body
    else {
        return Vec::new();
    };
    let is_in = |index: usize| match kind {
        ExchangeKind::Gathered => versions
            .get(index)
            .is_some_and(|v| !v.contributors.is_empty()),
        _ => versions.iter().all(|v| v.contributors.has(index)),
    };
    let all = members.iter().enumerate();
    all.filter(|(index, _)| is_in(*index))
        .map(|(_, member)| member)
        .collect()
}

/// The data behind each of these contributions.
pub(super) fn taken_in(kind: ExchangeKind, decision: &Scoped) -> Vec<(PeerId, Taken)> {
    let all = contributors(kind, decision).into_iter();
    all.filter_map(|member| Some((member.peer, member.said.taken?)))
        .collect()
}

/// The loss that they agree on; `None` where they say none.
pub(super) fn loss_of(kind: ExchangeKind, decision: &Scoped) -> Option<Loss> {
    let all = contributors(kind, decision).into_iter();
    median(
        all.filter_map(|member| Some((member.said.loss?, member.said.weight)))
            .collect(),
    )
}

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

/// A decision that its signatures prove.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proven {
    /// The same without the proof.
    pub(crate) plain: Scoped,
    pub(crate) anchor: Digest,
    /// Number of members that have signed it. With more than may lie, one that does not lie has signed it in a
    /// group that it accepted, so no other decision of the round can have a proof. With fewer, its teller
    /// sees fewer peers that take part, and need not lie.
    pub(crate) signers: usize,
}

/// The decision in a message, if its signatures prove it.
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
    // A signature that is listed twice counts once.
    let signers: SortedSet<PeerId> = signatures.iter().map(|(peer, _)| *peer).collect();
    let quorum = cx.plan.quorum_of(usize::from(group.seats));
    // Locks of a quorum decide in any ballot; votes only in ballot zero, and only all of them.
    let enough = if *locked {
        signers.len() >= quorum
    } else {
        *ballot == 0 && signers.len() == group.members.len()
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

pub(crate) fn slices_of(kind: ExchangeKind, decision: &Scoped) -> Vec<SliceId> {
    named(kind, decision).map(|(slice, _)| slice).collect()
}

/// The same with their hashes. A column without a result has no bytes.
pub(crate) fn digests_of(kind: ExchangeKind, decision: &Scoped) -> Vec<(SliceId, Digest)> {
    let all = named(kind, decision);
    all.filter(|(slice, _)| slice.attempt != Attempt::VOID)
        .collect()
}

/// Slices that a decision names, with their hashes: shards, gathered contributions, or the bundles of columns.
fn named(kind: ExchangeKind, decision: &Scoped) -> impl Iterator<Item = (SliceId, Digest)> {
    let gathered = kind == ExchangeKind::Gathered;
    let (versions, part) = match &decision.body {
        FragmentMessage::Decided { versions, .. } => (versions.as_slice(), Part::Aggregate),
        FragmentMessage::Collected { versions, .. } => (versions.as_slice(), Part::Bundle),
        _ => (&[][..], Part::Aggregate),
    };
    // Behind the contributions of all members come their scores, if there are any.
    let contributions = match &decision.body {
        FragmentMessage::Decided { members, .. } if gathered => members.len(),
        _ => versions.len(),
    };
    let (round, fragment) = (decision.round, decision.fragment);
    let name = move |(shard, version): (u16, &ShardVersion)| {
        let slice = SliceId {
            round,
            fragment,
            shard: if gathered { 0 } else { shard },
            part: if usize::from(shard) < contributions {
                part
            } else {
                Part::Scores
            },
            origin: version.owner,
            attempt: version.attempt,
        };
        (slice, version.digest)
    };
    let all = (0u16..).zip(versions);
    let present = all.filter(move |(_, version)| !gathered || !version.contributors.is_empty());
    present.map(name)
}

pub(crate) fn scores_of(decision: &Scoped) -> Vec<SliceId> {
    let all = slices_of(ExchangeKind::Gathered, decision).into_iter();
    all.filter(|slice| slice.part == Part::Scores).collect()
}

/// The contributions that a decision names, with their members' weights.
pub(crate) fn inputs_of(decision: &Scoped) -> Vec<(SliceId, f64)> {
    let FragmentMessage::Decided { members, .. } = &decision.body else {
        return Vec::new();
    };
    let weight = |peer| {
        members
            .iter()
            .find(|m| m.peer == peer)
            .map(|m| m.said.weight)
    };
    let slices = slices_of(ExchangeKind::Gathered, decision).into_iter();
    slices
        .filter(|slice| slice.part != Part::Scores)
        .map(|slice| (slice, weight(slice.origin).unwrap_or(0.0)))
        .collect()
}

pub(super) fn weight_of(decision: &Scoped) -> f64 {
    let FragmentMessage::Decided {
        members, versions, ..
    } = &decision.body
    else {
        return 0.0;
    };
    let all = versions.iter().map(|version| version.contributors);
    let contributors = all.fold(Members::NONE, |all, some| all | some);
    contributors
        .iter()
        .filter_map(|index| members.get(index))
        .map(|member| member.said.weight)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Said, ShardVersion};
    use crate::{Attempt, Digest, FragmentId, GroupTag, Members, Round};

    fn decision(contributors: &[u64]) -> Scoped {
        let peer = |id: u8| PeerId::from_bytes([id; 32]);
        let version = |bits: &u64| ShardVersion {
            owner: peer(0),
            attempt: Attempt(0),
            contributors: Members::from_bits(*bits),
            digest: Digest::of(b"shard"),
        };
        let member = |id: u8| Member {
            peer: peer(id),
            said: Said {
                loss: Some(Loss::of(f64::from(id))),
                ..Said::new(1.0)
            },
        };
        Scoped {
            round: Round(1),
            fragment: FragmentId(0),
            group: GroupTag::from_bits(1),
            body: FragmentMessage::Decided {
                ballot: 0,
                members: (0..5).map(member).collect(),
                versions: contributors.iter().map(version).collect(),
            },
        }
    }

    #[test]
    fn a_loss_counts_if_its_contribution_is_in_every_part() {
        let of = |bits: &[u64]| loss_of(ExchangeKind::AllReduce, &decision(bits));
        assert_eq!(of(&[0b11111, 0b11111]), Some(Loss::of(2.0)));
        assert_eq!(of(&[0b11001, 0b11111]), Some(Loss::of(3.0)));
        assert_eq!(of(&[0b00011, 0b11100]), None);
        // Where contributions are shown, each part is one.
        let shown = decision(&[0b1, 0b10, 0, 0, 0b10000]);
        let found = loss_of(ExchangeKind::Gathered, &shown);
        assert_eq!(found, Some(Loss::of(1.0)));
    }

    #[test]
    fn a_void_round_has_no_loss() {
        let mut void = decision(&[0b11111]);
        void.body = FragmentMessage::Nothing;
        assert_eq!(loss_of(ExchangeKind::AllReduce, &void), None);
    }
}
