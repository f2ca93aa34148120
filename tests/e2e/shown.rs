//! "`http://127.0.0.1:PORT/metrics` (Prometheus text [...]) and `/status` (JSON, with the
//! parameters' digest of the last round) on each daemon; loopback only by default", and memory:
//! "daemon RSS minus the documented multiples of 4 bytes x parameters <= 60 MB, shown by `/status`"

use murmurate_tests::{Daemon, Settings, get, status, turn, wait_until};
use std::net::SocketAddr;
use std::time::Duration;

/// Resident bytes beyond the documented multiples.
const OVERHEAD_MAX: i64 = 60_000_000;

#[test]
fn status_and_metrics_answer_and_memory_is_accounted_for() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        start_with: 2,
        evaluate_every: 1,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &dir.path().join("a"), &[]);
    let (peer, address, http) = first.listening();
    let second = Daemon::start(
        &turn,
        &settings.shard(1),
        &dir.path().join("b"),
        &[&address],
    );
    first.reaches(10);

    let bound: SocketAddr = http.parse().unwrap();
    assert!(bound.ip().is_loopback(), "{bound}");
    let noted = std::fs::read_to_string(dir.path().join("a/http.addr")).unwrap();
    assert_eq!(noted.trim(), http);

    let shown = wait_until("an evaluation", Duration::from_secs(30), || {
        Some(status(&http)).filter(|s| s["evaluation"].is_object())
    });
    assert_eq!(shown["peer"], peer);
    assert!(
        shown["digest"].is_string() && shown["digest_round"].is_u64(),
        "{shown}"
    );
    assert_eq!(
        shown["group"]["members"].as_array().unwrap().len(),
        2,
        "{shown}"
    );
    let peers = shown["peers"].as_object().unwrap();
    assert!(!peers.contains_key(&peer) && peers.len() == 1, "{shown}");
    let memory = &shown["memory"];
    println!("memory: {memory}");
    assert_eq!(memory["parameters"], 784 * 256 + 256 + 256 * 10 + 10);
    assert!(
        memory["multiples"]["anchor"].as_f64() == Some(1.0),
        "{memory}"
    );
    assert!(
        memory["overhead_bytes"].as_i64().unwrap() <= OVERHEAD_MAX,
        "{memory}"
    );

    let metrics = get(&http, "/metrics");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    for name in ["murmurate_round", "murmurate_inner_steps_total"] {
        assert!(
            metrics.lines().any(|l| l.starts_with(name)),
            "{name}: {metrics}"
        );
    }
    first.interrupt().polite();
    second.interrupt().polite();
}
