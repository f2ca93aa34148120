//! `murmurate local`: four daemons that only together can learn.

use murmurate_tests::{local, turn};
use serde_json::Value;

pub(crate) fn nodes(report: &Value) -> &[Value] {
    report["nodes"].as_array().unwrap()
}

/// Daemons that ended the same round hold the same bits. A run that ends at an accuracy stops them
/// one after the other, so that one may be a round or two further than another.
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

/// "with the default preset [...] every daemon reaches 0.95 on the whole test set"
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

/// "with `--preset none` every daemon stays under 0.80": it knows two or three of ten classes.
#[test]
fn alone_nobody_does() {
    // More inner steps than the swarm above needs to reach the target.
    let report = local(&turn(), &["--preset", "none", "--rounds", "120"]);
    assert_eq!(report["until_accuracy"], Value::Null);
    for node in nodes(&report) {
        assert_eq!(node["rounds"], 120, "{node}");
        assert!(node["test_accuracy"].as_f64().unwrap() < 0.80, "{node}");
        assert_eq!(node["bytes_sent"]["encoded"], 0, "{node}");
    }
    assert!(report["total"]["consensus_distance"].as_f64() > Some(0.0));
}
