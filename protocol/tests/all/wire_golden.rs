//! The bytes of every message, in every version that is spoken. A difference is a change of the wire: raise
//! `WIRE_VERSION` and `WIRE_VERSION_OLDEST`, translate in `wire/frame.rs`, then write the new files with
//! `MURMURATE_GOLDEN=write cargo test -p murmurate-protocol --test all wire_golden`. The name of a file says
//! since which version the message has these bytes, apart from the version's own byte.
#![expect(
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "tests read settings of their own, and list one case after the other"
)]

use crate::common::{hex, peer, slice};
use murmurate_protocol::wire::{
    AgreedMessage, Alive, Ballot, CellsMessage, CenterMessage, ExchangeMessage, FormingMessage,
    FragmentMessage, GridMessage, Head, Held, Hello, Member, MembershipMessage, MergeSide, Message,
    Muster, Offer, PeerRecord, Pledge, Promise, Proposal, Proposed, PullMessage, Rates, Reason,
    RecordFields, Said, Scoped, Seat, Seated, Setting, ShardPlan, ShardVersion, SignedGroup,
    SignedMessage, Stated, TransferMessage, VoteCertificate, WIRE_VERSION, WIRE_VERSION_OLDEST,
    Whereabouts, WireError, WireVersion, WireVersions, decode, decode_within, encode, encode_for,
    encode_value,
};
use murmurate_protocol::{
    AgreedLinks, Base, Branch, Digest, FoundingBallot, FoundingMessage, FragmentId, GroupTag,
    LayoutHash, Locality, Loss, Members, Part, PlanHash, RateClass, Roll, RollChange, RollName,
    RollSeat, Round, RunId, Signature, Site, SliceId, SliceMeta, Snapshot, StateId, Tag, Taken,
    TallyEntry, Time,
};

use std::ops::Range;
use std::path::PathBuf;

fn version(owner: u8) -> ShardVersion {
    ShardVersion {
        owner: peer(owner),
        attempt: murmurate_protocol::Attempt(1),
        contributors: Members::from_bits(0b101),
        digest: Digest::from_bytes([0xdd; 32]),
    }
}

fn taken() -> Taken {
    Taken {
        pool: 0x0506,
        blocks: 7,
        from: Some(8),
    }
}

/// Links of this number of members, in force since the round.
fn linked(members: usize) -> AgreedLinks {
    let code = |at: usize| match at / members == at % members {
        true => 0,
        false => 100 + at as u8,
    };
    AgreedLinks {
        since: Round(2),
        codes: (0..members * members).map(code).collect(),
    }
}

/// All members are at the site of the first, and only that one says how fast its line is.
fn placed(index: usize) -> Whereabouts {
    Whereabouts {
        site: 0,
        rate: (index == 0).then(|| RateClass::of(125_000_000)),
    }
}

