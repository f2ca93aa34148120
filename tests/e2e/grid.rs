//! Daemons in rows and columns.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{local, quiet_turn};
use serde_json::Value;

/// Runs nine daemons in rows of three.
fn nine(flags: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("grid.toml");
    let text = "[strategy]\npreset = \"diloco\"\n[strategy.agreement]\nrow = 3\n";
    std::fs::write(&config, text).unwrap();
    let all = ["--nodes", "9", "--config", config.to_str().unwrap()];
    local(&quiet_turn(), &[&all[..], flags].concat())
}

/// All nine found the swarm, and all end every round with the same bits.
#[test]
fn nine_daemons_in_rows_of_three_hold_the_same_bits() {
    let report = nine(&["--rounds", "12"]);
    for node in nodes(&report) {
        assert_eq!(node["status"], "finished", "{node}");
        assert_eq!((&node["rounds"], &node["voids"]), (&12.into(), &0.into()));
        assert_eq!(node["catch_ups"], 0, "{node}");
    }
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

/// One is killed and another comes late: it gets a place, and all others end alike.
#[test]
fn a_grid_goes_on_without_a_daemon_and_lets_others_in() {
    let flags = ["--rounds", "30"];
    let faults = ["--kill", "4@round:8", "--late", "8@round:4"];
    let report = nine(&[&flags[..], &faults].concat());
    let others = nodes(&report).iter().filter(|node| node["node"] != 4);
    let others: Vec<&Value> = others.collect();
    for node in &others {
        assert_eq!(node["status"], "finished", "{node}");
    }
    same_digest(&others);
}
