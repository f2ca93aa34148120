//! The configurations in deploy/: each can be used, and the one of the containers trains.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Only a broken test waits this long.
const WAIT: Duration = Duration::from_secs(120);

fn deploy(file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("deploy").join(file)
}

fn murmurate(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_murmurate"));
    command.args(args).current_dir(dir);
    command.env_remove("MURMURATE_LOG").stdin(Stdio::null());
    command
}

/// The default of the Helm chart: the lines under `config: |`.
fn config_of_the_chart() -> String {
    let values = std::fs::read_to_string(deploy("helm/murmurate/values.yaml")).unwrap();
    let (_, after) = values.split_once("\nconfig: |\n").unwrap();
    let lines = after.lines();
    let block = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
    block
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

#[test]
fn containers_are_asked_under_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().join("chart.toml");
    std::fs::write(&chart, config_of_the_chart()).unwrap();
    for (file, name) in [
        (deploy("compose/node.toml"), "node-0"),
        (deploy("kubernetes/node.toml"), "murmurate"),
        (chart, "birds-0"),
    ] {
        let path = file.to_str().unwrap();
        let mut shown = murmurate(dir.path(), &["run", "--config", path, "--show-config"]);
        if path.ends_with("chart.toml") {
            // The chart sets it by this variable, because the names depend on the release.
            shown.env("MURMURATE_DAEMON_HTTP_NAMES", "birds-0,birds");
        }
        let shown = shown.output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.status.success(), "{path}");
        let config: toml::Table = toml::from_str(&text).unwrap();
        let names = config["daemon"]["http_names"].as_array().unwrap();
        assert!(names.iter().any(|n| n.as_str() == Some(name)), "{path}");
        assert_eq!(config["daemon"]["http"].as_str(), Some("0.0.0.0:9100"));
    }
    // The other pods' names come from a variable.
    let mut shown = murmurate(dir.path(), &["run", "--show-config"]);
    shown.env(
        "MURMURATE_DAEMON_HTTP_NAMES",
        "murmurate-0,murmurate-0.murmurate",
    );
    let text = String::from_utf8(shown.output().unwrap().stdout).unwrap();
    let names = "http_names = [\"murmurate-0\", \"murmurate-0.murmurate\"]";
    assert!(text.contains(names), "{text}");
}

/// Ends what is left of the daemons.
struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// As compose.yaml does it, without containers: one key for all, and the others join by name.
#[test]
fn the_daemons_of_the_compose_file_train_together() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let made = murmurate(here, &["run-key", "compose", "--to", "run.key"]).output();
    assert!(made.unwrap().status.success());
    let config = deploy("compose/node.toml");
    let mut daemons = Daemons(Vec::new());
    let mut join = String::new();
    for node in ["node-0", "node-1", "node-2"] {
        let args = [
            "run",
            "--config",
            config.to_str().unwrap(),
            "--key",
            "run.key",
            "--log",
            "plain",
        ];
        let mut daemon = murmurate(here, &args);
        daemon
            .env("MURMURATE_DAEMON_DIR", node)
            .env("MURMURATE_DAEMON_HTTP", "127.0.0.1:0")
            .env("MURMURATE_DAEMON_STAY", "false")
            .env("MURMURATE_RUN_ROUNDS", "3")
            .env("MURMURATE_NETWORK_LISTEN", "/ip4/127.0.0.1/udp/0/quic-v1")
            .env("MURMURATE_NETWORK_JOIN", &join)
            .stdout(Stdio::null());
        daemons.0.push(daemon.spawn().unwrap());
        if join.is_empty() {
            let since = Instant::now();
            let noted = here.join(node).join("addresses");
            join = loop {
                let text = std::fs::read_to_string(&noted).unwrap_or_default();
                if let Some(first) = text.lines().next() {
                    break first.replace("/ip4/127.0.0.1/", "/dns4/localhost/");
                }
                assert!(since.elapsed() < WAIT, "{node} does not listen");
                std::thread::sleep(Duration::from_millis(20));
            };
        }
    }
    let since = Instant::now();
    while let Some(child) = daemons.0.last_mut() {
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "{status}");
                daemons.0.pop();
            }
            None => {
                assert!(since.elapsed() < WAIT, "the daemons do not end");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let rounds = ["node-0", "node-1", "node-2"].map(|node| {
        let text = std::fs::read_to_string(here.join(node).join("checkpoint.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["round"].as_u64().unwrap()
    });
    assert_eq!(rounds, [3, 3, 3]);
}
