//! Vitals: the bytes of every message, their bounds, and what is refused.

use crate::common::{hex, peer};
use murmurate_protocol::limits::{
    VITALS_AT_ONCE_MAX, VITALS_BYTES_MAX, VITALS_MESSAGE_BYTES_MAX, VITALS_NAME_BYTES_MAX,
    VITALS_PEERS_MAX, VITALS_VERSION_BYTES_MAX, VITALS_WAITING_MAX,
};
use murmurate_protocol::vitals::{
    DaemonName, Heard, Known, RoundSeconds, SignedVitals, Vitals, VitalsMessage, WaitingFor,
};
use murmurate_protocol::wire::WireError;
use murmurate_protocol::{PeerId, Phase, Round, RunId, Signature, Wait};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::path::PathBuf;

fn name(text: &str) -> DaemonName {
    DaemonName::new(text).expect("a name")
}

/// Changes a field.
type Change = fn(&mut Vitals);

/// Vitals with nothing but what every daemon knows.
fn bare(id: u8) -> Vitals {
    Vitals {
        peer: peer(id),
        sequence: 0x0102,
        unix_ms: 0x0304,
        name: None,
        version: "0.1.0".to_owned(),
        round: Round(5),
        phase: Phase::Train,
        waiting: None,
        steps_per_s: None,
        loss: None,
        accuracy: None,
        last_round: None,
        memory: None,
        saved_round: None,
    }
}

/// The largest vitals.
fn full(id: u8) -> Vitals {
    Vitals {
        name: Some(name(&"n".repeat(VITALS_NAME_BYTES_MAX))),
        version: "1".repeat(VITALS_VERSION_BYTES_MAX),
        waiting: Some(WaitingFor {
            wait: Wait::Contributions,
            peers: vec![peer(9); VITALS_WAITING_MAX],
        }),
        steps_per_s: Some(12.5),
        loss: Some(0.25),
        accuracy: Some(0.75),
        last_round: Some(RoundSeconds {
            train: 1.0,
            exchange: 0.5,
            wait: 0.125,
        }),
        memory: Some(1 << 30),
        saved_round: Some(Round(4)),
        ..bare(id)
    }
}

fn heard(vitals: Vitals) -> Heard {
    Heard {
        age_ms: 1500,
        signed: SignedVitals {
            vitals,
            signature: Signature::from_bytes([0x55; 64]),
        },
    }
}

fn messages() -> Vec<(&'static str, VitalsMessage)> {
    let known = Known {
        peer: Known::prefix(&peer(0xab)),
        sequence: 7,
    };
    vec![
        (
            "vitals",
            VitalsMessage::Vitals(vec![heard(bare(1)), heard(full(2))]),
        ),
        ("known", VitalsMessage::Known(vec![known])),
        ("wanted", VitalsMessage::Wanted(vec![known.peer])),
    ]
}

/// A difference is a change of the wire: give the protocol another number, then rewrite the files with
/// `MURMURATE_GOLDEN=write`.
#[test]
fn every_message_has_its_bytes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (number, (name, message)) in messages().into_iter().enumerate() {
        let bytes = message.encode();
        assert_eq!(usize::from(bytes[0]), number, "{name}");
        assert_eq!(VitalsMessage::decode(&bytes), Ok(message));
        let file = folder.join(format!("vitals1-{name}.hex"));
        #[allow(clippy::disallowed_methods, reason = "rewriting is asked for by hand")]
        if std::env::var("MURMURATE_GOLDEN").is_ok_and(|v| v == "write") {
            std::fs::write(&file, hex(&bytes)).unwrap();
        }
        let known = std::fs::read_to_string(&file).expect("a golden file for every message");
        assert_eq!(known, hex(&bytes), "{name}");
    }
}

#[test]
fn the_largest_vitals_and_messages_fit_their_bounds() {
    let one = heard(full(1));
    assert!(one.signed.check().is_ok());
    assert!(one.signed.wire_bytes() <= VITALS_BYTES_MAX);
    let known = Known {
        peer: 1,
        sequence: 2,
    };
    for message in [
        VitalsMessage::Vitals(vec![one; VITALS_AT_ONCE_MAX]),
        VitalsMessage::Known(vec![known; VITALS_PEERS_MAX]),
        VitalsMessage::Wanted(vec![1; VITALS_PEERS_MAX]),
    ] {
        let bytes = message.encode();
        assert!(bytes.len() <= VITALS_MESSAGE_BYTES_MAX, "{}", bytes.len());
        assert_eq!(VitalsMessage::decode(&bytes), Ok(message));
    }
}

