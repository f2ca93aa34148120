//! A daemon that watches its run: metrics in files, the best parameters, the moving average, and leaving by
//! itself.

use crate::common::assert_has;
use crate::common::{failure, success};
use serde_json::Value;
use std::path::Path;

/// A folder with a text and the configuration of a small language model.
fn prepared(inner: &str, daemon: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = "A flock of starlings turns at dusk. No bird leads it.\n".repeat(60);
    std::fs::write(dir.path().join("text.txt"), text).unwrap();
    let config = format!(
        "[run]\nrounds = 6\n[task]\nkind = \"causal-lm\"\ndata = \"text.txt\"\ncontext = 16\n\
         batch = 4\nlayers = 1\nwidth = 32\nheads = 4\nkv_heads = 2\n\
         [strategy]\npreset = \"local-sgd\"\n[strategy.synchronization]\ninner_steps = 3\n\
         [strategy.inner]\noptimizer = \"sgd\"\n{inner}\n\
         [network]\nmdns = false\n[daemon]\n{daemon}\n"
    );
    std::fs::write(dir.path().join("node.toml"), config).unwrap();
    dir
}

const RUN: [&str; 5] = ["run", "--config", "node.toml", "--log", "plain"];

fn run(dir: &Path, more: &[&str]) -> String {
    success(dir, &[&RUN, more].concat())
}

/// The lines of the only daemon's metrics.
fn lines(dir: &Path) -> Vec<Value> {
    let mut homes = std::fs::read_dir(dir).unwrap();
    let home = homes.next().unwrap().unwrap().path();
    assert!(homes.next().is_none());
    let text = std::fs::read_to_string(home.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_leaves_its_metrics_its_best_and_its_average() {
    let dir = prepared(
        "lr = 0.5\nschedule = \"linear\"\nwarmup_rounds = 2\nfinal_rate = 0.0",
        "keep_best = true\nmetrics_dir = \"metrics\"\nema = 0.9",
    );
    let dir = dir.path();
    let said = run(dir, &["--dir", "a"]);
    assert!(said.contains("bits per byte"), "{said}");
    let lines = lines(&dir.join("metrics"));
    let of = |key: &str| -> Vec<f64> { lines.iter().map(|l| l[key].as_f64().unwrap()).collect() };
    assert_eq!(of("round"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(of("step"), [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
    assert_eq!(of("rate_factor"), [0.25, 0.75, 0.875, 0.625, 0.375, 0.125]);
    assert_eq!(of("learning_rate")[1], 0.375);
    let losses = of("test_loss");
    assert!(losses[5] < losses[0], "{losses:?}");
    for (loss, perplexity) in losses.iter().zip(of("perplexity")) {
        assert!((loss.exp() - perplexity).abs() < 1e-9);
    }
    let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let measured = |store: &str| -> Value {
        success(dir, &["export", "a", "--store", store, "--to", store]);
        let eval = ["eval", "--model", store, "--config", "node.toml", "--json"];
        serde_json::from_str(&success(dir, &eval)).unwrap()
    };
    let best = measured("best");
    let loss = best["test_loss"].as_f64().unwrap();
    // The same arithmetic on the same bits.
    assert!((loss - lowest).abs() < 1e-6, "{loss} {lowest}");
    assert_eq!(
        (&best["unit"], &best["held_out"]),
        (&"token".into(), &0.05.into())
    );
    let average = measured("ema")["test_loss"].as_f64().unwrap();
    assert!(average > lowest && average < losses[0] + 1.0, "{average}");
    assert!(dir.join("a/best.safetensors").exists());
}

#[test]
fn a_daemon_leaves_when_it_has_what_was_asked_for() {
    let dir = prepared("lr = 0.5", "");
    let dir = dir.path();
    let said = run(dir, &["--dir", "a", "--until-loss", "100"]);
    assert_has(&said, "round 1 has reached the goal: leaving");
    let args = [
        &RUN[..],
        &["--dir", "b", "--rounds", "1", "--until-loss", "0.01"],
    ]
    .concat();
    let line = failure(dir, &args);
    assert!(line.starts_with("--until-loss: ended at "), "{line}");
    assert!(line.ends_with("after 1 rounds, above 0.01; give more --rounds or a higher target"));
    let line = failure(dir, &["export", "a", "--store", "ema", "--to", "x"]);
    assert!(line.contains("keeps no ema"), "{line}");
    let line = failure(dir, &["export", "a", "--store", "best", "--to", "x"]);
    assert_has(&line, "daemon.keep_best = true writes one");
    let line = failure(dir, &[&RUN[..], &["--until-accuracy", "95"]].concat());
    assert!(line.starts_with("--until-accuracy: "), "{line}");
}

#[test]
fn a_daemon_that_learns_nothing_more_leaves_with_its_best() {
    // A rate at which no value changes: every loss is the first one.
    let dir = prepared("lr = 1e-30", "patience_rounds = 2");
    let said = run(dir.path(), &["--dir", "a"]);
    assert!(said.contains("no better loss for 2 rounds"), "{said}");
    assert!(said.contains("of round 1: leaving"), "{said}");
    assert!(dir.path().join("a/best.safetensors").exists());
}
