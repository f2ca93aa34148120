//! `murmurate why` while a round hangs, `murmurate top`, and the event logs of several daemons in one.

use murmurate_tests::{Daemon, Settings, get, program, quiet_turn, status, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn ask(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program())
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn why_names_a_daemon_that_is_stopped_and_logs_are_joined() {
    let turn = quiet_turn();
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let settings = Settings {
        start_with: 3,
        // Rounds take a while, so that the others wait long enough to be asked.
        inner_steps: Some(40),
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &here.join("a"), &[]);
    let (_, address, http) = first.listening();
    let second = Daemon::start(&turn, &settings.shard(1), &here.join("b"), &[&address]);
    let mut third = Daemon::start(&turn, &settings.shard(2), &here.join("c"), &[&address]);
    let (stopped, _, _) = third.listening();
    first.reaches(4);
    the_swarm_is_shown_in_a_frame(here);

    let answer = stopped_and_named(here, &http, (&third, &stopped[..8]));
    println!("{answer}");
    let json: Value = serde_json::from_str(&ask(here, &["why", "a", "--json"])).unwrap();
    assert!(
        json["action"].is_string() && json["sentences"].is_array(),
        "{json}"
    );
    // The stopped daemon itself cannot answer; its log tells how far it was.
    let output = Command::new(program())
        .args(["why", "c"])
        .current_dir(here)
        .output()
        .unwrap();
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && line.contains("its log ends in round"),
        "{line}"
    );
    third.signal(Signal::CONT);

    let counted = ask(here, &["why", "a", "contribution"]);
    assert!(counted.contains("your contribution"), "{counted}");
    assert!(ask(here, &["why", "a", "slow"]).starts_with("Rounds take "));
    let history: Value = serde_json::from_str(&get(&http, "/api/v1/history")).unwrap();
    assert!(
        history["points"].as_array().unwrap().len() >= 4,
        "{history}"
    );
    assert_eq!(get(&http, "/healthz"), "ok\n");
    assert_eq!(get(&http, "/readyz").lines().count(), 1);
    for daemon in [first, second, third] {
        daemon.interrupt();
    }
    logs_are_joined(here);
    let frame = ask(here, &["top", "--replay", "a", "b", "--once"]);
    assert!(frame.contains("■ the end"), "{frame}");
}

/// Stops a daemon until `why` says so. The others wait for it for one deadline only, and go on without it. A
/// machine that is too busy to ask within that time lets it take part again and stops it again. Returns the
/// answer; the daemon is still stopped.
fn stopped_and_named(here: &Path, http: &str, (daemon, short): (&Daemon, &str)) -> String {
    let action = format!("Look at the machine of daemon {short}");
    let members = |wanted: usize| {
        let group = &status(http)["group"]["members"];
        group.as_array().map_or(0, Vec::len) == wanted
    };
    let wait = Duration::from_secs(90);
    for _ in 0..5 {
        wait_until("a group of three", wait, || members(3).then_some(()));
        daemon.signal(Signal::STOP);
        let answer = wait_until("an answer, or a round without it", wait, || {
            let said = get(http, "/api/v1/why?what=round");
            if !said.contains(&action) {
                return members(2).then_some(None);
            }
            let answer = ask(here, &["why", "a"]);
            answer.contains(&action).then_some(Some(answer))
        });
        match answer {
            Some(answer) => return answer,
            None => daemon.signal(Signal::CONT),
        }
    }
    panic!("`why` never named daemon {short} while it was stopped");
}

/// An output that is no terminal gets one frame, also without `--once`.
fn the_swarm_is_shown_in_a_frame(here: &Path) {
    for arguments in [&["top", "a", "--once"][..], &["top", "a"]] {
        let frame = ask(here, arguments);
        for part in ["linked 2 of 2", "◆ ", "my contribution", "peer_up"] {
            assert!(frame.contains(part), "no {part} in\n{frame}");
        }
        assert!(
            frame.lines().all(|line| line.chars().count() <= 80),
            "{frame}"
        );
    }
    let json: Value = serde_json::from_str(&ask(here, &["top", "a", "--json"])).unwrap();
    assert_eq!(json["swarm"]["peers"].as_array().unwrap().len(), 2);
    assert!(
        json["history"]["points"].as_array().unwrap().len() >= 4,
        "{json}"
    );
    assert!(!json["events"].as_array().unwrap().is_empty());
}

fn logs_are_joined(here: &Path) {
    let joined = ask(here, &["log", "--merge", "a", "b", "c", "--json"]);
    let entries: Vec<Value> = joined
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let place = |round: u64, kind: &str, daemon: &Value| {
        let is = |e: &Value| e["round"] == round && e["kind"] == kind && e["daemon"] == *daemon;
        entries.iter().position(is)
    };
    let decided = entries.iter().position(|e| e["kind"] == "decided").unwrap();
    let round = entries[decided]["round"].as_u64().unwrap();
    for contributor in entries[decided]["contributors"].as_array().unwrap() {
        let trained = place(round, "trained", contributor);
        assert!(
            trained.is_some_and(|trained| trained < decided),
            "{contributor}"
        );
    }
    ask(
        here,
        &["log", "--merge", "a", "b", "c", "--chrome", "trace.json"],
    );
    let trace = std::fs::read_to_string(here.join("trace.json")).unwrap();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let rows = events
        .iter()
        .filter(|e| e["name"] == "process_name")
        .count();
    assert_eq!(rows, 3);
    assert!(
        events
            .iter()
            .any(|e| e["ph"] == "X" && e["name"] == "train")
    );
}
