//! Daemons that die, stop or start late: the others continue and agree.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{Turn, local, turn};
use serde_json::Value;

/// The bounds of every deadline in seconds: `floor_ms` and `ceiling_ms` of the default plan.
const DEADLINE_S: std::ops::RangeInclusive<f64> = 2.0..=60.0;

/// Twice the memory that a daemon of this model takes without faults.
const PEAK_MAX: u64 = 300_000_000;

/// Checks a run in which daemon 2 was hit in round 5 or soon after: the others trained on, reached
/// the target and hold the same bits.
///
/// That no wait exceeds its deadline is an invariant of the simulator, where time is exact. Here the
/// deadline must be within the plan's bounds, and the measured wait is printed.
fn struck(_turn: &Turn, report: &Value, kind: &str, phase: &str) {
    let fault = &report["faults"][0];
    let hit = (&fault["node"], &fault["kind"], &fault["phase"]);
    assert_eq!(hit, (&2.into(), &kind.into(), &phase.into()), "{fault}");
    let round = fault["round"].as_u64().unwrap();
    assert!((5..30).contains(&round), "{fault}");
    let became = if kind == "kill" { "killed" } else { "stopped" };
    assert_eq!(nodes(report)[2]["status"], became);
    let left: Vec<&Value> = [0, 1, 3].map(|i| &nodes(report)[i]).to_vec();
    for node in &left {
        assert_eq!(node["status"], "finished", "{node}");
        assert!(node["test_accuracy"].as_f64().unwrap() >= 0.95, "{node}");
        assert!(node["rounds"].as_u64().unwrap() > round, "{node}");
        assert!(node["longest_wait_for"].is_string(), "{node}");
        let waited = node["longest_wait_s"].as_f64().unwrap();
        let deadline = node["deadline_s"].as_f64().unwrap();
        assert!(DEADLINE_S.contains(&deadline), "{node}");
        println!("{kind} in {phase}: waited {waited:.2} s of {deadline:.2} s");
    }
    same_digest(&left);
}

/// SIGKILL in the given phase of a round. The report says where it hit.
fn killed(phase: &str) {
    let turn = turn();
    let report = local(&turn, &["--kill", &format!("2@round:5:{phase}")]);
    struck(&turn, &report, "kill", phase);
}

#[test]
fn one_is_killed_while_it_trains() {
    killed("train");
}

#[test]
fn one_is_killed_while_it_exchanges() {
    killed("exchange");
}

#[test]
fn one_is_killed_while_it_applies() {
    killed("apply");
}

/// SIGSTOP leaves the daemon's sockets open, so only a deadline ends the others' wait.
#[test]
fn one_is_stopped() {
    let turn = turn();
    let report = local(&turn, &["--stop", "2@round:5"]);
    struck(&turn, &report, "stop", "train");
}

/// A daemon that joins late fetches the swarm's state (anchor, outer optimizer, round) and trains on.
#[test]
fn one_is_late() {
    let report = local(&turn(), &["--late", "3@round:5", "--rounds", "60"]);
    let late = &nodes(&report)[3];
    assert_eq!(report["faults"][0]["kind"], "late");
    assert!(late["catch_ups"].as_u64().unwrap() > 0, "{late}");
    assert!(late["inner_steps"].as_u64().unwrap() > 0, "{late}");
    assert_eq!(late["rounds"], 60, "{late}");
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

/// `--kill-every` kills random daemons and restarts them. All rounds are done, all daemons reach the
/// target with the same digest, and no process grows.
#[test]
fn killed_again_and_again_they_come_back_and_agree() {
    // With the default deadlines the others would wait for as long as a killed daemon is away.
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("hasty.toml");
    let text = "[strategy]\npreset = \"diloco\"\n[strategy.deadlines]\nfloor_ms = 500\n";
    std::fs::write(&config, text).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let flags = ["--kill-every", "1s", "--rounds", "80", "--seed", "7"];
    let report = local(&turn(), &[&config[..], &flags].concat());
    let kills = report["faults"].as_array().unwrap();
    assert!(kills.len() >= 2, "{kills:?}");
    for kill in kills {
        assert_eq!(kill["kind"], "kill", "{kill}");
        let peak = kill["peak_rss_bytes"].as_u64().unwrap();
        assert!(peak < PEAK_MAX, "{kill}");
    }
    for node in nodes(&report) {
        assert_eq!(
            (&node["status"], &node["rounds"]),
            (&"finished".into(), &80.into())
        );
        assert!(node["test_accuracy"].as_f64().unwrap() >= 0.95, "{node}");
        assert!(
            node["peak_rss_bytes"].as_u64().unwrap() < PEAK_MAX,
            "{node}"
        );
    }
    assert!(report["total"]["digest"].is_string(), "{report}");
    println!("{} kills", kills.len());
}