/// A message of every kind, family by family in the order of their numbers on the wire.
fn messages() -> Vec<Message> {
    let (round, fragment) = (Round(0x0102), FragmentId(3));
    let group = GroupTag::from_bits(0x0a0b_0c0d);
    let ballot = Ballot {
        number: 2,
        coordinator: peer(4),
    };
    let member = |id| Member {
        peer: peer(id),
        said: Said {
            taken: Some(taken()),
            ..Said::new(320.0)
        },
    };
    let members = vec![member(1), member(2)];
    let versions = vec![version(1), version(2)];
    let state = StateId {
        round,
        root: Digest::from_bytes([0xee; 32]),
        bytes: 4096,
    };
    let record = record();
    let base = |round| Base {
        round: Round(round),
        anchor: Digest::from_bytes([0x77; 32]),
    };
    let branch = Branch {
        bases: core::array::from_fn(|at| (at < 2).then(|| base(9 - at as u64))),
        members: 2,
        weight: 640.0,
    };
    let hello = Hello {
        run: RunId::from_bytes([0x11; 32]),
        layout: LayoutHash::from_bytes([0x22; 32]),
        plan: PlanHash::from_bytes([0x33; 32]),
        round,
        anchor: Digest::from_bytes([0x44; 32]),
        ready: true,
        muster: Muster::Met,
        branch: Some(Box::new(branch)),
    };
    let shards = vec![
        ShardPlan::Keep {
            version: version(1),
            holder: peer(2),
        },
        ShardPlan::Redo { owner: peer(3) },
    ];
    let held = vec![Held {
        shard: 1,
        version: version(2),
    }];
    let voted = Some((
        Ballot {
            number: 1,
            ..ballot
        },
        versions.clone(),
    ));
    let scoped = |body| {
        let scoped = Scoped {
            round,
            fragment,
            group,
            body,
        };
        scoped.into()
    };
    let membership = [
        MembershipMessage::Hello(hello),
        MembershipMessage::Records(vec![record.clone()]),
        MembershipMessage::Goodbye(Reason::OtherPlan),
        MembershipMessage::Alive(Alive {
            round,
            ready: true,
            muster: Muster::Begun,
            anchor: state.root,
            branch: None,
        }),
        MembershipMessage::Rates(Rates {
            epoch: 7,
            rates: vec![(peer(1), 20), (peer(2), 27)],
            heard: state.root,
        }),
        MembershipMessage::Settings(vec![Setting::new("run.seed", "7").expect("a key")]),
    ];
    let transfer = [
        TransferMessage::StateAsk { at_least: round },
        TransferMessage::StateOffer(Offer {
            state,
            anchor: state.root,
        }),
        TransferMessage::StateRefuse,
        TransferMessage::HistoryAsk {
            began: Base {
                round,
                anchor: state.root,
            },
        },
        TransferMessage::HistoryRefuse { round },
        TransferMessage::AnchorAsk { round },
        TransferMessage::Anchor {
            round,
            anchor: Some(state.root),
        },
    ];
    let proposed = Proposed {
        round,
        term: 1,
        members: members.clone(),
    };
    let forming = [
        FormingMessage::Ready {
            round,
            said: Said::new(320.0),
            anchor: state.root,
            proposes: true,
        },
        FormingMessage::Propose(proposed.clone()),
        FormingMessage::Decline { round, term: 1 },
        FormingMessage::Behind {
            round,
            resync: true,
        },
        FormingMessage::SignedReady {
            round,
            anchor: state.root,
            proposes: true,
            seat: seat(1),
        },
        FormingMessage::SignedPropose(Proposal {
            round,
            term: 1,
            seats: 4,
            anchor: state.root,
            members: vec![seat(1), seat(2)],
        }),
        FormingMessage::Left {
            round,
            group: GroupTag::from_bits(77),
            ready: true,
        },
        FormingMessage::Joined {
            round,
            group: GroupTag::from_bits(77),
        },
        FormingMessage::Meet(Box::new(Head {
            round,
            anchor: state.root,
            branch,
        })),
        FormingMessage::Merge {
            round,
            term: 1,
            sides: vec![MergeSide {
                head: state.root,
                weight: 640.0,
                members: vec![peer(1), peer(2)],
            }],
        },
        FormingMessage::ProposePlaced {
            proposed: proposed.clone(),
            places: (0..members.len()).map(placed).collect(),
        },
        FormingMessage::ProposeLinked {
            proposed: proposed.clone(),
            links: linked(members.len()),
        },
    ];
    let signed = signed(&versions, &shards, &members, &held);
    let of_fragment = [
        FragmentMessage::Reduced {
            shard: 1,
            version: version(2),
        },
        FragmentMessage::Vote {
            ballot,
            versions: versions.clone(),
        },
        FragmentMessage::Prepare { ballot },
        FragmentMessage::Promise(Promise {
            ballot,
            voted,
            held,
            hopeful: Members::from_bits(0b11),
        }),
        FragmentMessage::Repair {
            ballot,
            alive: Members::from_bits(0b110),
            shards,
        },
        FragmentMessage::Void { ballot },
        FragmentMessage::Decided {
            ballot: 2,
            members,
            versions,
        },
    ];
    let void = ShardVersion {
        attempt: murmurate_protocol::Attempt::VOID,
        contributors: Members::NONE,
        ..version(2)
    };
    let collected = scoped(FragmentMessage::Collected {
        known: vec![true, false],
        versions: vec![version(1), void],
    });
    let nothing = scoped(FragmentMessage::Nothing);
    let tally = scoped(FragmentMessage::Tally(vec![TallyEntry {
        place: 9,
        taken: taken(),
    }]));
    let value = Digest::from_bytes([0x5e; 32]);
    let vote_for = scoped(FragmentMessage::VoteFor { ballot, value });
    let query = scoped(FragmentMessage::Query { value });
    let of_signed = signed.map(|message| scoped(FragmentMessage::Signed(message)));
    let center = [
        CenterMessage::Ask { fragment, shard: 4 },
        CenterMessage::Moved {
            round,
            fragment,
            shard: 4,
        },
    ];
    let families: [Vec<Message>; 11] = [
        membership.map(Message::from).into(),
        transfer.map(Message::from).into(),
        forming.map(Message::from).into(),
        of_fragment.map(scoped).into(),
        of_signed.into(),
        vec![collected, nothing, tally, vote_for, query],
        center.map(Message::from).into(),
        pull().map(Message::from).into(),
        grid(&record).map(Message::from).into(),
        cells(&record).map(Message::from).into(),
        founding(&record).map(Message::from).into(),
    ];
    families.concat()
}

