//! Daemons that lie: the honest ones reach the goal and agree. `docs/threat-model.md` says which lies
//! each family of exchanges survives.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{Turn, local, turn};
use serde_json::Value;

/// Runs four daemons of which the last tells these lies, and returns the report. The honest ones have
/// reached the target, because the command succeeds only then; here they have the same bits too.
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
    let honest = &nodes(&report)[..3];
    same_digest(&honest.iter().collect::<Vec<_>>());
    assert_eq!(report["total"]["digest"], honest[0]["digest"]);
    for node in honest {
        assert!(node.get("lies").is_none(), "{node}");
        println!("{lies:?}: {} broken rules noticed", node["misbehaved"]);
    }
    report
}

/// Bad signatures, and slices in another member's name.
#[test]
fn noise_and_stolen_names_change_nothing() {
    let report = survived(&turn(), &["slot", "flood"], &[]);
    for node in &nodes(&report)[..3] {
        assert!(node["misbehaved"].as_u64().unwrap() > 0, "{node}");
        assert_eq!(node["voids"], 0, "{node}");
    }
}
