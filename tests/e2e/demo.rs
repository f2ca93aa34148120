//! `murmurate local --demo`: the whole story, in fewer rounds.

use murmurate_tests::{murmurate, turn};
use serde_json::Value;

#[test]
fn the_demo_tells_of_a_late_joiner_a_split_a_healing_and_a_death() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = ["local", "--demo", "--rounds", "50", "--json"];
    let outcome = murmurate(dir.path(), &args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let story = report["story"].as_array().unwrap().iter();
    let told: Vec<&str> = story.map(|t| t["sentence"].as_str().unwrap()).collect();
    println!("{:.1} s\n{}", outcome.seconds, told.join("\n"));
    // Each thing is told after the one before it.
    let mut rest = told.iter();
    for part in [
        "Daemons 0, 1 and 2 start, each as a process of its own.",
        "hold the same model.",
        "Daemon 3 starts now, when the others are in round 6.",
        "The network is cut in round 18: daemons 0 and 1 cannot reach daemons 2 and 3.",
        "The network is whole again",
        "all hold the same model again.",
        "Daemon 2 was killed during the exchange of round 40.",
        "Daemons 0, 1 and 3 finished 50 rounds with the same model, bit by bit.",
    ] {
        assert!(
            rest.any(|sentence| sentence.contains(part)),
            "no `{part}` in its place in\n{}",
            told.join("\n")
        );
    }
    let split = told.iter().filter(|t| t.contains("go on among themselves"));
    assert_eq!(split.count(), 2, "{told:?}");
    assert!(report["total"]["digest"].is_string(), "{}", report["total"]);
    drop(turn);
}
