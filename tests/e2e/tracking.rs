//! `python -m murmurate.track` follows a daemon over HTTP, and MLflow holds its rounds afterwards. Needs the
//! Python of `attach.rs` with MLflow.

use crate::attach::{python, root};
use murmurate_tests::{Daemon, Settings, program, turn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROUNDS: u64 = 6;

/// The values of a metric in a store of files, by step: `time value step` a line.
fn values(run: &Path, metric: &str) -> BTreeMap<u64, f64> {
    let text = std::fs::read_to_string(run.join("metrics").join(metric)).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let value = words.next().unwrap().parse().unwrap();
        (words.next().unwrap().parse().unwrap(), value)
    };
    text.lines().map(line).collect()
}

/// The only run of the only experiment that has one.
fn only_run(store: &Path) -> PathBuf {
    let below = |dir: &Path| {
        let entries = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let runs = below(store).into_iter().flat_map(|dir| below(&dir));
    let runs: Vec<_> = runs.filter(|dir| dir.join("metrics").is_dir()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

#[test]
fn the_rounds_of_a_daemon_are_in_mlflow() {
    let Some(python) = python() else {
        return;
    };
    let mut tried = Command::new(&python);
    let tried = tried.args(["-c", "import mlflow"]).stderr(Stdio::null());
    if !tried.status().unwrap().success() {
        println!("skipped: MLflow is not installed; `cargo xtask python` installs it");
        return;
    }
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("node-0");
    let settings = Settings {
        rounds: ROUNDS,
        inner_steps: Some(4),
        evaluate_every: 2,
        ..Settings::default()
    };
    let mut command = Command::new(program());
    command
        .arg("run")
        .arg("--config")
        .arg(settings.write(&home));
    // It is still there when the last round is asked for.
    command.env("MURMURATE_DAEMON_STAY", "true");
    let mut daemon = Daemon::spawn(&turn, command);
    daemon.listening();
    let store = dir.path().join("mlruns");
    let uri = format!("file://{}", store.display());
    let mut track = Command::new(python);
    track.args(["-m", "murmurate.track", "--mlflow", &uri]);
    let track = track.arg(&home).env("PYTHONPATH", root().join("python"));
    // MLflow keeps a store of files only where it is asked for.
    let output = track.env("MLFLOW_ALLOW_FILE_STORE", "true").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("6 rounds logged"), "{said}");
    daemon.interrupt();

    let run = only_run(&store);
    let losses = values(&run, "loss");
    assert_eq!(
        losses.keys().copied().collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    assert!(losses[&5] < losses[&0], "{losses:?}");
    let accuracies = values(&run, "test_accuracy");
    assert!(
        accuracies.keys().all(|round| *round < ROUNDS),
        "{accuracies:?}"
    );
    assert!(!accuracies.is_empty());
    let preset = std::fs::read_to_string(run.join("params").join("preset"));
    assert_eq!(preset.unwrap(), "diloco");
}
