//! Arbitrary ids, messages and plans for the tests of this crate.
#![allow(clippy::too_many_lines, reason = "one arm for each kind of message")]

pub(crate) mod club;
pub(crate) mod one;

use core::time::Duration;
use murmurate_protocol::wire::{
    Alive, Ballot, CellsMessage, CenterMessage, FormingMessage, FragmentMessage, GridMessage, Head,
    Held, Hello, Member, MembershipMessage, MergeSide, Message, Muster, Offer, PeerRecord, Promise,
    Proposed, PullMessage, Reason, RecordFields, Said, Scoped, Setting, ShardPlan, ShardVersion,
    TransferMessage, Whereabouts,
};
use murmurate_protocol::{
    AgreedLinks, Attempt, Base, Branch, BytesBound, Contribution, DeadlinePlan, Digest,
    ExchangeKind, FoundingBallot, FoundingMessage, FragmentId, FragmentPlan, GroupTag, LayoutHash,
    Loss, Members, Part, Partners, PeerConfig, PeerId, Plan, PlanHash, RollChange, RollName,
    RollSeat, Round, RunId, SNAPSHOT_VERSION, Schedule, SliceId, SliceMeta, Snapshot, StateId,
    StepBudget, Synchronization, Tag, Taken, TallyEntry, Time, Topology,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A peer whose id is one byte, repeated.
pub(crate) fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

pub(crate) fn peers(ids: impl IntoIterator<Item = u8>) -> Vec<PeerId> {
    ids.into_iter().map(peer).collect()
}

/// Bytes in lines of 32, as golden files have them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        let digits: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        digits + "\n"
    });
    lines.collect()
}

/// A plan with this number of fragments, each of 10 values.
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
            kind if kind.facts().moves_the_anchor => Contribution::Delta,
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
        agreement: murmurate_protocol::AgreementPlan::default(),
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

/// A member is ready for a round, and says nothing more than its weight.
pub(crate) fn ready(round: Round, weight: f64, anchor: Digest, proposes: bool) -> FormingMessage {
    FormingMessage::Ready {
        round,
        said: Said::new(weight),
        anchor,
        proposes,
    }
}

/// A peer's sign of life, with what it has.
pub(crate) fn alive(round: Round, anchor: Digest, muster: Muster) -> MembershipMessage {
    MembershipMessage::Alive(Alive {
        round,
        ready: true,
        anchor,
        muster,
        branch: None,
    })
}

/// A peer's record of the run, without addresses.
pub(crate) fn record(id: u8, expires: Time) -> RecordFields {
    RecordFields {
        peer: peer(id),
        run: RunId::from_bytes([1; 32]),
        sequence: 1,
        expires,
        addresses: Vec::new(),
        locality: murmurate_protocol::Locality::default(),
        signature: vec![7; 64],
    }
}

/// The first slice of a round's only fragment.
pub(crate) fn slice(round: u64, part: Part, origin: u8) -> SliceId {
    SliceId {
        round: Round(round),
        fragment: FragmentId(0),
        shard: 0,
        part,
        origin: peer(origin),
        attempt: Attempt::FIRST,
    }
}

/// A snapshot of a plan, at the beginning of a round.
pub(crate) fn snapshot(plan: &Plan, round: Round) -> Snapshot {
    Snapshot {
        version: SNAPSHOT_VERSION,
        plan: plan.hash(),
        round,
        weights: vec![1.0; plan.fragments.len()],
        ahead: None,
        roll: Vec::new(),
        ledger: Vec::new(),
        split: None,
        seats: Vec::new(),
    }
}

/// A peer's own settings: it begins alone.
pub(crate) fn config(me: PeerId) -> PeerConfig {
    PeerConfig {
        me,
        seed: 7,
        start_with: 1,
        companions: 0,
        start_wait: Duration::from_secs(5),
        join: false,
        save_every: None,
        evaluate_every: 0,
        evaluate_percent: 0,
        leave_when_finished: false,
        pool: None,
        masked: None,
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
            attempt: Attempt(attempt),
            contributors: Members::from_bits(contributors & 0xf),
            digest,
        },
    )
}

