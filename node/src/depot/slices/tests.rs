//! Tests of the bounds of stored slices.

use super::*;
use murmurate_protocol::{
    BytesBound, Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentId, FragmentPlan,
    LayoutHash, RunId, StepBudget,
};

pub(in crate::depot) fn plan() -> Plan {
    let bound = BytesBound {
        fixed: 8,
        per_1024: 4096,
    };
    Plan {
        run: RunId::from_bytes([1; 32]),
        layout: LayoutHash::from_bytes([2; 32]),
        recipe: Digest::from_bytes([3; 32]),
        exchange: ExchangeKind::AllReduce,
        schedule: murmurate_protocol::Schedule::Butterfly,
        contribution: Contribution::Delta,
        budget: StepBudget::Steps(1),
        synchronization: murmurate_protocol::Synchronization::default(),
        rounds: 0,
        fragments: vec![FragmentPlan {
            len: 100,
            contribution: bound,
            aggregate: bound,
        }],
        overlap: murmurate_protocol::OverlapPlan::NONE,
        deadlines: DeadlinePlan::default(),
        state_bytes: 1000,
        agreement: murmurate_protocol::AgreementPlan::default(),
    }
}

pub(in crate::depot) fn slice(round: u64, shard: u16) -> SliceId {
    SliceId {
        round: Round(round),
        fragment: FragmentId(0),
        shard,
        part: Part::Contribution,
        origin: PeerId::from_bytes([9; 32]),
        attempt: murmurate_protocol::Attempt(0),
    }
}

fn meta(of: u16, bytes: u64) -> SliceMeta {
    SliceMeta {
        of,
        bytes,
        tag: Tag::Mass { weight: 1.0 },
    }
}

#[test]
fn peers_get_a_slice_only_after_it_has_a_header() {
    let mut slices = Slices::default();
    slices.put_own(slice(0, 1), Bytes::from_static(b"four"));
    assert_eq!(slices.get(&slice(0, 1)), None);
    assert_eq!(slices.bytes_of(&slice(0, 1)).unwrap(), "four");
    let described = slices.describe(&slice(0, 1), meta(2, 0)).unwrap();
    assert_eq!(described, meta(2, 4));
    assert_eq!(slices.get(&slice(0, 1)).unwrap().0, described);
}

/// A daemon that comes back would ask for it again and again.
#[test]
fn the_aggregate_of_a_group_of_one_is_served() {
    let mut slices = Slices::default();
    let aggregate = SliceId {
        part: Part::Aggregate,
        ..slice(3, 0)
    };
    slices.put_own(aggregate, Bytes::from_static(b"four"));
    let (header, bytes) = slices.get(&aggregate).unwrap();
    assert_eq!((header.of, header.bytes, &bytes[..]), (1, 4, &b"four"[..]));
    let other = Slices::default();
    let from = aggregate.origin;
    assert_eq!(other.accepts(&plan(), from, &aggregate, &header), Ok(()));
}

/// A center names its replies by its versions, which change in every worker's round.
#[test]
fn a_center_s_versions_are_no_rounds() {
    let center = murmurate_protocol::CenterPlan {
        owners: 2,
        lead: None,
        buffer: 1,
    };
    let plan = Plan {
        exchange: ExchangeKind::Center(center),
        ..plan()
    };
    let from = PeerId::from_bytes([9; 32]);
    let reply = SliceId {
        part: Part::Aggregate,
        ..slice(10_000, 1)
    };
    let accepted = Slices::default().accepts(&plan, from, &reply, &meta(2, 208));
    assert_eq!(accepted, Ok(()));
}

#[test]
fn only_what_the_plan_allows_is_taken() {
    let (plan, from) = (plan(), PeerId::from_bytes([9; 32]));
    let mut slices = Slices::default();
    assert_eq!(
        slices.accepts(&plan, from, &slice(0, 1), &meta(2, 208)),
        Ok(())
    );
    for (id, meta, refusal) in [
        (slice(0, 2), meta(2, 10), Refusal::Unwanted),
        (slice(0, 0), meta(0, 10), Refusal::Unwanted),
        (slice(0, 0), meta(65, 10), Refusal::Unwanted),
        (slice(1000, 0), meta(2, 10), Refusal::Unwanted),
        (slice(0, 0), meta(2, 209), Refusal::TooLong),
    ] {
        assert_eq!(
            slices.accepts(&plan, from, &id, &meta),
            Err(refusal),
            "{id:?} {meta:?}"
        );
    }
    slices.put_from(from, slice(0, 1), meta(2, 3), Bytes::from_static(b"abc"));
    let again = slices.accepts(&plan, from, &slice(0, 1), &meta(2, 3));
    assert_eq!(again, Err(Refusal::AlreadyHere));
    assert_eq!(slices.bytes, 3);
    slices.remove(&slice(0, 1));
    assert_eq!(slices.bytes, 0);
}

