//! Daemons are called by their names.

use super::*;

#[test]
fn a_daemon_with_a_name_is_called_by_it_and_its_id_stands_where_something_is_to_be_done() {
    let mut case = Case::new("exchange", 41);
    let carol = case.status.peers.get_mut(&CAROL.to_hex()).unwrap();
    carol.presence = Presence::Away;
    case.waits(Wait::Contributions, &[CAROL]);
    let claim = |peer, name: &str| SeenVitals {
        vitals: Vitals {
            name: DaemonName::new(name).ok(),
            ..crate::tests::vitals(peer, 41, Phase::Exchange)
        },
        age: Duration::ZERO,
    };
    let _ = case.claims.set(
        1.0,
        &[claim(CAROL, "gpu-2"), claim(BOB, "x"), claim(ME, "x")],
    );
    let answer = case.ask(Topic::Round, None, None);
    assert!(
        answer.sentences[0].contains(" gpu-2 (not linked"),
        "{answer:?}"
    );
    let expected = "Check that gpu-2 (cacacaca) runs and that this machine can reach it.";
    assert_eq!(answer.action, expected);
    let _ = case.claims.set(2.0, &[claim(CAROL, "x"), claim(BOB, "x")]);
    let answer = case.ask(Topic::Round, None, None);
    assert!(
        answer.action.contains("daemon cacacaca"),
        "two have that name"
    );
}