fn any_members() -> impl Strategy<Value = Vec<Member>> {
    let said = (
        any_weight(),
        option::of(any_taken()),
        option::weighted(0.2, any_loss()),
    );
    proptest::collection::btree_map(any_peer(), said, 1..6).prop_map(|members| {
        let member = |(peer, (weight, taken, loss))| {
            let said = Said {
                weight,
                taken,
                loss,
            };
            Member { peer, said }
        };
        members.into_iter().map(member).collect()
    })
}

pub(crate) fn any_loss() -> impl Strategy<Value = Loss> {
    any::<f64>().prop_map(Loss::of)
}

pub(crate) fn any_taken() -> impl Strategy<Value = Taken> {
    (0u64..3, 0u16..9, option::of(0u64..99)).prop_map(|(pool, blocks, from)| Taken {
        pool,
        blocks,
        from,
    })
}

pub(crate) fn any_record() -> impl Strategy<Value = PeerRecord> {
    let addresses = vec(vec(any::<u8>(), 0..40), 0..4);
    let locality = (0u8..4, any::<u64>(), 0u8..3);
    (
        any_peer(),
        any::<bool>(),
        0u64..4,
        any::<u64>(),
        addresses,
        locality,
    )
        .prop_map(
            |(peer, ours, sequence, expires, addresses, (site, rate, has))| {
                let locality = murmurate_protocol::Locality {
                    site: (has > 0).then(|| murmurate_protocol::Site::measured(&[site])),
                    rate: (has > 1).then(|| murmurate_protocol::RateClass::of(rate)),
                };
                PeerRecord::from(RecordFields {
                    peer,
                    run: RunId::from_bytes([u8::from(ours); 32]),
                    sequence,
                    expires: Time::from_nanos(expires >> (sequence * 8)),
                    addresses,
                    locality,
                    signature: vec![7; 64],
                })
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

fn any_side() -> impl Strategy<Value = MergeSide> {
    let members = proptest::collection::btree_set(0u8..4, 1..3);
    (any_digest(), 0.0..1e3, members).prop_map(|(head, weight, members)| MergeSide {
        head,
        weight,
        members: members.into_iter().map(peer).collect(),
    })
}

fn any_base() -> impl Strategy<Value = Base> {
    (any_round(), any_digest()).prop_map(|(round, anchor)| Base { round, anchor })
}

/// A branch of a state that other branches may share.
fn any_branch() -> impl Strategy<Value = Branch> {
    let base = any_base();
    (vec(base, 0..3), 1u16..5, 0.0..1e3).prop_map(|(known, members, weight)| Branch {
        bases: core::array::from_fn(|at| known.get(at).copied()),
        members,
        weight,
    })
}

fn any_hello() -> impl Strategy<Value = MembershipMessage> {
    let plan = prop_oneof![8 => Just(true), 1 => Just(false)];
    let said = (any_round(), any_digest(), any::<bool>(), any_muster());
    (plan, said, option::of(any_branch())).prop_map(|(same, said, branch)| {
        let (round, anchor, ready, muster) = said;
        MembershipMessage::Hello(Hello {
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
            branch: branch.map(Box::new),
        })
    })
}

/// Round, fragment and the tag of a group that may well be the current one.
fn any_address() -> impl Strategy<Value = (Round, FragmentId, GroupTag)> {
    let members = proptest::collection::btree_set(0u8..4, 1..4);
    (any_round(), any_fragment(), members).prop_map(|(round, fragment, members)| {
        let members: Vec<PeerId> = members.into_iter().map(peer).collect();
        (round, fragment, GroupTag::of(round, &members))
    })
}

fn any_fragment_message() -> BoxedStrategy<Message> {
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
    let hopeful = any::<u64>().prop_map(Members::from_bits);
    let alive = (0u64..16).prop_map(Members::from_bits);
    let body = prop_oneof![
        (any_ballot(), versions())
            .prop_map(|(ballot, versions)| FragmentMessage::Vote { ballot, versions }),
        (any_ballot(), any_digest())
            .prop_map(|(ballot, value)| FragmentMessage::VoteFor { ballot, value }),
        any_digest().prop_map(|value| FragmentMessage::Query { value }),
        any_ballot().prop_map(|ballot| FragmentMessage::Prepare { ballot }),
        (any_ballot(), voted, held, hopeful).prop_map(|(ballot, voted, held, hopeful)| {
            FragmentMessage::Promise(Promise {
                ballot,
                voted,
                held,
                hopeful,
            })
        }),
        (any_ballot(), alive, vec(plans, 0..4)).prop_map(|(ballot, alive, shards)| {
            FragmentMessage::Repair {
                ballot,
                alive,
                shards,
            }
        }),
        (0u16..5, any_version())
            .prop_map(|(shard, version)| FragmentMessage::Reduced { shard, version }),
        any_ballot().prop_map(|ballot| FragmentMessage::Void { ballot }),
        (0u8..4, any_members(), versions()).prop_map(|(ballot, members, versions)| {
            FragmentMessage::Decided {
                ballot,
                members,
                versions,
            }
        }),
        vec((any::<bool>(), any_version()), 0..4).prop_map(|results| {
            let (known, versions) = results.into_iter().unzip();
            FragmentMessage::Collected { known, versions }
        }),
        proptest::collection::btree_map(0u16..9, any_taken(), 0..4).prop_map(|entries| {
            let entries = entries.into_iter();
            let entries = entries.map(|(place, taken)| TallyEntry { place, taken });
            FragmentMessage::Tally(entries.collect())
        }),
    ];
    (any_address(), body)
        .prop_map(|((round, fragment, group), body)| {
            let scoped = Scoped {
                round,
                fragment,
                group,
                body,
            };
            scoped.into()
        })
        .boxed()
}

/// A message between peers of a grid.
fn any_grid_message() -> BoxedStrategy<GridMessage> {
    let change = (vec(any_peer(), 0..3), vec(any_record(), 0..3))
        .prop_map(|(leave, join)| RollChange { leave, join });
    prop_oneof![
        (any_round(), change).prop_map(|(round, change)| GridMessage::Report { round, change }),
        (any_round(), any_fragment())
            .prop_map(|(round, fragment)| GridMessage::Ask { round, fragment }),
        (any_round(), any_digest()).prop_map(|(round, state)| GridMessage::Apart { round, state }),
        any_record().prop_map(GridMessage::Apply),
        any_round().prop_map(|round| GridMessage::Placed { round }),
        (any_round(), any_fragment())
            .prop_map(|(round, fragment)| GridMessage::Returned { round, fragment }),
    ]
    .boxed()
}

/// A message between peers of cells.
fn any_cells_message() -> BoxedStrategy<CellsMessage> {
    let news = || {
        let seat =
            (0u32..9, any_record(), any_round()).prop_map(|(place, record, since)| RollSeat {
                place,
                record,
                since,
            });
        vec(seat, 0..3)
    };
    let members = vec(any_peer(), 0..4).prop_map(|mut members| {
        members.sort_unstable();
        members.dedup();
        members
    });
    prop_oneof![
        (any_round(), news()).prop_map(|(round, news)| CellsMessage::Ready { round, news }),
        (any_round(), members).prop_map(|(round, members)| CellsMessage::Form { round, members }),
        (any_round(), any_round()).prop_map(|(round, now)| CellsMessage::Passed { round, now }),
        news().prop_map(CellsMessage::Seats),
    ]
    .boxed()
}

/// A message about the first roll of a run.
fn any_founding_message() -> BoxedStrategy<FoundingMessage> {
    let ballot = || {
        (0u32..4, option::of(any_peer()))
            .prop_map(|(number, founder)| FoundingBallot { number, founder })
    };
    let name = || (any_digest(), 1u16..4).prop_map(|(digest, peers)| RollName { digest, peers });
    let records = || vec(any_record(), 0..4);
    prop_oneof![
        records().prop_map(FoundingMessage::Registrars),
        records().prop_map(FoundingMessage::Here),
        ballot().prop_map(|ballot| FoundingMessage::Prepare { ballot }),
        (ballot(), option::of((ballot(), name())))
            .prop_map(|(ballot, accepted)| FoundingMessage::Promise { ballot, accepted }),
        (ballot(), name()).prop_map(|(ballot, roll)| FoundingMessage::Accept { ballot, roll }),
        ballot().prop_map(|ballot| FoundingMessage::Accepted { ballot }),
        name().prop_map(FoundingMessage::Founded),
        (any_digest(), 0u16..4).prop_map(|(roll, first)| FoundingMessage::PageAsk { roll, first }),
        (any_digest(), 0u16..4, records()).prop_map(|(roll, first, records)| {
            FoundingMessage::Page {
                roll,
                first,
                records,
            }
        }),
    ]
    .boxed()
}

pub(crate) fn any_state() -> impl Strategy<Value = StateId> {
    (any_round(), any_digest(), 0u64..2000).prop_map(|(round, root, bytes)| StateId {
        round,
        root,
        bytes,
    })
}

fn any_settings(keys: Vec<String>) -> MembershipMessage {
    let settings = keys
        .iter()
        .map(|key| Setting::new(key, key).expect("a key"));
    MembershipMessage::Settings(settings.collect())
}

/// Any message that passes its own checks. Families are boxed: their trees would fill a thread's stack.
pub(crate) fn any_message() -> impl Strategy<Value = Message> {
    let bits = || (any_round(), 0u8..4, any::<bool>());
    let alive = (bits(), any_digest(), any_muster(), option::of(any_branch())).prop_map(
        |(bits, anchor, muster, branch)| {
            let (round, _, ready) = bits;
            MembershipMessage::Alive(Alive {
                round,
                ready,
                anchor,
                muster,
                branch: branch.map(Box::new),
            })
        },
    );
    let membership = prop_oneof![
        4 => any_hello(),
        2 => vec(any_record(), 0..4).prop_map(MembershipMessage::Records),
        1 => any_reason().prop_map(MembershipMessage::Goodbye),
        1 => vec("[a-z._-]{1,64}", 0..4).prop_map(any_settings),
        2 => alive,
    ];
    let transfer = prop_oneof![
        any_base().prop_map(|began| TransferMessage::HistoryAsk { began }),
        any_round().prop_map(|round| TransferMessage::HistoryRefuse { round }),
        any_round().prop_map(|at_least| TransferMessage::StateAsk { at_least }),
        (any_state(), any_digest())
            .prop_map(|(state, anchor)| TransferMessage::StateOffer(Offer { state, anchor })),
        any_round().prop_map(|round| TransferMessage::AnchorAsk { round }),
        (any_round(), proptest::option::of(any_digest()))
            .prop_map(|(round, anchor)| TransferMessage::Anchor { round, anchor }),
        Just(TransferMessage::StateRefuse),
    ];
    let forming = prop_oneof![
        4 => (any_base(), any_weight(), any::<bool>(), option::of(any_taken()), option::weighted(0.2, any_loss()))
            .prop_map(|(Base { round, anchor }, weight, proposes, taken, loss)| {
                FormingMessage::Ready { round, said: Said { weight, taken, loss }, anchor, proposes }
            }),
        4 => (any_round(), 0u8..4, any_members())
            .prop_map(|(round, term, members)| FormingMessage::Propose(Proposed { round, term, members })),
        2 => (any_round(), 0u8..4, any_members(), any::<u64>()).prop_map(
            |(round, term, members, rate)| {
                let place = |index: usize| Whereabouts {
                    site: (index % 2) as u8,
                    rate: (rate >> index & 1 == 0)
                        .then(|| murmurate_protocol::RateClass::of(rate >> (8 * index))),
                };
                let places = (0..members.len()).map(place).collect();
                FormingMessage::ProposePlaced { proposed: Proposed { round, term, members }, places }
            }
        ),
        2 => (any_round(), 0u8..4, any_members(), any::<u8>()).prop_map(
            |(round, term, members, code)| {
                let n = members.len();
                let code = |at: usize| match at / n == at % n {
                    true => 0,
                    false => code.wrapping_add(at as u8).max(1),
                };
                let codes = match n {
                    0..=1 | 17.. => Vec::new(),
                    _ => (0..n * n).map(code).collect(),
                };
                let links = AgreedLinks { since: round, codes };
                FormingMessage::ProposeLinked { proposed: Proposed { round, term, members }, links }
            }
        ),
        1 => bits().prop_map(|(round, term, _)| FormingMessage::Decline { round, term }),
        1 => bits().prop_map(|(round, _, resync)| FormingMessage::Behind { round, resync }),
        2 => (any_round(), any_digest(), any_branch())
            .prop_map(|(round, anchor, branch)| {
                FormingMessage::Meet(Box::new(Head { round, anchor, branch }))
            }),
        2 => (any_round(), 0u8..4, vec(any_side(), 0..3))
            .prop_map(|(round, term, sides)| FormingMessage::Merge { round, term, sides }),
    ];
    let center = prop_oneof![
        (any_fragment(), 0u16..4)
            .prop_map(|(fragment, shard)| CenterMessage::Ask { fragment, shard }),
        (any_round(), any_fragment(), 0u16..4).prop_map(|(round, fragment, shard)| {
            CenterMessage::Moved {
                round,
                fragment,
                shard,
            }
        }),
    ];
    prop_oneof![
        9 => membership.prop_map(Message::from).boxed(),
        5 => transfer.prop_map(Message::from).boxed(),
        10 => forming.prop_map(Message::from).boxed(),
        8 => any_fragment_message(),
        2 => center.prop_map(Message::from),
        2 => any_pull_message().prop_map(Message::from),
        2 => any_grid_message().prop_map(Message::from),
        2 => any_cells_message().prop_map(Message::from),
        2 => any_founding_message().prop_map(Message::from),
    ]
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => Just(Part::Contribution),
        4 => Just(Part::Aggregate),
        4 => Just(Part::Partial),
        1 => Just(Part::RowMean),
        1 => Just(Part::Bundle),
        1 => Just(Part::Basis),
        1 => Just(Part::Second),
        1 => Just(Part::Scores),
    ]
}

fn any_real() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.5), Just(f64::NAN), Just(-1.0), 0.0..2.0]
}