#[test]
fn what_is_out_of_range_is_refused_with_its_field() {
    let cases: [(&str, Change); 7] = [
        ("vitals.version", |v| v.version = "1".repeat(25)),
        ("vitals.version", |v| v.version = "<b>".to_owned()),
        ("vitals.waiting", |v| {
            v.waiting = Some(WaitingFor {
                wait: Wait::Group,
                peers: vec![peer(1); VITALS_WAITING_MAX + 1],
            });
        }),
        ("vitals.steps_per_s", |v| v.steps_per_s = Some(-1.0)),
        ("vitals.loss", |v| v.loss = Some(f32::NAN)),
        ("vitals.accuracy", |v| v.accuracy = Some(1.5)),
        ("vitals.last_round", |v| {
            v.last_round = Some(RoundSeconds {
                train: 1.0,
                exchange: f32::INFINITY,
                wait: 1.0,
            });
        }),
    ];
    for (field, change) in cases {
        let mut vitals = full(1);
        change(&mut vitals);
        let bytes = VitalsMessage::Vitals(vec![heard(vitals)]).encode();
        let field = field.to_owned();
        assert_eq!(
            VitalsMessage::decode(&bytes),
            Err(WireError::OutOfRange { field })
        );
    }
    let many = VitalsMessage::Vitals(vec![heard(bare(1)); VITALS_AT_ONCE_MAX + 1]);
    assert!(VitalsMessage::decode(&many.encode()).is_err());
    let long = vec![0; VITALS_MESSAGE_BYTES_MAX + 1];
    let refused = VitalsMessage::decode(&long);
    assert!(
        matches!(refused, Err(WireError::TooLong { .. })),
        "{refused:?}"
    );
    // A name that changes how the text around it is shown does not even decode.
    let text = "n".repeat(VITALS_NAME_BYTES_MAX);
    let mut bytes = VitalsMessage::Vitals(vec![heard(full(1))]).encode();
    let place = bytes.windows(text.len()).position(|w| w == text.as_bytes());
    bytes[place.unwrap()] = b'\n';
    assert!(VitalsMessage::decode(&bytes).is_err());
}

#[test]
fn a_signature_is_over_the_run_and_every_field() {
    let run = RunId::from_bytes([1; 32]);
    let statement = SignedVitals::statement(&run, &full(1));
    let other = RunId::from_bytes([2; 32]);
    assert_ne!(SignedVitals::statement(&other, &full(1)), statement);
    let changes: [Change; 13] = [
        |v| v.peer = peer(2),
        |v| v.sequence += 1,
        |v| v.unix_ms += 1,
        |v| v.name = None,
        |v| v.version.push('1'),
        |v| v.round = Round(6),
        |v| v.phase = Phase::Apply,
        |v| v.waiting = None,
        |v| v.steps_per_s = None,
        |v| v.loss = None,
        |v| v.accuracy = Some(0.0),
        |v| v.memory = None,
        |v| v.saved_round = None,
    ];
    for change in changes {
        let mut vitals = full(1);
        change(&mut vitals);
        assert_ne!(
            SignedVitals::statement(&run, &vitals),
            statement,
            "{vitals:?}"
        );
    }
}

fn any_vitals() -> impl Strategy<Value = Vitals> {
    let head = (any::<[u8; 32]>(), any::<u64>(), any::<u64>(), any::<u64>());
    let texts = (option::of("[a-zäß0-9]{1,16}"), "[0-9.]{0,24}");
    let figures = (
        option::of(0f32..1e9),
        option::of(-1e9f32..1e9),
        option::of(0f32..=1.0),
        option::of((0f32..1e6, 0f32..1e6, 0f32..1e6)),
    );
    let rest = (
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(vec(any::<[u8; 32]>(), 0..=VITALS_WAITING_MAX)),
    );
    (head, texts, figures, rest).prop_map(|(head, texts, figures, rest)| Vitals {
        peer: PeerId::from_bytes(head.0),
        sequence: head.1,
        unix_ms: head.2,
        name: texts.0.map(|name| self::name(&name)),
        version: texts.1,
        round: Round(head.3),
        phase: Phase::Exchange,
        waiting: rest.2.map(|peers| WaitingFor {
            wait: Wait::Agreement,
            peers: peers.into_iter().map(PeerId::from_bytes).collect(),
        }),
        steps_per_s: figures.0,
        loss: figures.1,
        accuracy: figures.2,
        last_round: figures.3.map(|(train, exchange, wait)| RoundSeconds {
            train,
            exchange,
            wait,
        }),
        memory: rest.0,
        saved_round: rest.1.map(Round),
    })
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(vitals in any_vitals()) {
        let one = heard(vitals);
        prop_assert!(one.signed.wire_bytes() <= VITALS_BYTES_MAX);
        let message = VitalsMessage::Vitals(vec![one]);
        prop_assert_eq!(VitalsMessage::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn bytes_that_decode_are_the_only_ones(bytes in vec(any::<u8>(), 0..600)) {
        if let Ok(message) = VitalsMessage::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }

    #[test]
    fn no_change_of_a_byte_panics(at in 0usize..700, to in any::<u8>()) {
        let mut bytes = messages().swap_remove(0).1.encode();
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(message) = VitalsMessage::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}
