//! Arbitrary ids, messages and plans for the tests of this crate.
#![allow(
    dead_code,
    missing_docs,
    clippy::too_many_lines,
    reason = "every test file uses its own part of it"
)]

pub mod club;

use core::time::Duration;
use murmurate_protocol::wire::{
    Ballot, Held, Hello, Member, Message, Muster, PeerRecord, Reason, ShardPlan, ShardVersion,
};
use murmurate_protocol::{
    BytesBound, Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentId, FragmentPlan,
    LayoutHash, Part, Partners, PeerConfig, PeerId, Plan, PlanHash, Round, RunId, Schedule,
    SliceId, SliceMeta, StateId, StepBudget, Synchronization, Time, Topology,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A peer whose id is one byte, repeated.
pub(crate) fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

/// A plan of so many fragments of 10 values.
pub(crate) fn plan(exchange: ExchangeKind, fragments: usize) -> Plan {
    let bound = BytesBound {
        fixed: 8,
        per_1024: 4096,
    };
    Plan {
        run: RunId::from_bytes([1; 32]),
        layout: LayoutHash::from_bytes([2; 32]),
        recipe: Digest::from_bytes([3; 32]),
        exchange,
        schedule: Schedule::Butterfly,
        contribution: match exchange {
            kind if kind.moves_the_anchor() => Contribution::Delta,
            _ => Contribution::Parameters,
        },
        budget: StepBudget::Steps(1),
        synchronization: Synchronization::default(),
        rounds: 0,
        fragments: vec![
            FragmentPlan {
                len: 10,
                contribution: bound,
                aggregate: bound,
            };
            fragments
        ],
        overlap: murmurate_protocol::OverlapPlan::NONE,
        deadlines: DeadlinePlan::default(),
        state_bytes: 1000,
    }
}

/// Parent `(i - 1) / 2`: the tree of most tests that need neighbours.
pub(crate) struct BinaryTree;

impl Topology for BinaryTree {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let above = rank.checked_sub(1).map(|below| below / 2);
        let below = [2 * rank + 1, 2 * rank + 2].into_iter();
        let near = above.into_iter().chain(below.filter(|to| *to < count));
        Partners {
            send: near.clone().map(|to| (to, 0.25)).collect(),
            receive: near.collect(),
        }
    }
}

/// A peer's own settings: it begins alone.
pub(crate) fn config(me: PeerId) -> PeerConfig {
    PeerConfig {
        me,
        seed: 7,
        start_with: 1,
        start_wait: Duration::from_secs(5),
        join: false,
        save_every: None,
        evaluate_every: 0,
        leave_when_finished: false,
    }
}

pub(crate) fn any_peer() -> impl Strategy<Value = PeerId> {
    (0u8..6).prop_map(peer)
}

pub(crate) fn any_digest() -> impl Strategy<Value = Digest> {
    (0u8..4).prop_map(|id| Digest::from_bytes([id; 32]))
}

pub(crate) fn any_round() -> impl Strategy<Value = Round> {
    prop_oneof![
        8 => (0u64..6).prop_map(Round),
        1 => any::<u64>().prop_map(Round),
        1 => Just(Round(u64::MAX)),
    ]
}

pub(crate) fn any_fragment() -> impl Strategy<Value = FragmentId> {
    prop_oneof![8 => Just(0u16), 1 => 0u16..1024].prop_map(FragmentId)
}

fn any_weight() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1e18]
}

fn any_ballot() -> impl Strategy<Value = Ballot> {
    (0u8..4, any_peer()).prop_map(|(number, coordinator)| Ballot {
        number,
        coordinator,
    })
}

fn any_version() -> impl Strategy<Value = ShardVersion> {
    (any_peer(), 0u8..5, any::<u64>(), any_digest()).prop_map(
        |(owner, attempt, contributors, digest)| ShardVersion {
            owner,
            attempt,
            contributors: contributors & 0xf,
            digest,
        },
    )
}

fn any_members() -> impl Strategy<Value = Vec<Member>> {
    proptest::collection::btree_map(any_peer(), any_weight(), 1..6).prop_map(|members| {
        let members = members.into_iter();
        members
            .map(|(peer, weight)| Member { peer, weight })
            .collect()
    })
}