fn any_pull_message() -> impl Strategy<Value = PullMessage> {
    let of_fragment = (any_round(), 0u16..4, any::<bool>(), 0u8..3);
    prop_oneof![
        any_round().prop_map(|round| PullMessage::Ask { round }),
        (any_round(), option::of(any_round()))
            .prop_map(|(round, taken)| PullMessage::AskSince { round, taken }),
        any_round().prop_map(|round| PullMessage::Unchanged { round }),
        of_fragment.prop_map(|(round, fragment, closes, kind)| {
            let fragment = FragmentId(fragment);
            match kind {
                0 => PullMessage::AskPart { round, fragment },
                1 => PullMessage::AskMean {
                    round,
                    fragment,
                    closes,
                },
                _ => PullMessage::NoMean { round, fragment },
            }
        }),
    ]
}

/// A slice that a peer may well take for an answer to a question, or for a part or the mean of a
/// group.
pub(crate) fn any_pulled(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let mean = (any::<bool>(), 0u32..4, option::of(any_round()));
    (any_slice(from), any_round(), mean).prop_map(|((mut slice, mut meta), round, mean)| {
        let (is_mean, parts, own) = mean;
        (slice.shard, meta.of) = (0, 1);
        if is_mean {
            (slice.part, slice.round) = (Part::Aggregate, round);
            meta.tag = Tag::GroupMean { round, parts, own };
        } else {
            slice.part = Part::Contribution;
            meta.tag = Tag::Answer { round };
        }
        (slice, meta)
    })
}