/// A message of every kind of a grid.
fn grid(record: &PeerRecord) -> [GridMessage; 6] {
    let (round, fragment) = (Round(0x0102), FragmentId(3));
    let change = RollChange {
        leave: vec![peer(7)],
        join: vec![record.clone()],
    };
    [
        GridMessage::Report { round, change },
        GridMessage::Ask { round, fragment },
        GridMessage::Apart {
            round,
            state: Digest::from_bytes([0xee; 32]),
        },
        GridMessage::Apply(located()),
        GridMessage::Placed { round },
        GridMessage::Returned { round, fragment },
    ]
}

/// A message of every kind of cells.
fn cells(record: &PeerRecord) -> [CellsMessage; 4] {
    let round = Round(0x0102);
    let news = vec![RollSeat {
        place: 0x0304,
        record: record.clone(),
        since: Round(0x0506),
    }];
    let members = vec![peer(1), peer(2)];
    let now = Round(0x0103);
    [
        CellsMessage::Ready {
            round,
            news: news.clone(),
        },
        CellsMessage::Form { round, members },
        CellsMessage::Passed { round, now },
        CellsMessage::Seats(news),
    ]
}

/// A message of every kind about the first roll.
fn founding(record: &PeerRecord) -> [FoundingMessage; 9] {
    let records = vec![record.clone()];
    let ballot = FoundingBallot {
        number: 2,
        founder: Some(peer(4)),
    };
    let digest = Digest::from_bytes([0x66; 32]);
    let name = RollName { digest, peers: 3 };
    let accepted = FoundingBallot {
        number: 1,
        founder: None,
    };
    [
        FoundingMessage::Registrars(records.clone()),
        FoundingMessage::Here(records.clone()),
        FoundingMessage::Prepare { ballot },
        FoundingMessage::Promise {
            ballot,
            accepted: Some((accepted, name)),
        },
        FoundingMessage::Accept { ballot, roll: name },
        FoundingMessage::Accepted { ballot },
        FoundingMessage::Founded(name),
        FoundingMessage::PageAsk {
            roll: digest,
            first: 1,
        },
        FoundingMessage::Page {
            roll: digest,
            first: 1,
            records,
        },
    ]
}

/// Where a peer can be reached.
fn record() -> PeerRecord {
    PeerRecord::from(RecordFields {
        peer: peer(1),
        run: RunId::from_bytes([0x11; 32]),
        sequence: 5,
        expires: Time::from_nanos(1_000_000_007),
        addresses: vec![vec![4, 127, 0, 0, 1], Vec::new()],
        locality: murmurate_protocol::Locality::default(),
        signature: vec![0x55; 64],
    })
}

/// The same with its site and rate.
fn located() -> PeerRecord {
    PeerRecord::from(RecordFields {
        locality: Locality {
            site: Site::new("berlin").ok(),
            rate: Some(RateClass::of(125_000_000)),
        },
        ..(*record()).clone()
    })
}

/// A member's own words.
fn seat(id: u8) -> Seat {
    Seat {
        peer: peer(id),
        weight: 320.0,
        life: 0x0506,
        forgets: false,
        signature: signature(id),
    }
}

fn signature(by: u8) -> Signature {
    Signature::from_bytes([by; 64])
}

