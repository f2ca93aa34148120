//! `murmurate local`: four daemons that can learn all classes only together.

use murmurate_tests::{local, quiet_turn, turn};
use serde_json::Value;

pub(crate) fn nodes(report: &Value) -> &[Value] {
    report["nodes"].as_array().unwrap()
}

/// Daemons that ended the same round hold the same bits. A run that ends at an accuracy stops the
/// daemons one after the other, so some may be a round or two ahead.
pub(crate) fn same_digest(nodes: &[&Value]) {
    let round = |n: &Value| n["digest_round"].as_u64().unwrap();
    for (a, b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
        assert!(a["digest"].is_string(), "{nodes:#?}");
        assert!(round(a).abs_diff(round(b)) <= 2, "{nodes:#?}");
        assert!(
            round(a) != round(b) || a["digest"] == b["digest"],
            "{nodes:#?}"
        );
    }
}

/// With the default preset every daemon reaches 0.95 on the whole test set.
#[test]
fn four_daemons_reach_the_target() {
    let report = local(&turn(), &["--nodes", "4"]);
    assert_eq!(report["preset"], "diloco");
    assert_eq!(report["reached"], true);
    for node in nodes(&report) {
        assert!(node["test_accuracy"].as_f64().unwrap() >= 0.95, "{node}");
        assert_eq!(node["status"], "finished");
        assert!(node["consensus_distance"].as_f64().unwrap() < 1.0, "{node}");
        let sent = &node["bytes_sent"];
        assert!(sent["wire"].as_u64() > sent["encoded"].as_u64(), "{node}");
        assert!(sent["encoded"].as_u64() > Some(0), "{node}");
        assert!(node["peak_rss_bytes"].as_u64() > Some(0), "{node}");
    }
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

/// Without an exchange every daemon stays below 0.80, because it sees two or three of ten classes.
#[test]
fn alone_no_daemon_reaches_it() {
    // More inner steps than the swarm above needs for the target.
    let report = local(&turn(), &["--preset", "none", "--rounds", "120"]);
    assert_eq!(report["until_accuracy"], Value::Null);
    for node in nodes(&report) {
        assert_eq!(node["rounds"], 120, "{node}");
        assert!(node["test_accuracy"].as_f64().unwrap() < 0.80, "{node}");
        assert_eq!(node["bytes_sent"]["encoded"], 0, "{node}");
    }
    assert!(report["total"]["consensus_distance"].as_f64() > Some(0.0));
}

/// Exchanges without groups run for more rounds than any window that the protocol counts in rounds. The
/// versions of a center then exceed the rounds of its workers.
#[test]
fn centers_and_neighbours_exchange_for_many_rounds() {
    for preset in ["asp", "choco"] {
        let flags = ["--preset", preset, "--shards", "iid", "--rounds", "80"];
        let report = local(&quiet_turn(), &flags);
        for node in nodes(&report) {
            assert_eq!(node["status"], "finished", "{node}");
            assert_eq!((&node["rounds"], &node["voids"]), (&80.into(), &0.into()));
            assert!(node["test_accuracy"].as_f64().unwrap() >= 0.7, "{node}");
            assert!(node["bytes_sent"]["encoded"].as_u64() > Some(0), "{node}");
        }
    }
}

/// A session between neighbours begins with the complete parameters, which have 32 times the bytes of a
/// difference. The bulk plane must accept them also for a model of more than 2 MiB.
#[test]
fn large_parameters_travel_whole_where_their_differences_are_small() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("wide.toml");
    let text = "[task]\nkind = \"image-classifier\"\nhidden = 1024\n";
    std::fs::write(&config, text).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let flags = ["--nodes", "3", "--preset", "choco", "--rounds", "4"];
    let report = local(&turn(), &[&config[..], &flags].concat());
    for node in nodes(&report) {
        assert_eq!(node["status"], "finished", "{node}");
        let received = node["bytes_received"]["wire"].as_u64().unwrap();
        assert!(received > 2 * 3_000_000, "{node}");
    }
}

/// Along a ring every partial sum passes through all members, and one of them dies.
#[test]
fn a_schedule_survives_a_death() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("ring.toml");
    let text = "[strategy]\npreset = \"diloco\"\n[strategy.architecture]\nschedule = \"ring\"\n";
    std::fs::write(&config, text).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let kill = ["--nodes", "4", "--kill", "1@round:3:exchange"];
    let report = local(&turn(), &[&flags[..], &kill].concat());
    let living: Vec<_> = nodes(&report)
        .iter()
        .filter(|node| node["status"] != "killed")
        .collect();
    assert_eq!(living.len(), 3);
    for node in &living {
        assert_eq!(node["status"], "finished", "{node}");
        assert!(node["test_accuracy"].as_f64().unwrap() >= 0.95, "{node}");
    }
    same_digest(&living);
}