pub(crate) fn any_record() -> impl Strategy<Value = PeerRecord> {
    let addresses = vec(vec(any::<u8>(), 0..40), 0..4);
    (any_peer(), any::<bool>(), 0u64..4, any::<u64>(), addresses).prop_map(
        |(peer, ours, sequence, expires, addresses)| PeerRecord {
            peer,
            run: RunId::from_bytes([u8::from(ours); 32]),
            sequence,
            expires: Time::from_nanos(expires >> (sequence * 8)),
            addresses,
            signature: vec![7; 64],
        },
    )
}

fn any_reason() -> impl Strategy<Value = Reason> {
    prop_oneof![
        Just(Reason::Leaving),
        Just(Reason::OtherPlan),
        Just(Reason::Misbehaved),
        Just(Reason::Full),
    ]
}

fn any_muster() -> impl Strategy<Value = Muster> {
    prop_oneof![
        Just(Muster::Waiting),
        Just(Muster::Met),
        Just(Muster::Begun)
    ]
}

fn any_hello() -> impl Strategy<Value = Message> {
    let plan = prop_oneof![8 => Just(true), 1 => Just(false)];
    let said = (any_round(), any_digest(), any::<bool>(), any_muster());
    (plan, said).prop_map(|(same, (round, anchor, ready, muster))| {
        Message::Hello(Hello {
            run: RunId::from_bytes([1; 32]),
            layout: LayoutHash::from_bytes([2; 32]),
            plan: match same {
                true => self::plan(ExchangeKind::AllReduce, 1).hash(),
                false => PlanHash::from_bytes([9; 32]),
            },
            round,
            anchor,
            ready,
            muster,
        })
    })
}

