//! Daemons that lie: the honest ones reach the goal and agree. `docs/threat-model.md` says which lies
//! each family of exchanges survives.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{Turn, local, success, turn};
use serde_json::Value;
use std::path::Path;

/// Runs four daemons of which the last tells these lies, and returns the report. The honest ones have
/// reached the target, because the command succeeds only then.
fn survived(turn: &Turn, lies: &[&str], more: &[&str]) -> Value {
    let flags: Vec<String> = lies.iter().map(|lie| format!("3@{lie}")).collect();
    let flags = flags.iter().flat_map(|flag| ["--liar", flag.as_str()]);
    let report = local(turn, &[&flags.collect::<Vec<_>>(), more].concat());
    assert_eq!(report["reached"], true, "{}", report["total"]);
    let told: Vec<&str> = nodes(&report)[3]["lies"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(told, lies);
    for node in &nodes(&report)[..3] {
        assert!(node.get("lies").is_none(), "{node}");
        println!("{lies:?}: {} broken rules noticed", node["misbehaved"]);
    }
    report
}

/// The honest daemons hold the same bits. One may have left a round or two before the others.
fn agree(report: &Value) {
    let honest = &nodes(report)[..3];
    same_digest(&honest.iter().collect::<Vec<_>>());
    let ended = |node: &Value| node["digest_round"] == honest[0]["digest_round"];
    if honest.iter().all(ended) {
        assert_eq!(report["total"]["digest"], honest[0]["digest"]);
    }
}

/// Bad signatures, and slices in another member's name.
#[test]
fn noise_and_stolen_names_change_nothing() {
    let report = survived(&turn(), &["slot", "flood"], &[]);
    agree(&report);
    for node in &nodes(&report)[..3] {
        assert!(node["misbehaved"].as_u64().unwrap() > 0, "{node}");
    }
}

/// Groups in which only the liar has weight are refused, and their proposer is cut off.
#[test]
fn forged_proposals_are_not_followed() {
    let report = survived(&turn(), &["propose"], &[]);
    agree(&report);
    for node in &nodes(&report)[..3] {
        assert!(node["misbehaved"].as_u64().unwrap() > 0, "{node}");
    }
}

/// A robust mean, and a weight that counts as much as two others at most.
#[test]
fn a_guarded_group_survives_a_poisoned_contribution_with_an_absurd_weight() {
    let flags = ["--preset", "guarded"];
    agree(&survived(&turn(), &["poison", "weight"], &flags));
}

/// Forged decisions have no proof, and a false word that others are behind or ahead changes no state.
#[test]
fn a_guarded_group_survives_forged_decisions_and_false_rounds() {
    let flags = ["--preset", "guarded"];
    agree(&survived(&turn(), &["decided", "behind"], &flags));
}

/// The liar sends any well-formed message to anybody.
#[test]
fn a_guarded_group_survives_random_messages() {
    agree(&survived(&turn(), &["random"], &["--preset", "guarded"]));
}

/// Ballots that one member asks for, names that it takes and rounds in which it pushes nothing stop no one.
#[test]
fn a_guarded_group_goes_on_beside_a_member_that_wants_to_stop_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = guarded(dir.path(), "");
    let flags = ["--config", &config];
    agree(&survived(&turn(), &["ballot", "slot", "rare"], &flags));
}

/// A member that gives states and slices at 9 kB/s: who starts late asks the others for what it owes. It breaks no rule.
#[test]
fn a_daemon_that_starts_late_catches_up_beside_a_donor_that_is_slow() {
    let turn = turn();
    for preset in ["diloco", "guarded"] {
        let flags = ["--preset", preset, "--late", "2@round:4"];
        let report = survived(&turn, &["slow-donor"], &flags);
        agree(&report);
        assert!(nodes(&report)[2]["catch_ups"].as_u64() > Some(0));
    }
}

/// Writes a configuration of the preset guarded whose first deadline costs less than by default: these tests wait for
/// many of them.
fn guarded(dir: &Path, more: &str) -> String {
    let config = dir.join("guarded.toml");
    let text = "[strategy]\npreset = \"guarded\"\n[strategy.deadlines]\ninitial_ms = 2000\n";
    std::fs::write(&config, format!("{text}{more}")).unwrap();
    config.to_str().unwrap().to_owned()
}

/// Runs the preset guarded with a liar, for some rounds.
fn signed(_turn: &Turn, dir: &Path, lie: &str, exchange: &str) -> Value {
    let exchange = format!("[strategy.architecture]\nexchange = \"{exchange}\"\n");
    let config = guarded(dir, &exchange);
    let lie = format!("3@{lie}");
    let flags = ["--config", &config, "--liar", &lie, "--shards", "iid"];
    let always = [
        "local",
        "--json",
        "--baseline",
        "0",
        "--dir",
        "run",
        "--rounds",
        "20",
    ];
    serde_json::from_str(&success(dir, &[always.as_slice(), &flags].concat())).unwrap()
}

/// The first lie proves itself: every honest daemon bans the liar, and they go on without it.
#[test]
fn a_daemon_that_votes_twice_is_banned_by_all_and_the_others_go_on() {
    let turn = turn();
    for exchange in ["all-reduce", "gathered"] {
        let dir = tempfile::tempdir().unwrap();
        let report = signed(&turn, dir.path(), "equivocate", exchange);
        agree(&report);
        for node in 0..3 {
            let dir = dir.path().join(format!("run/node-{node}"));
            let table = success(&dir, &["members", dir.to_str().unwrap()]);
            let banned = table.lines().filter(|line| line.contains("banned: it"));
            assert_eq!(banned.count(), 1, "{table}");
            let json = success(&dir, &["members", dir.to_str().unwrap(), "--json"]);
            let json: Value = serde_json::from_str(&json).unwrap();
            let members = json["members"].as_array().unwrap();
            let banned = members.iter().filter(|m| m["banned"].is_string());
            assert_eq!(banned.count(), 1, "{json}");
        }
    }
}

/// Neighbours that agree on nothing are clipped.
#[test]
fn guarded_gossip_survives_poisoned_parameters() {
    survived(&turn(), &["poison"], &["--preset", "guarded-gossip"]);
}
