//! Every preset in real daemons for a few rounds, and a few presets until they reach their target.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{Turn, local, quiet_turn, success, turn};
use serde_json::Value;

/// The presets that can be chosen, as the program lists them.
fn presets() -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let listed = success(dir.path(), &["strategies", "--json"]);
    let methods: Value = serde_json::from_str(&listed).unwrap();
    let all = methods.as_array().unwrap().iter();
    let chosen = all.filter(|method| method["key"] == "preset" && method["refused"].is_null());
    chosen
        .map(|method| method["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Every preset runs for a few rounds in real daemons, in two swarms at a time.
#[test]
fn every_preset_runs_in_daemons() {
    let turn = quiet_turn();
    let all = presets();
    assert!(all.len() >= 42, "{all:?}");
    std::thread::scope(|scope| {
        for half in all.chunks(all.len().div_ceil(2)) {
            scope.spawn(|| runs_in_daemons(&turn, half));
        }
    });
}

fn runs_in_daemons(turn: &Turn, presets: &[String]) {
    for preset in presets {
        let flags = ["--preset", preset, "--nodes", "3", "--rounds", "5"];
        let report = local(turn, &flags);
        for node in nodes(&report) {
            assert_eq!(node["status"], "finished", "{preset}: {node}");
            assert_eq!(node["rounds"], 5, "{preset}: {node}");
            assert!(node["test_accuracy"].is_number(), "{preset}: {node}");
        }
        // If peers do not wait for each other, a late daemon may find all rounds complete and fetch
        // the result.
        let sent = report["total"]["bytes_sent"]["encoded"].as_u64().unwrap();
        assert_eq!(sent == 0, preset == "none", "{preset}: {report}");
    }
}

/// A vote on signs only. When zeros and ties counted as plus, the accuracy stayed at 0.74.
#[test]
fn a_majority_of_signs_reaches_its_target() {
    let flags = ["--preset", "signsgd-majority", "--shards", "iid"];
    let report = local(
        &turn(),
        &[&flags[..], &["--until-accuracy", "0.93"]].concat(),
    );
    assert_eq!(report["reached"], true, "{report}");
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

/// Four daemons of which each knows a few classes.
fn reaches_its_target(preset: &str) {
    let flags = ["--preset", preset, "--until-accuracy", "0.95"];
    let report = local(&turn(), &flags);
    assert_eq!(report["reached"], true, "{report}");
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

// One preset for each kind of overlap.

#[test]
fn wfbp_reaches_its_target() {
    reaches_its_target("wfbp");
}

#[test]
fn bytescheduler_reaches_its_target() {
    reaches_its_target("bytescheduler-ps");
}

#[test]
fn dear_reaches_its_target() {
    reaches_its_target("dear");
}

#[test]
fn streaming_diloco_reaches_its_target() {
    reaches_its_target("streaming-diloco");
}

#[test]
fn eager_diloco_reaches_its_target() {
    reaches_its_target("eager-diloco");
}
