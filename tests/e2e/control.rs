//! The owner of a run pauses it, lets it go on, and ends it; no one else does.

use crate::membership::{closed, invited, line};
use murmurate_tests::assert_has;
use murmurate_tests::{Daemon, failure, quiet_turn, status, success, wait_until};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// What a paused daemon says of itself: its round, and the directives that it knows.
fn paused(http: &str) -> u64 {
    wait_until("a pause", Duration::from_secs(60), || {
        let status = status(http);
        let paused = status["control"]["paused"].as_bool() == Some(true);
        (paused && status["phase"] == "paused").then(|| status["round"].as_u64().unwrap())
    })
}

fn json(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&success(dir, args)).unwrap()
}

#[test]
fn the_owner_pauses_a_run_and_no_one_else_does() {
    let turn = quiet_turn();
    let base = tempfile::tempdir().unwrap();
    let here = base.path();
    let [a, b, c] = ["a", "b", "c"].map(|name| here.join(name));
    let mut first = Daemon::start(&turn, &closed(), &a, &[]);
    let (_, _, http) = first.listening();
    first.reaches(1);
    wait_until("the addresses are noted", Duration::from_secs(30), || {
        a.join("addresses").exists().then_some(())
    });
    let invite = line(&["invite", "--uses", "2"], &a);
    let mut second = invited(&turn, 1, &b, &invite);
    let mut third = invited(&turn, 2, &c, &invite);
    let https = [http, second.listening().2, third.listening().2];
    for daemon in [&mut second, &mut third] {
        daemon.reaches(2);
    }

    // Who has no run key, or another one, directs nothing.
    let refused = failure(here, &["control", "b", "pause"]);
    assert_has(&refused, "only the owner of a run directs it");
    success(here, &["run-key", "others"]);
    let refused = failure(here, &["control", "b", "--key", "others.key", "pause"]);
    assert!(refused.contains("the key is of another one"), "{refused}");

    let said = json(here, &["control", "a", "pause", "--json"]);
    let from = said["directive"]["from_round"].as_u64().unwrap();
    for http in &https {
        assert_eq!(paused(http), from);
    }
    let why = success(here, &["why", "b"]);
    assert_has(&why, &format!("paused by the owner since round {from}"));

    // A daemon that is started again pauses again. Meanwhile no other has gone on.
    second.interrupt().polite();
    let mut second = Daemon::start(&turn, &closed().shard(1), &b, &[]);
    let (_, _, http) = second.listening();
    assert_eq!(paused(&http), from);
    for http in [&https[0], &https[2]] {
        assert_eq!(
            (paused(http), status(http)["expired_waits"].as_u64()),
            (from, Some(0))
        );
    }

    // The codec changes when the run goes on. What cannot take its place is refused with what can.
    let refused = failure(here, &["control", "a", "codec", "top-k"]);
    assert!(refused.contains("choose one of"), "{refused}");
    let codecs = status(&https[0])["control"]["codecs"].clone();
    let other = codecs[1].as_str().expect("another codec fits");
    let said = json(here, &["control", "a", "codec", other, "--json"]);
    assert_eq!(said["directive"]["from_round"].as_u64(), Some(from));
    assert_eq!(said["directive"]["codec"].as_str(), Some(other));

    let end = (from + 4).to_string();
    success(here, &["control", "a", "stop", "--at", &end]);
    success(here, &["control", "a", "resume"]);
    let reports = [first, second, third].map(|daemon| daemon.end().polite().clone());
    for report in &reports {
        assert_eq!(report.rounds, from + 4, "{report:?}");
        assert_eq!(report.digest, reports[0].digest, "{report:?}");
    }
    let known = json(here, &["control", "c", "list", "--json"]);
    let changes = known["directives"].as_array().unwrap().iter();
    let changes: Vec<&str> = changes.map(|d| d["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["codec", "rounds", "resume"]);
    let log = success(here, &["log", "c", "--kind", "directive", "--json"]);
    assert_eq!(log.lines().count(), 4, "{log}");
}