/// A message of every kind whose sender signs.
fn signed(
    versions: &[ShardVersion],
    shards: &[ShardPlan],
    members: &[Member],
    held: &[Held],
) -> [SignedMessage; 7] {
    let value = Digest::from_bytes([0xee; 32]);
    let certificate = VoteCertificate {
        ballot: 1,
        value,
        votes: vec![(peer(1), signature(1)), (peer(2), signature(2))],
    };
    let pledge = Pledge {
        by: peer(1),
        zero: Some(value),
        highest: Some((1, value)),
        signature: signature(1),
    };
    let seated = |member: &Member| Seated {
        peer: member.peer,
        weight: member.said.weight,
        life: 7,
    };
    let (ballot, versions) = (2, versions.to_vec());
    [
        SignedMessage::Vote(Stated {
            ballot,
            value,
            versions: versions.clone(),
            signature: signature(1),
        }),
        SignedMessage::Lock(Stated {
            ballot,
            value,
            versions: versions.clone(),
            signature: signature(1),
        }),
        SignedMessage::Prepare { ballot },
        SignedMessage::Promise {
            ballot,
            pledge: Box::new(pledge),
            certificate: Some(Box::new(certificate.clone())),
            versions: versions.clone(),
            held: held.to_vec(),
        },
        SignedMessage::Repair {
            ballot,
            pledges: vec![pledge],
            certificate: Some(certificate),
            shards: shards.to_vec(),
        },
        SignedMessage::Decided {
            ballot,
            value,
            group: SignedGroup {
                seats: 4,
                anchor: value,
                members: members.iter().map(seated).collect(),
            },
            versions,
            locked: true,
            signatures: vec![(peer(1), signature(1))],
        },
        SignedMessage::Heard {
            ballot,
            votes: vec![
                (peer(1), value, signature(1)),
                (peer(2), value, signature(2)),
            ],
        },
    ]
}

fn pull() -> [PullMessage; 6] {
    let (round, fragment) = (Round(0x0102), FragmentId(1));
    [
        PullMessage::Ask { round },
        PullMessage::AskSince {
            round,
            taken: Some(Round(6)),
        },
        PullMessage::Unchanged { round },
        PullMessage::AskPart { round, fragment },
        PullMessage::AskMean {
            round,
            fragment,
            closes: true,
        },
        PullMessage::NoMean { round, fragment },
    ]
}

/// A tag of every kind.
fn tags() -> Vec<Tag> {
    let (group, round) = (GroupTag::from_bits(77), Round(0x0102));
    vec![
        Tag::Contribution { group },
        Tag::Mean {
            group,
            members: Members::from_bits(0b11),
        },
        Tag::Share {
            group,
            weight: 0.5,
            taken: Some(taken()),
        },
        Tag::RowMean { group, weight: 0.5 },
        Tag::Result {
            group,
            rows: Members::from_bits(0b101),
            counted: true,
        },
        Tag::Mass { weight: 0.5 },
        Tag::Half {
            session: 3,
            exchange: 4,
            share: 0.25,
        },
        Tag::Relayed { up: true, peers: 5 },
        Tag::Answer { round },
        Tag::Update { base: 6, round },
        Tag::Version { version: 7, round },
        Tag::Copy { version: 8 },
        Tag::GroupMean {
            round,
            parts: 4,
            own: Some(Round(5)),
        },
    ]
}

fn values() -> Vec<(String, Vec<u8>)> {
    let slice = SliceId {
        fragment: FragmentId(1),
        shard: 2,
        attempt: murmurate_protocol::Attempt(1),
        ..slice(7, Part::Aggregate, 9)
    };
    let header = |tag: Tag| {
        let meta = SliceMeta {
            of: 4,
            bytes: 1234,
            tag,
        };
        let name = format!("slice-header-{}", tag.name());
        let part = match tag {
            Tag::RowMean { .. } => Part::RowMean,
            Tag::Result { .. } => Part::Bundle,
            _ => slice.part,
        };
        (name, encode_value(&(SliceId { part, ..slice }, meta)))
    };
    let roll = Roll::found([record()], 3, Round(1)).to_bytes();
    let snapshot = Snapshot {
        version: murmurate_protocol::peer::SNAPSHOT_VERSION,
        plan: PlanHash::from_bytes([0x33; 32]),
        round: Round(8),
        weights: vec![1.0, 0.25],
        ahead: None,
        roll,
        ledger: Vec::new(),
        split: None,
        seats: Vec::new(),
    };
    let mut values: Vec<_> = tags().into_iter().map(header).collect();
    values.push(("snapshot".to_owned(), snapshot.to_bytes()));
    // What a member of three says about the others' contributions.
    let scores = SliceId {
        shard: 0,
        part: Part::Scores,
        attempt: murmurate_protocol::Attempt::FIRST,
        ..slice
    };
    let meta = SliceMeta {
        of: 1,
        bytes: 23,
        tag: Tag::Mean {
            group: GroupTag::from_bits(77),
            members: Members::from_bits(4),
        },
    };
    let name = "slice-header-scores".to_owned();
    values.push((name, encode_value(&(scores, meta))));
    // What members say where the pace follows their loss.
    for (name, taken) in [("said-loss", None), ("said-loss-taken", Some(taken()))] {
        let said = Said {
            weight: 320.0,
            taken,
            loss: Some(Loss::of(2.5)),
        };
        let peer = peer(1);
        values.push((name.to_owned(), encode_value(&Member { peer, said })));
    }
    values
}

