//! Whose contributions are in a decision, and what they said of them.

use super::member::Member;
use super::message::{FragmentMessage, Scoped};
use crate::loss::median;
use crate::{ExchangeKind, Loss, PeerId, Taken};

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
    all.filter_map(|member| Some((member.peer, member.taken?)))
        .collect()
}

/// The loss that they agree on; `None` where they say none.
pub(super) fn loss_of(kind: ExchangeKind, decision: &Scoped) -> Option<Loss> {
    let all = contributors(kind, decision).into_iter();
    median(
        all.filter_map(|member| Some((member.loss?, member.weight)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ShardVersion;
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
            weight: 1.0,
            taken: None,
            loss: Some(Loss::of(f64::from(id))),
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
        void.body = FragmentMessage::EmptyRow;
        assert_eq!(loss_of(ExchangeKind::AllReduce, &void), None);
    }
}
