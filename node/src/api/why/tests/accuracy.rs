//! What a fall of the accuracy is put down to.

use super::*;

#[test]
fn void_rounds_merges_and_newcomers_are_named_where_the_accuracy_fell() {
    let mut case = Case::new("train", 9);
    for number in 0..3 {
        case.tell(&round(number, &[ME, BOB], &[ME, BOB]));
    }
    case.tell(&[evaluated(3, 0.9)]);
    let voided = Event::Voided {
        round: Round(3),
        fragment: FragmentId(0),
    };
    let ended = |number| Event::RoundEnded {
        round: Round(number),
        digest: Digest::from_bytes([0; 32]),
        seconds: 1.0,
    };
    let merged = Event::Merged {
        round: Round(4),
        digest: Digest::from_bytes([0; 32]),
        sides: vec![(2, 10.0), (1, 5.0)],
    };
    case.tell(&[voided, ended(3), merged]);
    case.tell(&round(4, &[ME, BOB, CAROL], &[ME, BOB, CAROL]));
    case.tell(&[evaluated(5, 0.7)]);
    let answer = case.ask(Topic::Accuracy, None, None);
    let all = answer.sentences.join(" ");
    for part in [
        "Round 4 merged a swarm that was split: sides of 2 and 1 daemons.",
        "Round 3 had no result of a group.",
        "Round 4 was the first in a while with a contribution of daemon cacacaca",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(
        answer.action,
        "Ask `murmurate why round --round 3` what failed."
    );
}
