//! Trainers in Python, each attached to a daemon of its own. The tests need Python with NumPy: that of
//! `MURMURATE_TEST_PYTHON`, of `target/tools/python`, or `python3`. Without one they say so and end.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::assert_has;
use murmurate_tests::{
    Daemon, Settings, failure_with, get, local, murmurate, program, status, success, turn,
    wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Inner steps of a round.
pub(crate) const STEPS: u32 = 10;

/// A Python that can import NumPy.
pub(crate) fn python() -> Option<String> {
    let target = program().parent()?.parent()?.to_owned();
    let own = target
        .join("tools")
        .join("python")
        .join("bin")
        .join("python");
    let named = std::env::var("MURMURATE_TEST_PYTHON").ok();
    let known = [
        named,
        own.to_str().map(str::to_owned),
        Some("python3".to_owned()),
    ];
    let can = |python: &String| {
        let mut command = Command::new(python);
        let tried = command
            .args(["-c", "import numpy"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    let found = known.into_iter().flatten().find(can);
    if found.is_none() {
        println!("skipped: no Python with NumPy; `cargo xtask python` installs it");
    }
    found
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn script() -> String {
    let path = root().join("tests/e2e/attach/trainer.py");
    path.to_str().unwrap().to_owned()
}

/// A configuration of an attached trainer.
pub(crate) fn config(dir: &Path) -> String {
    let path = dir.join("attached.toml");
    let text = format!(
        "[task]\nkind = \"attached\"\npatience_s = 2.0\n[strategy]\npreset = \"diloco\"\n\
         [strategy.synchronization]\ninner_steps = {STEPS}\n[daemon]\nsave_every_s = 0.5\n\
         evaluate_every = 2\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Three daemons of which the trainer of the second one harms itself. All must end with the same bits.
/// Returns the report and the inner steps that each trainer's state has counted.
fn harmed(fault: &str, rounds: u64) -> Option<(Value, Vec<u64>)> {
    let python = python()?;
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let (config, rounds_text) = (config(dir.path()), rounds.to_string());
    let flags = [
        "--nodes",
        "3",
        "--config",
        &config,
        "--rounds",
        &rounds_text,
    ];
    let command = ["--", &python, &script(), home, "1", fault];
    let report = local(&turn, &[&flags[..], &command].concat());
    let all: Vec<&Value> = nodes(&report).iter().collect();
    for node in &all {
        assert_eq!(node["status"], "finished", "{node}");
        assert_eq!(node["digest_round"], rounds - 1, "{node}");
        assert!(node["test_loss"].as_f64().unwrap() < 0.5, "{node}");
    }
    same_digest(&all);
    assert_eq!(dir.path().join("1.harmed").exists(), fault != "none");
    let steps = |index: u32| {
        let text = std::fs::read_to_string(dir.path().join(format!("{index}.steps"))).unwrap();
        text.parse().unwrap()
    };
    Some((report, (0..3).map(steps).collect()))
}

/// The state of a trainer that was replaced goes on from the last cut: at most a round is lost.
fn resumes(fault: &str) {
    let Some((_, steps)) = harmed(fault, 12) else {
        return;
    };
    println!("{fault}: {steps:?} inner steps");
    // It was harmed after 25 steps or more, so one that began afresh would have counted fewer.
    assert!(
        steps[1] >= 12 * u64::from(STEPS) - 2 * u64::from(STEPS),
        "{steps:?}"
    );
}

#[test]
fn four_daemons_train_the_numpy_example_and_agree_to_the_bit() {
    let Some(python) = python() else {
        return;
    };
    let turn = turn();
    let example = root().join("python/examples/numpy_logistic.py");
    let example = example.to_str().unwrap();
    for (preset, rounds) in [("diloco", "8"), ("bsp", "60")] {
        let flags = ["--nodes", "4", "--preset", preset, "--rounds", rounds];
        let report = local(&turn, &[&flags[..], &["--", &python, example]].concat());
        let all: Vec<&Value> = nodes(&report).iter().collect();
        assert_eq!(all.len(), 4);
        for node in &all {
            assert!(
                node["test_accuracy"].as_f64().unwrap() > 0.8,
                "{preset}: {node}"
            );
            assert_eq!(node["digest"], all[0]["digest"], "{preset}: {node}");
        }
    }
}

#[test]
fn a_trainer_that_is_killed_in_a_step_is_started_again() {
    resumes("step");
}

#[test]
fn a_trainer_that_is_killed_while_it_copies_its_cut_is_started_again() {
    resumes("cut");
}

#[test]
fn a_trainer_that_is_killed_while_it_saves_is_started_again() {
    resumes("save");
}

#[test]
fn a_trainer_that_is_killed_while_it_evaluates_is_started_again() {
    resumes("evaluate");
}

#[test]
fn a_trainer_that_hangs_is_killed_and_started_again() {
    resumes("hang");
}

#[test]
fn a_trainer_that_raises_is_started_again() {
    resumes("raise");
}

#[test]
fn a_loop_that_is_late_for_the_last_round_ends_with_what_was_agreed_on() {
    let Some(python) = python() else {
        return;
    };
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let (config, script) = (config(dir.path()), script());
    let text = std::fs::read_to_string(&config).unwrap();
    // It is late, and does not hang.
    let text = text.replace("patience_s = 2.0", "patience_s = 60.0");
    std::fs::write(&config, text).unwrap();
    let flags = ["--nodes", "3", "--config", &config, "--rounds", "5"];
    let command = ["--", &python, &script, home, "1", "late"];
    let report = local(&turn, &[&flags[..], &command].concat());
    let all: Vec<&Value> = nodes(&report).iter().collect();
    same_digest(&all);
    let end = |index: u32| std::fs::read(dir.path().join(format!("{index}.end"))).unwrap();
    for (index, node) in (0..).zip(&all) {
        assert_eq!(node["test_loss"], all[0]["test_loss"], "{node}");
        assert_eq!(end(index), end(0), "loop {index}");
    }
}

#[test]
fn a_trainer_that_fails_for_good_ends_its_daemon_with_its_error() {
    let Some(python) = python() else {
        return;
    };
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let (config, script) = (config(dir.path()), script());
    let flags = [
        "local", "--nodes", "2", "--config", &config, "--rounds", "30", "--dir", "swarm",
    ];
    let command = ["--", &python, &script, home, "0", "score"];
    let outcome = murmurate(dir.path(), &[&flags[..], &command].concat());
    let said = outcome.stderr;
    assert_eq!(outcome.code, Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("KeyError: 'accuracy'; it ended 3 times"),
        "{said}"
    );
    assert!(said.contains("\ndaemon 0 | Traceback"), "{said}");
}

#[test]
fn a_loss_that_is_not_finite_ends_the_daemon_in_one_line() {
    let Some(python) = python() else {
        return;
    };
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let (config, script) = (config(dir.path()), script());
    let flags = [
        "local", "--nodes", "1", "--config", &config, "--rounds", "3", "--dir", "swarm",
    ];
    let command = ["--", &python, &script, home, "0", "nan"];
    let outcome = murmurate(dir.path(), &[&flags[..], &command].concat());
    let said = outcome.stderr + &outcome.stdout;
    assert_eq!(outcome.code, Some(1), "{said}");
    assert_has(&said, "the training loss is no longer finite");
}

#[test]
fn a_command_that_never_attaches_ends_the_daemon_with_its_last_words() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "--dir",
        "d",
        "--no-mdns",
        "--",
        "sh",
        "-c",
        "echo no such model >&2; exit 3",
    ];
    let outcome = murmurate(dir.path(), &args);
    assert_eq!(outcome.code, Some(1));
    let last = outcome.stderr.lines().last().unwrap();
    assert_eq!(
        last,
        "error: the trainer ended 3 times before it attached; its last words: no such model"
    );
}

#[test]
fn what_an_attached_trainer_cannot_do_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    for (preset, reason) in [
        ("fedprox", "`strategy.inner.correction` = \"fed-prox\""),
        ("scaffold", "`strategy.inner.correction` = \"scaffold\""),
        ("wfbp", "`strategy.overlap.layers`"),
    ] {
        let line = failure_with(2, dir.path(), &["local", "--preset", preset, "--", "true"]);
        assert!(line.contains(reason), "{line}");
        assert!(line.contains("or take another preset"), "{line}");
    }
    let line = failure_with(
        2,
        dir.path(),
        &["run", "--trainer", "attach", "--data", "x"],
    );
    assert!(line.contains("no key of kind = \"attached\""), "{line}");
    let shown = success(dir.path(), &["run", "--trainer", "attach", "--show-config"]);
    assert!(shown.contains("kind = \"attached\""), "{shown}");
}

/// A trainer that is started by hand. It is killed with the test.
struct ByHand(Child);

impl ByHand {
    fn start(python: &str, dir: &Path, daemon: &Path, index: u32) -> Self {
        let mut command = Command::new(python);
        command.args([
            &script(),
            dir.to_str().unwrap(),
            &index.to_string(),
            "sleep",
        ]);
        command.env("MURMURATE_SOCKET", daemon.join("attach").join("socket"));
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_trainer_outlives_its_daemon_and_attaches_to_the_next_one() {
    let Some(python) = python() else {
        return;
    };
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = |index: u32| dir.path().join(format!("node-{index}"));
    let settings = Settings {
        rounds: 30,
        start_with: 2,
        inner_steps: Some(STEPS),
        save_every_s: 0.5,
        ..Settings::default()
    };
    let start = |index: u32, join: &[&str], start_with: u32| {
        let settings = Settings {
            start_with,
            ..settings.shard(index)
        };
        let text = settings
            .toml(&home(index))
            .replace("image-classifier", "attached");
        let path = dir.path().join(format!("node-{index}.toml"));
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new(program());
        command.arg("run").arg("--config").arg(path);
        for address in join {
            command.args(["--join", address]);
        }
        Daemon::spawn(&turn, command)
    };
    let mut first = start(0, &[], 2);
    let _one = ByHand::start(&python, dir.path(), &home(0), 0);
    let (_, address, http) = first.listening();
    let mut second = start(1, &[&address], 2);
    let mut two = ByHand::start(&python, dir.path(), &home(1), 1);
    second.listening();
    second.reaches(5);
    let largest = wait_until("a named number", Duration::from_secs(60), || {
        let shown = get(&http, "/metrics").contains("murmurate_test_score{score=\"largest\"}");
        status(&http)["evaluation"]["named"]["largest"]
            .as_f64()
            .filter(|_| shown)
    });
    assert!(largest > 0.0, "{largest}");
    second.signal(Signal::KILL);
    drop(second);
    let mut second = start(1, &[&address], 1);
    second.notes("resuming from the checkpoint of round");
    let (first, second) = (first.end(), second.end());
    let (a, b) = (first.polite(), second.polite());
    assert_eq!(
        (a.digest_round, b.digest_round),
        (Some(29), Some(29)),
        "{a:?} {b:?}"
    );
    assert_eq!(a.digest, b.digest);
    // Step() returned true, and the script ended by itself with the state of all its steps.
    assert!(two.0.wait().unwrap().success());
    let steps: u32 = std::fs::read_to_string(dir.path().join("1.steps"))
        .unwrap()
        .parse()
        .unwrap();
    println!("{steps} inner steps");
    assert!(steps >= 20 * STEPS, "{steps}");
}