/// The tag of a slice: of any exchange, and often the one that goes with the part.
fn any_tag(group: GroupTag, part: Part) -> impl Strategy<Value = Tag> {
    let mean = (0u64..16).prop_map(move |bits| Tag::Mean {
        group,
        members: Members::from_bits(bits),
    });
    let agreed = match part {
        Part::Contribution | Part::Second => Just(Tag::Contribution { group }).boxed(),
        Part::Aggregate | Part::Partial | Part::Basis | Part::Scores => mean.boxed(),
        Part::RowMean => any_real()
            .prop_map(move |weight| Tag::RowMean { group, weight })
            .boxed(),
        Part::Bundle => (0u64..16, any::<bool>())
            .prop_map(move |(rows, counted)| Tag::Result {
                group,
                rows: Members::from_bits(rows),
                counted,
            })
            .boxed(),
    };
    prop_oneof![
        6 => agreed,
        4 => any_real().prop_map(|weight| Tag::Mass { weight }),
        1 => (any_real(), option::of(any_taken()))
            .prop_map(move |(weight, taken)| Tag::Share { group, weight, taken }),
        2 => (0u32..4, 0u32..4, any_real())
            .prop_map(|(session, exchange, share)| Tag::Half { session, exchange, share }),
        2 => (any::<bool>(), 0u32..4).prop_map(|(up, peers)| Tag::Relayed { up, peers }),
        2 => any_round().prop_map(|round| Tag::Answer { round }),
        2 => (0u64..16, any_round()).prop_map(|(base, round)| Tag::Update { base, round }),
        2 => (0u64..16, any_round()).prop_map(|(version, round)| Tag::Version { version, round }),
        1 => (0u64..16).prop_map(|version| Tag::Copy { version }),
        1 => any::<u64>().prop_map(|version| Tag::Copy { version }),
        2 => (any_round(), 0u32..4, option::of(any_round()))
            .prop_map(|(round, parts, own)| Tag::GroupMean { round, parts, own }),
    ]
}

