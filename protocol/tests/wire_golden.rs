//! The bytes of every message. A difference is a change of the wire: raise `WIRE_VERSION`, then
//! write the files anew with `MURMURATE_GOLDEN=write cargo test -p murmurate-protocol --test
//! wire_golden`.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::collapsible_match,
    reason = "tests read settings of their own, and list one case after the other"
)]

use murmurate_protocol::wire::{
    Ballot, Held, Hello, Member, Message, Muster, PeerRecord, Reason, ShardPlan, ShardVersion,
    WIRE_VERSION, decode, encode, encode_value,
};
use murmurate_protocol::{
    Digest, FragmentId, LayoutHash, Part, PeerId, PlanHash, Round, RunId, SliceId, SliceMeta,
    Snapshot, StateId, Time,
};
use std::fmt::Write as _;
use std::path::PathBuf;

fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

fn version(owner: u8) -> ShardVersion {
    ShardVersion {
        owner: peer(owner),
        attempt: 1,
        contributors: 0b101,
        digest: Digest::from_bytes([0xdd; 32]),
    }
}

fn messages() -> Vec<(&'static str, Message)> {
    let (round, fragment, group) = (Round(0x0102), FragmentId(3), 0x0a0b_0c0d);
    let ballot = Ballot {
        number: 2,
        coordinator: peer(4),
    };
    let member = |id| Member {
        peer: peer(id),
        weight: 320.0,
    };
    let members = vec![member(1), member(2)];
    let versions = vec![version(1), version(2)];
    let state = StateId {
        round,
        root: Digest::from_bytes([0xee; 32]),
        bytes: 4096,
    };
    let record = PeerRecord {
        peer: peer(1),
        run: RunId::from_bytes([0x11; 32]),
        sequence: 5,
        expires: Time::from_nanos(1_000_000_007),
        addresses: vec![vec![4, 127, 0, 0, 1], Vec::new()],
        signature: vec![0x55; 64],
    };
    let hello = Hello {
        run: RunId::from_bytes([0x11; 32]),
        layout: LayoutHash::from_bytes([0x22; 32]),
        plan: PlanHash::from_bytes([0x33; 32]),
        round,
        anchor: Digest::from_bytes([0x44; 32]),
        ready: true,
        muster: Muster::Met,
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
    vec![
        ("hello", Message::Hello(hello)),
        ("records", Message::Records(vec![record])),
        ("goodbye", Message::Goodbye(Reason::OtherPlan)),
        (
            "ready",
            Message::Ready {
                round,
                weight: 320.0,
                anchor: state.root,
            },
        ),
        (
            "propose",
            Message::Propose {
                round,
                term: 1,
                members: members.clone(),
            },
        ),
        ("decline", Message::Decline { round, term: 1 }),
        (
            "behind",
            Message::Behind {
                round,
                resync: true,
            },
        ),
        (
            "vote",
            Message::Vote {
                round,
                fragment,
                group,
                ballot,
                versions: versions.clone(),
            },
        ),
        (
            "prepare",
            Message::Prepare {
                round,
                fragment,
                group,
                ballot,
            },
        ),
        (
            "promise",
            Message::Promise {
                round,
                fragment,
                group,
                ballot,
                voted,
                held,
                hopeful: 0b11,
            },
        ),
        (
            "repair",
            Message::Repair {
                round,
                fragment,
                group,
                ballot,
                alive: 0b110,
                shards,
            },
        ),
        (
            "void",
            Message::Void {
                round,
                fragment,
                group,
                ballot,
            },
        ),
        (
            "decided",
            Message::Decided {
                round,
                fragment,
                group,
                ballot: 2,
                members,
                versions,
            },
        ),
        ("history-ask", Message::HistoryAsk { round }),
        ("history-refuse", Message::HistoryRefuse { round }),
        ("state-ask", Message::StateAsk { at_least: round }),
        ("state-offer", Message::StateOffer(state)),
        ("state-refuse", Message::StateRefuse),
        (
            "alive",
            Message::Alive {
                round,
                ready: true,
                muster: Muster::Begun,
                anchor: state.root,
            },
        ),
        (
            "reduced",
            Message::Reduced {
                round,
                fragment,
                group,
                shard: 1,
                version: version(2),
            },
        ),
        ("center-ask", Message::CenterAsk { fragment, shard: 4 }),
        (
            "center-moved",
            Message::CenterMoved {
                round,
                fragment,
                shard: 4,
            },
        ),
        ("pull-ask", Message::PullAsk { round }),
    ]
}

fn values() -> Vec<(&'static str, Vec<u8>)> {
    let slice = SliceId {
        round: Round(7),
        fragment: FragmentId(1),
        shard: 2,
        part: Part::Aggregate,
        origin: peer(9),
        attempt: 1,
    };
    let meta = SliceMeta {
        of: 4,
        weight: 0.5,
        contributors: 0b11,
        group: 77,
        bytes: 1234,
    };
    let snapshot = Snapshot {
        version: murmurate_protocol::peer::SNAPSHOT_VERSION,
        plan: PlanHash::from_bytes([0x33; 32]),
        round: Round(8),
        weights: vec![1.0, 0.25],
        ahead: None,
    };
    vec![
        ("slice-header", encode_value(&(slice, meta))),
        ("snapshot", snapshot.to_bytes()),
    ]
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn every_message_has_the_bytes_of_this_wire_version() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let write = std::env::var("MURMURATE_GOLDEN").is_ok_and(|v| v == "write");
    let frames = messages().into_iter().map(|(name, message)| {
        let frame = encode(&message);
        assert_eq!(decode(&frame), Ok(message), "{name}");
        (name, frame)
    });
    for (name, bytes) in frames.chain(values()) {
        let file = folder.join(format!("v{WIRE_VERSION}-{name}.hex"));
        if write {
            std::fs::write(&file, hex(&bytes)).expect("the golden file is written");
        }
        let known = std::fs::read_to_string(&file).expect("a golden file for every message");
        assert_eq!(
            known,
            hex(&bytes),
            "{name} has other bytes: raise WIRE_VERSION and write the golden files anew"
        );
    }
}

#[test]
fn every_kind_of_message_has_a_golden_file() {
    // The variant is the little-endian u32 after the version byte.
    let kinds: Vec<u8> = messages().iter().map(|(_, m)| encode(m)[1]).collect();
    assert_eq!(kinds, (0..kinds.len() as u8).collect::<Vec<_>>());
    let mut beyond = vec![WIRE_VERSION, kinds.len() as u8, 0, 0, 0];
    beyond.extend([0; 64]);
    let refused = decode(&beyond)
        .expect_err("there is no further kind")
        .to_string();
    assert!(refused.contains("variant"), "{refused}");
}
