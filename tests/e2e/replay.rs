//! Recordings of daemons' inputs: a replay repeats every output, also those of a killed daemon.

use murmurate_tests::{failure, local, success, turn};
use serde_json::Value;
use std::path::Path;

/// Four daemons record their inputs and one of them is killed. `sim --replay` repeats the outputs of
/// each recording bit for bit.
#[test]
fn four_records_replay_to_the_bit_though_one_daemon_is_killed() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let records = dir.path().join("records");
    let records_flag = records.to_str().unwrap();
    let report = local(
        &turn,
        &[
            "--rounds",
            "12",
            "--kill",
            "2@round:5:exchange",
            "--record",
            records_flag,
        ],
    );
    assert_eq!(report["faults"][0]["node"], 2);
    assert!(
        report["total"]["first_round_s"].as_f64() > Some(0.0),
        "{report}"
    );
    for (index, node) in report["nodes"].as_array().unwrap().iter().enumerate() {
        let file = format!("records/{index}.rec");
        let text = success(dir.path(), &["sim", "--replay", &file, "--json"]);
        let replayed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(replayed["equal"], true, "{replayed}");
        let killed = index == 2;
        assert_eq!(replayed["closed"], if killed { "torn" } else { "end" });
        let round = replayed["round"].as_u64().unwrap();
        assert!(round >= if killed { 4 } else { 12 }, "{replayed}");
        assert!(replayed["outputs"].as_u64() > Some(100), "{replayed}");
        if !killed {
            assert_eq!(node["status"], "finished", "{node}");
        }
    }
    let gossip = dir.path().join("gossip");
    let flag = gossip.to_str().unwrap();
    local(
        &turn,
        &[
            "--nodes", "3", "--preset", "d-psgd", "--rounds", "6", "--record", flag,
        ],
    );
    for index in 0..3 {
        let file = format!("gossip/{index}.rec");
        let text = success(dir.path(), &["sim", "--replay", &file, "--json"]);
        let replayed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(replayed["equal"], true, "{replayed}");
    }
    readable(dir.path(), "records/0.rec");
    // A flipped bit is found, and a recording is never overwritten.
    let path = records.join("0.rec");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(dir.path().join("damaged.rec"), &bytes).unwrap();
    let line = failure(dir.path(), &["sim", "--replay", "damaged.rec"]);
    assert!(line.contains("damaged.rec: damaged at byte"), "{line}");
    let line = failure(
        dir.path(),
        &["run", "--record", "damaged.rec", "--dir", "home"],
    );
    assert!(line.contains("a record is never overwritten"), "{line}");
}

/// `--trace` writes one line for each input and output.
fn readable(dir: &Path, record: &str) {
    let flags = [
        "sim",
        "--replay",
        record,
        "--trace",
        "trace.jsonl",
        "--json",
    ];
    let replayed: Value = serde_json::from_str(&success(dir, &flags)).unwrap();
    let lines = std::fs::read_to_string(dir.join("trace.jsonl")).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (way, count) in [("in", "inputs"), ("out", "outputs")] {
        let there = lines.iter().filter(|line| line[way].is_string()).count();
        assert_eq!(Some(there as u64), replayed[count].as_u64());
    }
}
