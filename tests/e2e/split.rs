//! Swarms that are split: both sides go on, and are one again afterwards.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{local, murmurate, quiet_turn, turn};
use serde_json::Value;

/// How far the loss of a swarm that was split may be above that of the same swarm without a split: the
/// bound of the requirement.
const LOSS_MORE: f64 = 1.05;

fn loss(report: &Value) -> f64 {
    report["total"]["test_loss"].as_f64().unwrap()
}

/// Two daemons on either side train alone for a while. Afterwards all four hold the mean of both, with
/// the weights that each side reports.
#[test]
fn a_swarm_that_was_split_is_merged_and_learns_as_well() {
    let turn = quiet_turn();
    let rounds = ["--rounds", "60", "--shards", "iid"];
    let whole = local(&turn, &rounds);
    let split = ["--partition", "0,1|2,3@round:8", "--heal", "@round:20"];
    let report = local(&turn, &[&rounds[..], &split].concat());
    let merges = report["merges"].as_array().unwrap();
    assert_eq!(merges.len(), 1, "{merges:?}");
    let merged_in = merges[0]["round"].as_u64().unwrap();
    assert!((20..60).contains(&merged_in), "{merges:?}");
    for side in merges[0]["sides"].as_array().unwrap() {
        assert_eq!(side[0], 2, "{merges:?}");
        assert!(side[1].as_f64().unwrap() > 0.0, "{merges:?}");
    }
    let all: Vec<&Value> = nodes(&report).iter().collect();
    same_digest(&all);
    assert!(report["total"]["digest"].is_string(), "{}", report["total"]);
    let (with, without) = (loss(&report), loss(&whole));
    println!("loss {with:.4} with a split, {without:.4} without; merged in round {merged_in}");
    assert!(with <= LOSS_MORE * without, "{with} against {without}");
}

/// Staggered fragments are not merged. The daemons of one side take over the others' state, and keep
/// their own work in a checkpoint of its own, which can be exported.
#[test]
fn a_side_that_cannot_be_merged_saves_its_branch() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let config =
        "[strategy]\npreset = \"diloco\"\n[strategy.overlap]\nfragments = 2\nstagger = 2\n";
    std::fs::write(dir.path().join("all.toml"), config).unwrap();
    let run = ["local", "--json", "--baseline", "0", "--dir", "swarm"];
    let how = ["--config", "all.toml", "--rounds", "60", "--shards", "iid"];
    let split = ["--partition", "0,1|2,3@round:8", "--heal", "@round:20"];
    let outcome = murmurate(dir.path(), &[&run[..], &how, &split].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["merges"], Value::Array(Vec::new()));
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
    assert!(outcome.stderr.contains("branch-1"), "{}", outcome.stderr);
    let branch = |node| dir.path().join(format!("swarm/node-{node}/branch-1"));
    // All of one side, at least. Those that take a state over may decide its next round before its own
    // side does; that side then gives up a round, and saves it too.
    let sides = [[0, 1], [2, 3]].map(|side| side.map(branch));
    let whole = |side: &&[std::path::PathBuf; 2]| side.iter().all(|branch| branch.exists());
    let saved = sides.iter().find(whole);
    let saved = saved.expect("no side has saved its branch whole");
    let model = dir.path().join("branch.safetensors");
    let (branch, model) = (saved[0].to_str().unwrap(), model.to_str().unwrap());
    let export = murmurate(dir.path(), &["export", branch, "--to", model]);
    assert_eq!(export.code, Some(0), "{}", export.stderr);
    drop(turn);
}
