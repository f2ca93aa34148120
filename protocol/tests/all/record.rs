//! Records of random clubs repeat to the bit. Damaged, foreign and shortened records are recognized
//! and never panic.

use crate::common::club::{Club, Tape};
use crate::common::{any_message, any_peer, config, peer, plan};
use murmurate_protocol::record::{
    Difference, Entry, RECORD_VERSION, RecordError, RecordHeader, RecordReader, Replay,
};
use murmurate_protocol::{Done, ExchangeKind, Input, Time, TrainSummary};
use proptest::prelude::*;

const BINARY: &str = "1.2.3";

/// The result of reading and replaying a record.
#[derive(Debug, PartialEq)]
struct Outcome {
    inputs: u64,
    outputs: u64,
    difference: Option<Difference>,
    /// How it ends, in words: with an end or with a cut marker.
    closed: Option<String>,
    unread: usize,
}

fn entries(bytes: &[u8], piece: usize) -> Result<(Vec<Entry>, usize), RecordError> {
    let mut reader = RecordReader::new(BINARY);
    let mut entries = Vec::new();
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        while let Some(entry) = reader.entry()? {
            entries.push(entry);
        }
    }
    Ok((entries, reader.unread()))
}

fn replay(bytes: &[u8], piece: usize) -> Result<Outcome, RecordError> {
    let (entries, unread) = entries(bytes, piece)?;
    let mut entries = entries.into_iter();
    let Some(Entry::Header(header)) = entries.next() else {
        return Ok(Outcome {
            inputs: 0,
            outputs: 0,
            difference: None,
            closed: None,
            unread,
        });
    };
    let mut replay = Replay::new(*header, None)?;
    let mut closed = None;
    for entry in entries {
        closed = match &entry {
            Entry::End { .. } => Some("end".to_owned()),
            Entry::Cut { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        replay.entry(entry, &mut |_| {});
    }
    Ok(Outcome {
        inputs: replay.inputs(),
        outputs: replay.outputs().count(),
        difference: replay.difference(),
        closed,
        unread,
    })
}

/// A club in which messages get lost, strangers speak and a member may die, depending on `seed`.
fn recorded(count: u8, seed: u64, dies: bool, said: Vec<(u8, Input)>) -> Club {
    let mut club = Club::new(count);
    club.record(BINARY);
    let mut state = seed | 1;
    club.hears = Box::new(move |_, _, _| {
        // Xorshift: one message in 32 is lost.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        !state.is_multiple_of(32)
    });
    club.run_until(20, |club| {
        club.members.values().any(|m| m.peer.round().0 >= 3)
    });
    if dies {
        club.kill(peer(count));
    }
    for (to, input) in said {
        club.tell(peer(1 + to % count), input);
    }
    club.run_until(20, |club| {
        club.members.values().any(|m| m.peer.round().0 >= 6)
    });
    club
}

fn any_input() -> impl Strategy<Value = (u8, Input)> {
    let received =
        (any_peer(), any_message()).prop_map(|(from, message)| Input::Received { from, message });
    let input = prop_oneof![
        4 => received,
        1 => any_peer().prop_map(Input::LinkUp),
        1 => any_peer().prop_map(Input::LinkDown),
        1 => Just(Input::Timeout),
        1 => Just(Input::Leave),
    ];
    (any::<u8>(), input)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_a_club_did_repeats_to_the_bit(
        count in 1u8..5, seed: u64, dies: bool, piece in 1usize..5000,
        said in proptest::collection::vec(any_input(), 0..20),
    ) {
        let club = recorded(count, seed, dies && count > 1, said);
        prop_assert_eq!(club.tapes.len(), usize::from(count));
        for tape in club.tapes.into_values() {
            let bytes = tape.end();
            let outcome = replay(&bytes, piece).unwrap();
            prop_assert!(outcome.inputs > 2 && outcome.outputs > 2, "{:?}", outcome);
            prop_assert_eq!(outcome.difference, None);
            prop_assert_eq!(outcome.closed.as_deref(), Some("end"));
        }
    }

    #[test]
    fn a_flipped_bit_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let club = recorded(2, 7, false, Vec::new());
        for tape in club.tapes.into_values() {
            let mut bytes = tape.end();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let outcome = replay(&bytes, 4096);
            prop_assert!(outcome.is_err(), "byte {at}: {outcome:?}");
        }
    }

    #[test]
    fn a_shortened_record_reads_up_to_its_last_whole_entry(
        at in any::<prop::sample::Index>(), piece in 1usize..5000,
    ) {
        let mut club = recorded(2, 7, true, Vec::new());
        let bytes = club.tapes.pop_first().unwrap().1.bytes;
        let (whole, _) = entries(&bytes, piece).unwrap();
        let short = &bytes[..at.index(bytes.len())];
        let (read, unread) = entries(short, piece).unwrap();
        prop_assert!(read.len() < whole.len() && whole.starts_with(&read));
        prop_assert!(unread <= short.len());
        let outcome = replay(short, piece).unwrap();
        prop_assert_eq!((outcome.difference, outcome.closed), (None, None));
    }

    #[test]
    fn arbitrary_bytes_are_no_record(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        let version = RECORD_VERSION.to_le_bytes();
        let mut opened = [&b"MURMREC\n"[..], &version, b"\x051.2.3"].concat();
        prop_assert!(replay(&bytes, 64).is_err());
        opened.extend(bytes);
        // Too short for an entry's head, or a head that does not match its check.
        let short = opened.len() < 18 + 8;
        prop_assert_eq!(replay(&opened, 64).is_ok(), short);
    }
}

#[test]
fn another_input_is_found_at_the_input_after_it() {
    let mut club = recorded(2, 7, false, Vec::new());
    let bytes = club.tapes.pop_first().unwrap().1.end();
    let (entries, _) = entries(&bytes, 4096).unwrap();
    let mut entries = entries.into_iter();
    let Some(Entry::Header(header)) = entries.next() else {
        panic!("no header");
    };
    let mut replay = Replay::new(*header, None).unwrap();
    let mut changed = None;
    for (index, mut entry) in entries.enumerate() {
        if let Entry::Input { input, .. } = &mut entry
            && let Input::Done { done, .. } = input.as_mut()
            && let Done::Trained(summary) = done
            && changed.is_none()
        {
            // More samples than it said: its `Ready` has another weight.
            *summary = TrainSummary {
                samples: summary.samples + 1,
                ..*summary
            };
            changed = Some(index as u64);
        }
        replay.entry(entry, &mut |_| {});
    }
    let found = replay.difference().expect("the outputs differ");
    assert_eq!(Some(found.input), changed);
}

#[test]
fn a_record_of_another_version_says_so() {
    let header = RecordHeader {
        plan: plan(ExchangeKind::AllReduce, 1),
        config: config(peer(1)),
        topology: None,
    };
    let bytes = Tape::new("0.9.0", &header).end();
    let error = replay(&bytes, 4096).unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("made by murmurate 0.9.0, and this is 1.2.3"),
        "{words}"
    );

    let mut bytes = Tape::new(BINARY, &header).end();
    bytes[8] += 1;
    let theirs = RECORD_VERSION + 1;
    let error = replay(&bytes, 4096).unwrap_err();
    assert_eq!(error, RecordError::OtherRecordVersion { theirs });
}

