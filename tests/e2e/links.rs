//! `murmurate local --link`: real daemons behind emulated links, and what the links count.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::{local, quiet_turn};
use serde_json::Value;

fn sum(nodes: &[Value], path: &str) -> u64 {
    nodes
        .iter()
        .map(|n| n["link"].pointer(path).unwrap().as_u64().unwrap())
        .sum()
}

#[test]
fn all_traffic_passes_over_the_links_and_is_accounted_for() {
    let report = local(
        &quiet_turn(),
        &[
            "--nodes",
            "3",
            "--rounds",
            "3",
            "--link",
            "200mbit/10ms/0.1%/burst=2",
        ],
    );
    let nodes = nodes(&report);
    for node in nodes {
        assert_eq!(node["status"], "finished", "{node}");
        let link = &node["link"];
        assert_eq!(link["link"], "200mbit/10ms/0.1%/burst=2");
        // The daemon's counters miss what follows their last reading and what the link lost.
        for (flow, counted) in [("up", "bytes_sent"), ("down", "bytes_received")] {
            let carried = link[flow]["offered"]["bytes"].as_u64().unwrap();
            let counted = node[counted]["wire"].as_u64().unwrap();
            assert!(carried >= counted && counted > 0, "{node}");
            assert!(carried - counted <= counted / 20, "{node}");
        }
    }
    assert_eq!(
        sum(nodes, "/up/delivered/bytes"),
        sum(nodes, "/down/offered/bytes")
    );
    assert_eq!(report["leaks"]["strangers"]["packets"], 0);
    assert_eq!(report["leaks"]["unsent"]["packets"], 0);
    same_digest(&nodes.iter().collect::<Vec<_>>());
}

#[test]
fn slices_over_tls_pass_over_the_links() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tls.toml");
    std::fs::write(&config, "[network]\nbulk = \"tls\"\n").unwrap();
    let config = config.to_str().unwrap();
    let rounds = ["--nodes", "3", "--rounds", "6", "--config", config];
    let report = local(
        &quiet_turn(),
        &[&rounds[..], &["--link", "1gbit/1ms/0%"]].concat(),
    );
    let nodes = nodes(&report);
    let ways = nodes
        .iter()
        .flat_map(|n| n["bulk"].as_object().unwrap().values());
    let ways: Vec<_> = ways.collect();
    assert!(
        !ways.is_empty() && ways.iter().all(|way| *way == "tls"),
        "{nodes:#?}"
    );
    for node in nodes {
        // More came over the link than the control messages of QUIC: its slices.
        let carried = node["link"]["down"]["delivered"]["bytes"].as_u64().unwrap();
        let encoded = node["bytes_received"]["encoded"].as_u64().unwrap();
        assert!(encoded > 0 && carried >= encoded, "{node}");
    }
    assert_eq!(report["leaks"]["strangers"]["packets"], 0);
    same_digest(&nodes.iter().collect::<Vec<_>>());
}

/// Runs a swarm of three, with daemons 1 and 2 behind routers of this kind. Returns the report.
fn behind(nat: &str, rounds: &str) -> Value {
    let turn = quiet_turn();
    let rounds = ["--nodes", "3", "--rounds", rounds, "--nat", nat];
    local(&turn, &rounds)
}

/// The path from daemon 1 to daemon 2, and the path from daemon 2 to daemon 1.
fn paths(nodes: &[Value]) -> [&Value; 2] {
    [(1, 2), (2, 1)].map(|(from, to): (usize, usize)| {
        let peer = nodes[to]["peer"].as_str().unwrap();
        &nodes[from]["paths"][peer]
    })
}

/// Bytes that entered daemon 0's link, divided by those that entered daemon 1's link: about 1 if
/// the others are connected directly, about 2 if all of their traffic passes through daemon 0.
fn share_of_the_middle(nodes: &[Value]) -> f64 {
    let bytes = |node: &Value| node["link"]["down"]["delivered"]["bytes"].as_f64().unwrap();
    bytes(&nodes[0]) / bytes(&nodes[1])
}

#[test]
fn two_daemons_behind_port_restricted_routers_exchange_bulk_directly() {
    // Hole punching runs while the first rounds use the relay. On a busy machine that takes
    // seconds.
    let report = behind("port-restricted", "200");
    let nodes = nodes(&report);
    for path in paths(nodes) {
        assert_eq!(path["kind"], "punched", "{nodes:#?}");
    }
    let reachable = |node: &Value| node["reachability"].as_str().unwrap().to_owned();
    let all: Vec<_> = nodes.iter().map(reachable).collect();
    assert_eq!(all, ["public", "private", "private"]);
    assert!(share_of_the_middle(nodes) < 1.5, "{nodes:#?}");
    same_digest(&nodes.iter().collect::<Vec<_>>());
}

#[test]
fn two_daemons_behind_symmetric_routers_exchange_bulk_through_the_relay() {
    let report = behind("symmetric", "30");
    let nodes = nodes(&report);
    for path in paths(nodes) {
        assert_eq!(path["kind"], "relayed", "{nodes:#?}");
        assert_eq!(path["relay"], nodes[0]["peer"], "{nodes:#?}");
    }
    assert!(share_of_the_middle(nodes) > 1.5, "{nodes:#?}");
    same_digest(&nodes.iter().collect::<Vec<_>>());
}

/// Runs a swarm of four in which daemons 2 and 3 cannot reach each other, or one of them not the other. They end with
/// one model, and their link goes through a daemon that both can reach.
fn with_a_missing_link(preset: &str, cut: &str) {
    let turn = quiet_turn();
    let args = ["--nodes", "4", "--rounds", "12", "--preset", preset];
    let report = local(&turn, &[&args[..], &["--cut", cut]].concat());
    let nodes = nodes(&report);
    for node in nodes {
        assert_eq!(node["status"], "finished", "{node}");
        assert_eq!(node["rounds"], 12, "{node}");
    }
    let middle = [&nodes[0]["peer"], &nodes[1]["peer"]];
    for (from, to) in [(2, 3), (3, 2)] {
        let peer = nodes[to]["peer"].as_str().unwrap();
        let path = &nodes[from]["paths"][peer];
        assert_eq!(path["kind"], "relayed", "{nodes:#?}");
        assert!(middle.contains(&&path["relay"]), "{nodes:#?}");
    }
    for (from, to) in [(0, 1), (0, 2), (1, 3)] {
        let peer = nodes[to]["peer"].as_str().unwrap();
        assert_eq!(nodes[from]["paths"][peer]["kind"], "direct", "{nodes:#?}");
    }
    same_digest(&nodes.iter().collect::<Vec<_>>());
}

#[test]
fn a_missing_link_goes_through_another_daemon() {
    with_a_missing_link("diloco", "2-3");
}

#[test]
fn a_missing_link_goes_through_another_daemon_where_members_may_lie() {
    with_a_missing_link("guarded", "2-3");
}

#[test]
fn a_link_that_loses_one_direction_goes_through_another_daemon_where_members_may_lie() {
    with_a_missing_link("guarded", "2>3");
}