/// A version that this build speaks.
fn spoken(version: u8) -> WireVersion {
    let claimed = WireVersions::claimed(version, version);
    let shared = WireVersions::OURS.newest_shared(&claimed);
    shared.expect("a version of this build")
}

/// The golden bytes of a message in a version: those of the newest file that is not newer.
fn golden(name: &str, version: u8) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = |version: u8| folder.join(format!("v{version}-{name}.hex"));
    let mut versions = (0..=version).rev();
    versions.find_map(|version| std::fs::read_to_string(file(version)).ok())
}

#[test]
fn every_message_has_the_bytes_of_its_wire_version() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let write = std::env::var("MURMURATE_GOLDEN").is_ok_and(|v| v == "write");
    for version in WIRE_VERSION_OLDEST..=WIRE_VERSION {
        let frames = messages().into_iter().filter_map(|message| {
            let name = message.name().to_owned();
            let mut frame = encode_for(&message, spoken(version))?;
            assert_eq!(decode(&frame), Ok(message), "{name}");
            assert_eq!(frame[0], version);
            // Bodies are the same in all versions that have no file of their own.
            frame[0] = 0;
            Some((name, frame, true))
        });
        let values = values().into_iter();
        let values = values.map(|(name, bytes)| (name, bytes, false));
        for (name, bytes, is_frame) in frames.chain(values) {
            let of_any = |text: &str| match is_frame {
                true => format!("00{}", text.get(2..).unwrap_or_default()),
                false => text.to_owned(),
            };
            let known = golden(&name, version).map(|text| of_any(&text));
            let found = hex(&bytes);
            if write && version == WIRE_VERSION && known.as_ref() != Some(&found) {
                let mut bytes = bytes.clone();
                bytes[0] = if is_frame { version } else { bytes[0] };
                let file = folder.join(format!("v{version}-{name}.hex"));
                std::fs::write(&file, hex(&bytes)).expect("the golden file is written");
                continue;
            }
            assert_eq!(
                known.expect("a golden file for every message"),
                found,
                "{name} has other bytes in version {version}: raise WIRE_VERSION and write a file"
            );
        }
    }
}

/// Version 8 has eight messages more than version 7, and is otherwise the same.
#[test]
fn what_version_7_cannot_say_is_left_out_and_refused() {
    let only_7 = WireVersions::claimed(7, 7);
    let newer: Vec<Message> = messages().into_iter().filter(|m| m.since() > 7).collect();
    let names: Vec<&str> = newer.iter().map(Message::name).collect();
    let of_pull = [
        "pull-ask-since",
        "pull-unchanged",
        "pull-ask-part",
        "pull-ask-mean",
        "pull-no-mean",
    ];
    assert_eq!(
        names,
        [
            &["settings", "propose-placed", "propose-linked"][..],
            &of_pull
        ]
        .concat()
    );
    for message in messages() {
        let frame = encode(&message);
        assert_eq!(frame[0], 8);
        let refused = decode_within(&frame, only_7);
        assert_eq!(refused, Err(WireError::Version { theirs: 8 }));
        let Some(older) = encode_for(&message, spoken(7)) else {
            // Nor does anybody say it who claims to speak version 7.
            let mut frame = frame;
            frame[0] = 7;
            let error = decode(&frame).expect_err("version 7 has no such message");
            let missing = format!("version 7 has no `{}`", message.name());
            assert!(error.to_string().contains(&missing), "{error}");
            continue;
        };
        assert_eq!(decode_within(&older, only_7), Ok(message));
    }
}

