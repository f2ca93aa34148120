//! The words at the gate.

use murmurate_protocol::wire::WireVersions;
use murmurate_protocol::{Digest, PeerId};
use murmurate_trust::gate::{Message, answer, ask, same};
use murmurate_trust::{News, Refusal, RunKey};
use proptest::prelude::*;

fn peers() -> (PeerId, PeerId) {
    (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]))
}

#[test]
fn a_tag_counts_for_one_direction_of_one_pair_in_one_run() {
    let (a, b) = peers();
    let of = |seed| RunKey::from_seed("birds".to_owned(), [seed; 32]).run();
    let run = of(1);
    let tag = ask(&run, &a, &b);
    assert!(same(tag, ask(&run, &a, &b)));
    for other in [
        ask(&run, &b, &a),
        answer(&run, &a, &b),
        answer(&run, &b, &a),
        ask(&of(2), &a, &b),
    ] {
        assert!(!same(tag, other));
    }
}

#[test]
fn messages_come_back_as_they_were() {
    let key = RunKey::from_seed("birds".to_owned(), [1; 32]);
    let (a, b) = peers();
    let chain = key.certify_self(&key.run(), a, 5);
    let register = Digest::of(b"");
    let all = [
        Message::Ask {
            tag: ask(&key.run(), &a, &b),
        },
        Message::Answer {
            tag: answer(&key.run(), &a, &b),
            chain: chain.clone(),
            register,
            wire: WireVersions::OURS,
        },
        Message::Proof {
            chain: chain.clone(),
            register,
            wire: WireVersions::claimed(9, 3),
        },
        Message::Verdict(Ok(())),
        Message::Verdict(Err(Refusal::InviteUsed { uses: 3 })),
        Message::News(News {
            members: vec![chain],
            ..News::default()
        }),
    ];
    for message in all {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    let long = vec![0; 1 << 17];
    assert!(Message::decode(&long).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = Message::decode(&bytes);
        let _ = murmurate_trust::Chain::from_bytes(&bytes);
        let _ = murmurate_trust::Invite::from_line(&String::from_utf8_lossy(&bytes));
    }
}
