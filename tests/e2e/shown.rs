//! `/status` and `/metrics` of a daemon, on loopback by default. `/status` also accounts for memory:
//! resident memory less the documented multiples of 4 bytes x parameters is at most 60 MB.

use murmurate_tests::{Daemon, Settings, get, quiet_turn, status, wait_until};
use std::net::SocketAddr;
use std::time::Duration;

/// Most resident bytes beyond the documented multiples.
const OVERHEAD_MAX: i64 = 60_000_000;

#[test]
fn status_and_metrics_answer_and_memory_is_accounted_for() {
    let turn = quiet_turn();
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

    what_the_planner_expects_is_beside_what_was_measured(&http);
    let metrics = get(&http, "/metrics");
    let info = "# TYPE murmurate_daemon_info gauge\n";
    assert!(metrics.contains(info), "{metrics}");
    for name in [
        "murmurate_round",
        "murmurate_inner_steps_total",
        "murmurate_predicted_round_seconds",
        "murmurate_measured_round_seconds",
    ] {
        assert!(
            metrics.lines().any(|l| l.starts_with(name)),
            "{name}: {metrics}"
        );
    }
    first.interrupt().polite();
    second.interrupt().polite();
}

/// `/status` shows the planner's prediction beside the daemon's measurements.
///
/// Bytes follow from the plan: an all-reduce of f32 without faults moves the predicted bytes,
/// except for slice headers and a push in flight at either end of the 64 rounds. Times depend on
/// the machine, so they are not compared.
fn what_the_planner_expects_is_beside_what_was_measured(http: &str) {
    let shown = wait_until(
        "64 rounds and a measured link",
        Duration::from_secs(60),
        || {
            Some(status(http)).filter(|s| {
                s["rounds_ended"].as_u64() >= Some(64)
                    && s["predicted"].is_object()
                    && s["measured"].is_object()
            })
        },
    );
    let (predicted, measured) = (&shown["predicted"], &shown["measured"]);
    println!("predicted: {predicted}\nmeasured: {measured}");
    for key in ["bytes_sent", "bytes_received"] {
        let [expected, seen] = [predicted, measured].map(|of| of[key].as_f64().unwrap());
        assert!((seen / expected - 1.0).abs() <= 0.05, "{key}: {shown}");
    }
    for side in [predicted, measured] {
        for key in ["round_s", "train_s", "bytes_per_hour", "memory_bytes"] {
            let value = side[key].as_f64().unwrap();
            assert!(value.is_finite() && value > 0.0, "{key}: {shown}");
        }
        let utilization = side["utilization"].as_f64().unwrap();
        assert!(utilization > 0.0 && utilization <= 1.0, "{shown}");
    }
    assert_eq!(predicted["from"]["peers"], 2, "{shown}");
}