#[test]
fn a_cut_record_replays_and_says_why_it_was_cut() {
    let mut club = recorded(2, 7, false, Vec::new());
    let bytes = club.tapes.pop_first().unwrap().1.cut("the disk is full");
    let outcome = replay(&bytes, 4096).unwrap();
    assert_eq!(outcome.closed.as_deref(), Some("the disk is full"));
    assert_eq!((outcome.difference, outcome.unread), (None, 0));
}

#[test]
fn what_no_driver_does_is_refused() {
    let header = RecordHeader {
        plan: plan(ExchangeKind::AllReduce, 1),
        config: config(peer(1)),
        topology: None,
    };
    let gossip = RecordHeader {
        plan: plan(ExchangeKind::Gossip, 1),
        ..header.clone()
    };
    let error = replay(&Tape::new(BINARY, &gossip).end(), 4096).unwrap_err();
    assert!(matches!(error, RecordError::Topology), "{error}");

    let start = |digests| Input::Start {
        snapshot: None,
        digests,
        opened: Vec::new(),
    };
    let digest = murmurate_protocol::Digest::of(b"anchor");
    let cases = [
        (
            vec![(1, Input::Timeout)],
            "something happens before the start",
        ),
        (vec![(1, start(vec![]))], "one digest a fragment is needed"),
        (
            vec![(1, start(vec![digest])), (2, start(vec![digest]))],
            "it starts twice",
        ),
        (
            vec![(2, start(vec![digest])), (1, Input::Timeout)],
            "time goes back",
        ),
    ];
    for (inputs, expected) in cases {
        let mut tape = Tape::new(BINARY, &header);
        for (at, input) in &inputs {
            tape.input(Time::from_nanos(*at), input);
        }
        match replay(&tape.end(), 4096) {
            Err(RecordError::Impossible { what, .. }) => assert_eq!(what, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}
