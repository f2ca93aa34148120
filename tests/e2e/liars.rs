//! Daemons that lie: the honest ones reach the goal and agree. `docs/threat-model.md` says which lies
//! each family of exchanges survives.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{Turn, local, turn};
use serde_json::Value;

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

/// The honest daemons hold the same bits.
fn agree(report: &Value) {
    let honest = &nodes(report)[..3];
    same_digest(&honest.iter().collect::<Vec<_>>());
    assert_eq!(report["total"]["digest"], honest[0]["digest"]);
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

/// Neighbours that agree on nothing are clipped.
#[test]
fn guarded_gossip_survives_poisoned_parameters() {
    survived(&turn(), &["poison"], &["--preset", "guarded-gossip"]);
}
