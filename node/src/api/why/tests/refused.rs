//! Daemons that refuse each other, and the settings in which they differ.

use super::*;

#[test]
fn a_daemon_that_waits_to_begin_says_who_refused_it_and_why() {
    let mut case = Case::new("join", 0);
    let refused = Event::RefusedBy {
        peer: CAROL,
        reason: murmurate_protocol::wire::Reason::OtherPlan,
    };
    case.tell(&[refused.clone(), refused]);
    let answer = case.ask(Topic::Round, None, None);
    let expected = "Daemon cacacaca refused this daemon: it follows another plan (compare seed, rounds and \
                    strategy in both configs).";
    assert_eq!(answer.sentences[1..], [expected]);
    assert!(answer.action.contains("--show-config"), "{answer:?}");
    case.insight.differs(
        &CAROL,
        &["run.seed".to_owned(), "strategy.preset".to_owned()],
    );
    let answer = case.ask(Topic::Round, None, None);
    let expected =
        "The configuration of daemon cacacaca has other values in `run.seed`, `strategy.preset`.";
    assert!(
        answer.sentences.contains(&expected.to_owned()),
        "{answer:?}"
    );
    assert!(answer.action.contains("the same values"), "{answer:?}");
    case.status.phase = "train".to_owned();
    assert_eq!(case.ask(Topic::Round, None, None).action, NOTHING);
}