/// The numbers of the variants that lead to a message: family by family, each a little-endian u32
/// after the version byte and the kind byte.
fn variants(message: &Message) -> Vec<u8> {
    let depth = match message {
        Message::Membership(_) | Message::Transfer(_) | Message::Founding(_) => 2,
        Message::Exchange(
            ExchangeMessage::Center(_)
            | ExchangeMessage::Pull(_)
            | ExchangeMessage::Grid(_)
            | ExchangeMessage::Cells(_),
        ) => 3,
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(_))) => 4,
        // The number of a scoped message's kind follows its round, fragment and group.
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(_))) => 3,
    };
    let frame = encode(message);
    let mut path: Vec<u8> = (0..depth).map(|level| frame[2 + 4 * level]).collect();
    if let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(_))) = message {
        let at = 2 + 4 * depth + 8 + 2 + 8;
        path.push(frame[at]);
        // Signed messages are a family of their own inside.
        if frame[at] == 7 {
            path.push(frame[at + 4]);
        }
    }
    path
}

#[test]
fn every_kind_of_message_has_a_golden_file() {
    let found: Vec<Vec<u8>> = messages().iter().map(variants).collect();
    let numbers = [
        (vec![0], 0..6),
        (vec![1], 0..7),
        (vec![2, 0, 0], 0..12),
        (vec![2, 0, 1], 0..7),
        (vec![2, 0, 1, 7], 0..7),
        (vec![2, 0, 1], 8..13),
        (vec![2, 1], 0..2),
        (vec![2, 2], 0..6),
        (vec![2, 3], 0..6),
        (vec![2, 4], 0..4),
        (vec![3], 0..9),
    ];
    let paths = |(family, kinds): &(Vec<u8>, Range<u8>)| {
        let family = family.clone();
        let path = move |kind| [&family[..], &[kind]].concat();
        kinds.clone().map(path).collect::<Vec<_>>()
    };
    let all: Vec<Vec<u8>> = numbers.iter().flat_map(paths).collect();
    assert_eq!(found, all);
    // There is no further kind in any family, and no further family.
    for beyond in [
        &[4, 0, 0, 0][..],
        &[0, 6, 0, 0],
        &[1, 7, 0, 0],
        &[2, 5, 0, 0],
        &[2, 3, 6, 0],
        &[2, 4, 4, 0],
        &[3, 9, 0, 0],
        &[2, 0, 2, 0],
        &[2, 0, 0, 12],
        &[2, 1, 2, 0],
        &[2, 2, 6, 0],
    ] {
        let mut frame = vec![WIRE_VERSION, 0];
        beyond
            .iter()
            .for_each(|number| frame.extend([*number, 0, 0, 0]));
        frame.extend([0; 64]);
        let refused = decode(&frame)
            .expect_err("there is no such kind")
            .to_string();
        assert!(refused.contains("variant"), "{beyond:?}: {refused}");
    }
}

/// A weight that is no number would differ from itself, and so would the group that it is in.
#[test]
fn no_message_has_a_weight_that_is_no_number() {
    let usual = 320.0_f64.to_le_bytes();
    let mut found = 0;
    for message in messages() {
        let bytes = encode(&message);
        let at = |window: &[u8]| window == usual;
        for place in bytes.windows(8).enumerate().filter(|(_, w)| at(w)) {
            let mut changed = bytes.clone();
            changed[place.0..place.0 + 8].copy_from_slice(&f64::NAN.to_le_bytes());
            assert!(decode(&changed).is_err(), "{message:?}");
            found += 1;
        }
    }
    assert!(found >= 4, "{found} weights");
}

#[test]
fn a_frame_of_another_kind_is_refused() {
    let mut frame = encode(&messages()[0]);
    frame[1] = 1;
    assert_eq!(decode(&frame), Err(WireError::Kind { kind: 1 }));
    assert_eq!(decode(&[WIRE_VERSION]), Err(WireError::Empty));
}

/// The rows of a table of `docs/wire.md` whose first column names something in backticks.
fn documented(heading: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/wire.md");
    let text = std::fs::read_to_string(path).expect("docs/wire.md is there");
    let section = text.split(heading).nth(1).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next().map(str::to_owned))
        .collect()
}

#[test]
fn the_documented_messages_are_those_of_the_code() {
    let mut named: Vec<String> = messages().iter().map(|m| m.name().to_owned()).collect();
    let mut found = documented("\n## Messages\n");
    named.sort();
    found.sort();
    assert_eq!(
        found, named,
        "the tables of docs/wire.md list every message once"
    );
}

#[test]
fn the_documented_tags_are_those_of_the_code() {
    let named: Vec<&str> = tags().iter().map(Tag::name).collect();
    assert_eq!(
        documented("\n## Tags\n"),
        named,
        "the table of docs/wire.md lists every tag"
    );
}
