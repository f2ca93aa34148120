//! Peers of several trainers each.

use crate::attach::{STEPS, config, python, root, script};
use crate::swarm::{nodes, same_digest};
use murmurate_tests::assert_has;
use murmurate_tests::{failure, local, murmurate, quiet_turn, turn};
use serde_json::Value;
use std::path::Path;

fn all(report: &Value) -> Vec<&Value> {
    nodes(report).iter().collect()
}

#[test]
fn two_islands_of_two_ranks_end_with_one_digest() {
    let turn = quiet_turn();
    let flags = ["--rounds", "30", "--shards", "iid"];
    let island = local(&turn, &[&["--islands", "2x2"], &flags[..]].concat());
    let plain = local(&turn, &[&["--nodes", "2"], &flags[..]].concat());
    for (report, ranks) in [(&island, 2_u64), (&plain, 1)] {
        assert_eq!(nodes(report).len(), 2, "an island is one peer");
        for node in nodes(report) {
            assert_eq!(
                (&node["status"], &node["ranks"]),
                (&"finished".into(), &ranks.into())
            );
            assert_eq!(node["digest_round"], 29, "{node}");
        }
        same_digest(&all(report));
    }
    let of = |report: &Value, key: &str| nodes(report)[0][key].as_u64().unwrap();
    assert_eq!(of(&island, "inner_steps"), of(&plain, "inner_steps"));
    assert_eq!(of(&island, "samples"), 2 * of(&plain, "samples"));
    // What travels is what one trainer sends; links and their upkeep cost about the same.
    let sent = |report: &Value| nodes(report)[0]["bytes_sent"]["payload"].as_u64().unwrap();
    assert_eq!(sent(&island), sent(&plain));
    let accuracy = nodes(&island)[0]["test_accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.8, "{accuracy}");
}

#[test]
fn gradients_of_islands_are_exchanged_as_those_of_peers() {
    let flags = ["--islands", "2x2", "--preset", "bsp", "--rounds", "30"];
    let report = local(&turn(), &flags);
    for node in nodes(&report) {
        assert_eq!(
            (&node["status"], &node["inner_steps"]),
            (&"finished".into(), &30.into())
        );
        assert_eq!(node["digest"], nodes(&report)[0]["digest"], "{node}");
    }
}

#[test]
fn islands_that_cannot_be_are_named_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    for (islands, reason) in [
        ("2y4", "`2y4` is not PEERSxRANKS; write 2x4"),
        ("0x4", "`0x4` has 0 peers; give 1 to 256"),
        ("2x0", "`2x0` has 0 ranks in each peer; give 1 to 64"),
        ("2x65", "`2x65` has 65 ranks in each peer; give 1 to 64"),
    ] {
        let outcome = murmurate(dir.path(), &["local", "--islands", islands]);
        assert_ne!(outcome.code, Some(0));
        let errors = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("error: "));
        let errors: Vec<_> = errors.collect();
        assert!(
            errors.len() == 1 && errors[0].contains(reason),
            "{}",
            outcome.stderr
        );
    }
    let both = murmurate(dir.path(), &["local", "--islands", "2x2", "--nodes", "2"]);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
}

#[test]
fn too_little_data_for_the_ranks_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text"), "to be or not to be. ".repeat(40)).unwrap();
    let text = "[task]\nkind = \"language-model\"\ndata = \"text\"\nlayers = 1\nwidth = 8\nheads = 1\n\
                context = 16\n[shards]\nkind = \"own\"\n[island]\nranks = 64\n[network]\nmdns = false\n";
    std::fs::write(dir.path().join("few.toml"), text).unwrap();
    let line = failure(
        dir.path(),
        &["run", "--config", "few.toml", "--rounds", "1", "--open"],
    );
    assert_has(&line, "`island.ranks` = 64");
    assert_has(&line, "set fewer ranks");
}

/// Two islands of two attached ranks, of which part 1 of the data is trained by the second rank of the first.
fn attached(fault: &str, rounds: u64) -> Option<(Value, tempfile::TempDir)> {
    let python = python()?;
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let (config, rounds_text) = (config(dir.path()), rounds.to_string());
    let flags = [
        "--islands",
        "2x2",
        "--config",
        &config,
        "--rounds",
        &rounds_text,
    ];
    let command = ["--", &python, &script(), home, "1", fault];
    let report = local(&turn, &[&flags[..], &command].concat());
    for node in nodes(&report) {
        assert_eq!(
            (&node["status"], &node["ranks"]),
            (&"finished".into(), &2.into())
        );
        assert_eq!(node["digest_round"], rounds - 1, "{node}");
        assert!(node["test_loss"].as_f64().unwrap() < 0.5, "{node}");
    }
    same_digest(&all(&report));
    Some((report, dir))
}

/// Inner steps that a rank's state has counted; none if it did not end by itself.
fn steps(dir: &Path, part: u32) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join(format!("{part}.steps"))).ok()?;
    text.parse().ok()
}

#[test]
fn an_attached_rank_that_is_killed_comes_back_with_its_island() {
    let Some((report, dir)) = attached("step", 12) else {
        return;
    };
    assert!(dir.path().join("1.harmed").exists());
    let of_all: Vec<_> = (0..4).map(|part| steps(dir.path(), part)).collect();
    println!("{of_all:?} inner steps");
    for part in of_all {
        // It was harmed after 25 steps or more, so one that began afresh would have counted fewer.
        assert!(part.unwrap() >= 10 * u64::from(STEPS));
    }
    assert!(
        nodes(&report)
            .iter()
            .all(|node| node["catch_ups"].as_u64() <= Some(1))
    );
}

#[test]
fn an_attached_rank_with_another_model_is_left_out_and_the_rounds_go_on() {
    let Some((report, dir)) = attached("layout", 8) else {
        return;
    };
    let ended = (0..4).map(|part| steps(dir.path(), part).is_some());
    assert_eq!(ended.collect::<Vec<_>>(), [true, false, true, true]);
    let samples = |node: usize| nodes(&report)[node]["samples"].as_u64().unwrap();
    assert_eq!(2 * samples(0), samples(1), "{report}");
}

#[test]
fn the_numpy_example_trains_in_islands() {
    let Some(python) = python() else {
        return;
    };
    let example = root().join("python/examples/numpy_logistic.py");
    let flags = ["--islands", "2x2", "--rounds", "8", "--", &python];
    let report = local(
        &turn(),
        &[&flags[..], &[example.to_str().unwrap()]].concat(),
    );
    for node in nodes(&report) {
        assert!(node["test_accuracy"].as_f64().unwrap() > 0.8, "{node}");
        assert_eq!(node["digest"], nodes(&report)[0]["digest"], "{node}");
    }
}