/// A slice with its header; most are their sender's own.
pub(crate) fn any_slice(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let origin = prop_oneof![8 => Just(from), 1 => any_peer()];
    let name = (any_address(), 0u16..4, any_part(), origin, 0u8..5, 0u16..5);
    name.prop_flat_map(
        |((round, fragment, group), shard, part, origin, attempt, of)| {
            let slice = SliceId {
                round,
                fragment,
                shard,
                part,
                origin,
                attempt: Attempt(attempt),
            };
            any_tag(group, part).prop_map(move |tag| (slice, SliceMeta { of, bytes: 48, tag }))
        },
    )
}

/// A slice that exchanges between two may well take for one of theirs.
pub(crate) fn any_half(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let numbers = (any_slice(from), 0u32..4, 0u32..4, any_real());
    numbers.prop_map(|((mut slice, mut meta), session, exchange, share)| {
        slice.shard = 0;
        slice.part = match exchange {
            0 => slice.part,
            _ => Part::Contribution,
        };
        meta.of = 1;
        meta.tag = Tag::Half {
            session,
            exchange,
            share,
        };
        (slice, meta)
    })
}

/// A slice that a relay may well take for a message of a parent or a child.
pub(crate) fn any_relayed(from: PeerId) -> impl Strategy<Value = (SliceId, SliceMeta)> {
    let peers = prop_oneof![4 => 1u32..4, 1 => Just(0), 1 => Just(999)];
    (any_slice(from), any::<bool>(), peers).prop_map(|((mut slice, mut meta), up, peers)| {
        (slice.shard, slice.part, meta.of) = (0, Part::Contribution, 1);
        meta.tag = Tag::Relayed { up, peers };
        (slice, meta)
    })
}