#[test]
fn one_sender_cannot_fill_the_depot() {
    let (plan, from) = (plan(), PeerId::from_bytes([9; 32]));
    let mut slices = Slices::default();
    for i in 0..SLICES_PER_SENDER_MAX {
        let id = SliceId {
            attempt: murmurate_protocol::Attempt((i % 250) as u8),
            ..slice(0, (i / 250) as u16)
        };
        slices.put_from(from, id, meta(64, 0), Bytes::new());
    }
    let one_more = slices.accepts(&plan, from, &slice(1, 0), &meta(2, 1));
    assert_eq!(one_more, Err(Refusal::Full));
    let other = PeerId::from_bytes([8; 32]);
    let theirs = SliceId {
        origin: other,
        ..slice(1, 0)
    };
    assert_eq!(slices.accepts(&plan, other, &theirs, &meta(2, 1)), Ok(()));
}

/// A model of 8 MB, of which four strangers once parked 400 MB.
#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut plan = plan();
    plan.fragments[0].len = 2 << 20;
    let bytes = 8 << 20;
    let body = Bytes::from(vec![0; bytes as usize]);
    let mut slices = Slices::default();
    let mut push = |id: u8, at: u8| {
        let from = PeerId::from_bytes([id; 32]);
        let name = SliceId {
            origin: from,
            attempt: murmurate_protocol::Attempt(at),
            ..slice(0, 0)
        };
        slices.accepts(&plan, from, &name, &meta(1, bytes))?;
        assert!(slices.put_from(from, name, meta(1, bytes), body.clone()));
        Ok(())
    };
    for at in 0..8 {
        assert_eq!(push(0, at), Ok(()), "64 MiB of one sender");
    }
    assert_eq!(push(0, 8), Err(Refusal::Full));
    for id in 1..16 {
        for at in 0..8 {
            assert_eq!(push(id, at), Ok(()));
        }
    }
    assert_eq!(push(16, 0), Err(Refusal::NoRoom), "1 GiB of all");
    // What is released makes room.
    let first = SliceId {
        origin: PeerId::from_bytes([0; 32]),
        ..slice(0, 0)
    };
    slices.remove(&first);
    let from = PeerId::from_bytes([16; 32]);
    let theirs = SliceId {
        origin: from,
        ..slice(0, 0)
    };
    assert_eq!(
        slices.accepts(&plan, from, &theirs, &meta(1, bytes)),
        Ok(())
    );
}

/// Members vote on the first bytes: a second push of the name that ran beside it must not change
/// what they apply.
#[test]
fn a_second_push_replaces_nothing_and_a_fetch_does() {
    let from = PeerId::from_bytes([9; 32]);
    let mut slices = Slices::default();
    let meta = meta(2, 5);
    assert!(slices.put_from(from, slice(0, 1), meta, Bytes::from_static(b"first")));
    assert!(!slices.put_from(from, slice(0, 1), meta, Bytes::from_static(b"other")));
    assert_eq!(slices.bytes_of(&slice(0, 1)).unwrap(), "first");
    slices.put_fetched(from, slice(0, 1), meta, Bytes::from_static(b"voted"));
    assert_eq!(slices.bytes_of(&slice(0, 1)).unwrap(), "voted");
    assert_eq!((slices.bytes, slices.parked), (5, 5));
}

/// A group formed without this peer and failed. In the next attempt at the round its members push the
/// same names again.
#[test]
fn what_came_for_a_group_that_was_never_joined_makes_way() {
    let from = PeerId::from_bytes([9; 32]);
    let of = |group: u64| SliceMeta {
        tag: Tag::Contribution {
            group: GroupTag::from_bits(group),
        },
        ..meta(2, 5)
    };
    let mut slices = Slices::default();
    slices.set_round(Round(3), None);
    let name = slice(3, 1);
    assert!(slices.put_from(from, name, of(1), Bytes::from_static(b"first")));
    assert_eq!(
        slices.accepts(&plan(), from, &name, &of(1)),
        Err(Refusal::AlreadyHere)
    );
    assert_eq!(slices.accepts(&plan(), from, &name, &of(2)), Ok(()));
    assert!(slices.put_from(from, name, of(2), Bytes::from_static(b"again")));
    assert_eq!(slices.bytes_of(&name).unwrap(), "again");
    assert_eq!((slices.bytes, slices.parked), (5, 5));
    slices.set_round(Round(3), Some(GroupTag::from_bits(2)));
    assert_eq!(
        slices.accepts(&plan(), from, &name, &of(3)),
        Err(Refusal::AlreadyHere)
    );
    assert!(!slices.put_from(from, name, of(3), Bytes::from_static(b"false")));
    assert_eq!(slices.bytes_of(&name).unwrap(), "again");
}

#[test]
fn no_peer_pushes_in_the_name_of_another() {
    let (owner, other) = (PeerId::from_bytes([9; 32]), PeerId::from_bytes([8; 32]));
    let allowed = |plan: &Plan, from, part| {
        let slice = SliceId {
            part,
            ..slice(0, 1)
        };
        Slices::may_push(plan, from, &slice)
    };
    let (butterfly, ring) = (
        plan(),
        Plan {
            schedule: murmurate_protocol::Schedule::Ring,
            ..plan()
        },
    );
    for part in [Part::Contribution, Part::Aggregate, Part::Partial] {
        assert!(allowed(&butterfly, owner, part));
        assert!(!allowed(&butterfly, other, part));
    }
    // Members of a ring forward what its owner has summed, and nothing else.
    assert!(allowed(&ring, other, Part::Aggregate));
    assert!(!allowed(&ring, other, Part::Partial));
}