/// The tag of the group that these peers form in a round, as the first eight bytes of the hash of
/// both.
pub(crate) fn group_tag(round: Round, members: &[PeerId]) -> u64 {
    let mut bytes = round.0.to_le_bytes().to_vec();
    members.iter().for_each(|m| bytes.extend(m.as_bytes()));
    let mut first = [0u8; 8];
    first.copy_from_slice(&Digest::of(&bytes).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Round, fragment and the tag of a group that may well be the current one.
fn any_address() -> impl Strategy<Value = (Round, FragmentId, u64)> {
    let members = proptest::collection::btree_set(0u8..4, 1..4);
    (any_round(), any_fragment(), members).prop_map(|(round, fragment, members)| {
        let members: Vec<PeerId> = members.into_iter().map(peer).collect();
        (round, fragment, group_tag(round, &members))
    })
}

fn any_exchange_message() -> impl Strategy<Value = Message> {
    let plans = prop_oneof![
        (any_version(), any_peer())
            .prop_map(|(version, holder)| ShardPlan::Keep { version, holder }),
        any_peer().prop_map(|owner| ShardPlan::Redo { owner }),
    ];
    let versions = || vec(any_version(), 0..4);
    let held = vec(
        (0u16..4, any_version()).prop_map(|(shard, version)| Held { shard, version }),
        0..4,
    );
    let voted = proptest::option::of((any_ballot(), versions()));
    let at = any_address;
    prop_oneof![
        (at(), any_ballot(), versions()).prop_map(
            |((round, fragment, group), ballot, versions)| {
                Message::Vote {
                    round,
                    fragment,
                    group,
                    ballot,
                    versions,
                }
            }
        ),
        (at(), any_ballot()).prop_map(|((round, fragment, group), ballot)| {
            Message::Prepare {
                round,
                fragment,
                group,
                ballot,
            }
        }),
        (at(), any_ballot(), voted, held, any::<u64>()).prop_map(
            |((round, fragment, group), ballot, voted, held, hopeful)| {
                Message::Promise {
                    round,
                    fragment,
                    group,
                    ballot,
                    voted,
                    held,
                    hopeful,
                }
            }
        ),
        (at(), any_ballot(), 0u64..16, vec(plans, 0..4)).prop_map(
            |((round, fragment, group), ballot, alive, shards)| {
                Message::Repair {
                    round,
                    fragment,
                    group,
                    ballot,
                    alive,
                    shards,
                }
            }
        ),
        (at(), 0u16..5, any_version()).prop_map(|((round, fragment, group), shard, version)| {
            Message::Reduced {
                round,
                fragment,
                group,
                shard,
                version,
            }
        }),
        (at(), any_ballot()).prop_map(|((round, fragment, group), ballot)| {
            Message::Void {
                round,
                fragment,
                group,
                ballot,
            }
        }),
        (at(), 0u8..4, any_members(), versions()).prop_map(
            |((round, fragment, group), ballot, members, versions)| {
                Message::Decided {
                    round,
                    fragment,
                    group,
                    ballot,
                    members,
                    versions,
                }
            }
        ),
    ]
}

pub(crate) fn any_state() -> impl Strategy<Value = StateId> {
    (any_round(), any_digest(), 0u64..2000).prop_map(|(round, root, bytes)| StateId {
        round,
        root,
        bytes,
    })
}

/// Any message that passes its own checks.
pub(crate) fn any_message() -> impl Strategy<Value = Message> {
    let bits = || (any_round(), 0u8..4, any::<bool>());
    prop_oneof![
        4 => any_hello(),
        2 => vec(any_record(), 0..4).prop_map(Message::Records),
        1 => any_reason().prop_map(Message::Goodbye),
        4 => (any_round(), any_weight(), any_digest())
            .prop_map(|(round, weight, anchor)| Message::Ready { round, weight, anchor }),
        4 => (any_round(), 0u8..4, any_members())
            .prop_map(|(round, term, members)| Message::Propose { round, term, members }),
        1 => bits().prop_map(|(round, term, _)| Message::Decline { round, term }),
        1 => bits().prop_map(|(round, _, resync)| Message::Behind { round, resync }),
        8 => any_exchange_message(),
        1 => any_round().prop_map(|round| Message::HistoryAsk { round }),
        1 => any_round().prop_map(|round| Message::HistoryRefuse { round }),
        1 => any_round().prop_map(|at_least| Message::StateAsk { at_least }),
        1 => any_state().prop_map(Message::StateOffer),
        1 => Just(Message::StateRefuse),
        1 => (any_fragment(), 0u16..4)
            .prop_map(|(fragment, shard)| Message::CenterAsk { fragment, shard }),
        1 => (any_round(), any_fragment(), 0u16..4).prop_map(|(round, fragment, shard)| {
            Message::CenterMoved { round, fragment, shard }
        }),
        1 => any_round().prop_map(|round| Message::PullAsk { round }),
        2 => (bits(), any_digest(), any_muster()).prop_map(
            |((round, _, ready), anchor, muster)| Message::Alive { round, ready, anchor, muster },
        ),
    ]
}

/// A slice with its header; most are their sender's own.
pub(crate) fn any_slice(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let part = prop_oneof![
        Just(Part::Contribution),
        Just(Part::Aggregate),
        Just(Part::Partial)
    ];
    let origin = prop_oneof![8 => Just(from), 1 => any_peer()];
    let name = (any_address(), 0u16..4, part, origin, 0u8..5);
    let weight = prop_oneof![Just(0.5), Just(f64::NAN), Just(-1.0), 0.0..2.0];
    (name, 0u16..5, weight, 0u64..16).prop_map(
        |(((round, fragment, group), shard, part, origin, attempt), of, weight, contributors)| {
            (
                SliceId {
                    round,
                    fragment,
                    shard,
                    part,
                    origin,
                    attempt,
                },
                SliceMeta {
                    of,
                    weight,
                    contributors,
                    group,
                    bytes: 48,
                },
            )
        },
    )
}

/// A slice that exchanges between two may well take for one of theirs.
pub(crate) fn any_half(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let numbers = (any_slice(from), 0u64..4, 0u64..4);
    numbers.prop_map(|((mut slice, mut meta), session, number)| {
        slice.shard = 0;
        slice.part = match number {
            0 => slice.part,
            _ => Part::Contribution,
        };
        (meta.of, meta.group, meta.contributors) = (1, session, number);
        (slice, meta)
    })
}

/// A slice that a relay may well take for a message of a parent or a child.
pub(crate) fn any_relayed(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let weight = prop_oneof![4 => (1u8..4).prop_map(f64::from), 1 => Just(0.5), 1 => Just(999.0)];
    (any_slice(from), any::<bool>(), weight).prop_map(|((mut slice, mut meta), up, weight)| {
        (slice.shard, slice.part, meta.of) = (0, Part::Contribution, 1);
        (meta.weight, meta.contributors) = (weight, u64::from(up));
        (slice, meta)
    })
}
