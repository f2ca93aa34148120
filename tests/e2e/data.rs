//! Language models on data as people have it: JSON Lines and Parquet.

use crate::swarm::{nodes, same_digest};
use murmurate_tests::assert_has;
use murmurate_tests::{Daemon, Settings, failure, local, status, turn};
use std::fs;
use std::path::Path;

/// A small causal language model on `data`.
fn write_config(dir: &Path, data: &str) -> String {
    let config = dir.join("node.toml");
    let task = "kind = \"causal-lm\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 16\nbatch = 4";
    let text = format!(
        "[run]\nrounds = 3\n[task]\n{task}\n{data}\n[strategy]\npreset = \"local-sgd\"\n\
         [strategy.synchronization]\ninner_steps = 5\n"
    );
    fs::write(&config, text).unwrap();
    config.to_string_lossy().into_owned()
}

fn stories(dir: &Path) -> String {
    let line = |i: u32| format!("{{\"id\":{i},\"body\":\"Story {i}: a flock turns at dusk.\"}}\n");
    let folder = dir.join("stories");
    fs::create_dir_all(folder.join("more")).unwrap();
    fs::write(
        folder.join("1.jsonl"),
        (0..200).map(line).collect::<String>(),
    )
    .unwrap();
    fs::write(
        folder.join("more/2.jsonl"),
        (200..300).map(line).collect::<String>(),
    )
    .unwrap();
    folder.to_string_lossy().into_owned()
}

#[test]
fn two_daemons_train_on_json_lines() {
    let dir = tempfile::tempdir().unwrap();
    let folder = stories(dir.path());
    let config = write_config(dir.path(), &format!("data = {folder:?}\ncolumn = \"body\""));
    let flags = ["--config", &config, "--nodes", "2", "--shards", "dealt"];
    let report = local(&turn(), &[&flags[..], &["--rounds", "3"]].concat());
    let all = nodes(&report);
    assert_eq!(all.len(), 2, "{report}");
    same_digest(&all.iter().collect::<Vec<_>>());
    for node in all {
        assert_eq!(node["rounds"], 3, "{report}");
        let loss = node["test_loss"].as_f64().unwrap();
        assert!(loss > 0.0 && loss < 6.0, "{report}");
    }
}

#[test]
fn two_daemons_train_on_a_column_of_tokens_in_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tasks/tests/fixtures/parquet");
    let many = dir.path().join("many");
    fs::create_dir(&many).unwrap();
    for copy in 0..20 {
        fs::copy(
            file.join("zstd.parquet"),
            many.join(format!("{copy}.parquet")),
        )
        .unwrap();
    }
    let config = write_config(dir.path(), &format!("data = {many:?}\ncolumn = \"tokens\""));
    let flags = ["--config", &config, "--nodes", "2", "--shards", "dealt"];
    let report = local(&turn(), &[&flags[..], &["--rounds", "3"]].concat());
    same_digest(&nodes(&report).iter().collect::<Vec<_>>());
}

#[test]
fn data_that_cannot_be_read_ends_the_daemon_with_one_line() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let run = |data: &str| {
        let config = write_config(dir.path(), data);
        failure(dir.path(), &["run", "--config", &config, "--dir", "home"])
    };
    let folder = stories(dir.path());
    let line = run(&format!("data = {folder:?}"));
    assert_has(&line, "1.jsonl: line 1 has no `text` (it has `body`, `id`)");
    fs::write(dir.path().join("torn.parquet"), b"PAR1 and no more").unwrap();
    let line = run("data = \"torn.parquet\"");
    assert_has(
        &line,
        "torn.parquet: the Parquet file is cut off or damaged",
    );
}

/// Both were given the first shard: every batch of one is a batch of the other.
#[test]
fn two_daemons_with_one_shard_name_each_other() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        start_with: 2,
        inner_steps: Some(8),
        ..Settings::default()
    };
    let start =
        |name: &str, join: &[&str]| Daemon::start(&turn, &settings, &dir.path().join(name), join);
    let mut first = start("a", &[]);
    let (a, address, http) = first.listening();
    let mut second = start("b", &[&address]);
    let (b, ..) = second.listening();
    for (daemon, other) in [(&mut first, &b), (&mut second, &a)] {
        let note = daemon.notes("trains the same data as this daemon");
        assert!(note.contains(&format!("Daemon {}", &other[..8])), "{note}");
    }
    let troubles = &status(&http)["troubles"];
    assert_eq!(troubles[0]["kind"], "peers_equal", "{troubles}");
    assert_eq!(troubles[0]["peers"][0], b.as_str(), "{troubles}");
}
