//! The command as users run it: help, init, and every bad input that needs no network. One clear
//! line, exit code not 0, nothing overwritten.

use crate::common::{assert_begins, assert_ends, assert_has};
use crate::common::{murmurate, serve};
use murmurate_net::congestion::MaxRate;
use murmurate_node::api::Token;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The one line on stderr of a command that must fail.
fn failure(dir: &Path, args: &[&str]) -> String {
    failure_with(1, dir, args)
}

/// As [`failure`], with another exit code.
fn failure_with(code: i32, dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    stderr
        .trim_end()
        .strip_prefix("error: ")
        .unwrap_or_else(|| panic!("{stderr}"))
        .to_owned()
}

fn success(dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_names_every_command_and_flag() {
    let dir = tempfile::tempdir().unwrap();
    let help = success(dir.path(), &["--help"]);
    for command in [
        "run",
        "local",
        "init",
        "sim",
        "strategies",
        "export",
        "eval",
        "limit",
    ] {
        assert!(help.contains(command), "{command}");
    }
    let local = success(dir.path(), &["local", "--help"]);
    for flag in [
        "--nodes",
        "--preset",
        "--config",
        "--rounds",
        "--until-accuracy",
        "--shards",
        "--seed",
        "--dir",
        "--json",
        "--kill",
        "--late",
        "--stop",
        "--baseline",
        "--link",
        "--nat",
    ] {
        assert!(local.contains(flag), "{flag}");
    }
    let run = success(dir.path(), &["run", "--help"]);
    assert!(run.contains("--join") && !run.contains("--fault"));
    assert!(success(dir.path(), &["--version"]).starts_with("murmurate "));
}

#[test]
fn limits_of_a_running_daemon_are_shown_and_changed() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let line = failure(here, &["limit", "."]);
    assert!(line.starts_with("no daemon runs in .:"), "{line}");
    let rate = MaxRate::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let token = Token::new([7; 32]);
    let server = serve(here, &runtime, rate.clone(), token.clone());
    let none = "{\"max_rate\":null,\"max_rate_per_peer\":null}\n";
    assert_eq!(success(here, &["limit", ".", "--json"]), none);
    let words = "all peers together: no limit\neach peer: no limit\n";
    assert_eq!(success(here, &["limit", "."]), words);
    let change = [
        "limit",
        ".",
        "--max-rate",
        "10 MB/s",
        "--max-rate-per-peer",
        "500",
    ];
    let line = failure(here, &change);
    assert!(line.contains("http-token cannot be read"), "{line}");
    std::fs::write(here.join("http-token"), "guessed\n").unwrap();
    let line = failure(here, &change);
    assert!(line.contains("changes need the token"), "{line}");
    assert_eq!(rate.get().daemon, None);
    std::fs::write(here.join("http-token"), token.text()).unwrap();
    let changed = "all peers together: 10.0 MB a second\n\
                   each peer: 500 B a second, at which no newcomer gets the state here: it needs 17.5 kB\n";
    assert_eq!(success(here, &change), changed);
    let lifted = success(here, &["limit", ".", "--max-rate", "none", "--json"]);
    assert_eq!(lifted, "{\"max_rate\":null,\"max_rate_per_peer\":500}\n");
    let line = failure(here, &["limit", ".", "--max-rate", "fast"]);
    assert!(line.contains("`max_rate` must be bytes a second"), "{line}");
    let limits = rate.get();
    assert_eq!((limits.daemon, limits.peer), (None, Some(500)));
    drop((server, runtime));
    let line = failure(here, &["limit", "."]);
    assert!(line.starts_with("no daemon runs in .:"), "{line}");
}

#[test]
fn strategies_lists_every_method_on_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let list = success(dir.path(), &["strategies"]);
    let methods = murmurate_strategies::grid::catalogue();
    for method in &methods {
        let line = list.lines().find(|line| {
            line.split_whitespace().next() == Some(method.name) && line.contains(method.summary)
        });
        let line = line.unwrap_or_else(|| panic!("{} is not listed", method.name));
        assert_eq!(
            line.contains("(refused: "),
            method.refused.is_some(),
            "{line}"
        );
    }
    let headings = list
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
    let lines = list.lines().filter(|line| line.starts_with("  "));
    let keys: BTreeSet<_> = methods.iter().map(|method| method.key).collect();
    assert_eq!(
        (headings.count(), lines.count()),
        (keys.len(), methods.len())
    );
    let json = success(dir.path(), &["strategies", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, methods.iter().map(|m| m.name).collect::<Vec<_>>());
}

#[test]
fn strategies_show_prints_all_that_is_known_of_a_method() {
    let dir = tempfile::tempdir().unwrap();
    let show = |name| success(dir.path(), &["strategies", "show", name]);
    let text = show("qsgd");
    for part in [
        "preset = \"qsgd\"",
        "compression.codec = \"qsgd\"",
        "Alistarh",
        "compression.levels",
        "a whole number from 1 to 127",
        "7",
        "E C(x) = x",
        "inner optimizer 2",
        "[strategy.compression]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What is printed of a preset is a configuration of a daemon with the same preset.
    let diloco = show("diloco");
    let at = diloco.find("[strategy]\n").unwrap();
    std::fs::write(dir.path().join("node.toml"), &diloco[at..]).unwrap();
    let all = ["run", "--config", "node.toml", "--show-config"];
    let shown = success(dir.path(), &all);
    let named = success(dir.path(), &["run", "--preset", "diloco", "--show-config"]);
    assert_eq!(shown, named);
    let later = show("moniqua");
    assert_has(&later, "relative to its own parameters");
    assert_has(&later, "use \"int8\"");
    let json = success(dir.path(), &["strategies", "show", "diloco", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let toml = json[0]["toml"].as_str().unwrap();
    let again: murmurate_strategies::grid::Strategy = toml.parse().unwrap();
    assert_eq!(
        again,
        murmurate_strategies::grid::Strategy::preset("diloco").unwrap()
    );
}

#[test]
fn an_unknown_strategy_names_its_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let line = failure_with(2, dir.path(), &["strategies", "show", "dilocco"]);
    assert_has(&line, "`dilocco` does not exist");
    assert_has(&line, "`diloco`");
    // The temporary directory is removed, so there is only one line.
    let line = failure_with(2, dir.path(), &["local", "--preset", "wfpb"]);
    assert_has(&line, "`wfpb` does not exist");
    assert_has(&line, "`wfbp`");
}

#[test]
fn wrong_usage_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["flock"][..],
        &["local", "--kill", "2@5"],
        &["local", "--shards", "by-lable"],
    ] {
        let output = murmurate(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).starts_with("error: "),
            "{args:?}"
        );
    }
}

#[test]
fn init_writes_what_run_reads_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let said = success(dir.path(), &["init"]);
    assert_eq!(
        said,
        "wrote node.toml; start a daemon with: murmurate run --config node.toml\n"
    );
    let shown = success(
        dir.path(),
        &["run", "--config", "node.toml", "--show-config"],
    );
    assert!(shown.contains("[run]\nname = \"murmurate\""), "{shown}");
    // The shown configuration is a valid configuration and shows the same.
    std::fs::write(dir.path().join("shown.toml"), &shown).unwrap();
    let again = success(
        dir.path(),
        &["run", "--config", "shown.toml", "--show-config"],
    );
    assert_eq!(again, shown);

    std::fs::write(dir.path().join("node.toml"), "mine").unwrap();
    let line = failure(dir.path(), &["init"]);
    assert_eq!(
        line,
        "node.toml exists already; give another --to, or --force to replace it"
    );
    assert_eq!(
        std::fs::read_to_string(dir.path().join("node.toml")).unwrap(),
        "mine"
    );
    success(dir.path(), &["init", "--force"]);
    // The folder is made, unless something is in the way.
    success(dir.path(), &["init", "--to", "new/folder/node.toml"]);
    let line = failure(dir.path(), &["init", "--to", "node.toml/node.toml"]);
    assert_begins(&line, "node.toml/node.toml: cannot be written: ");
}

#[test]
fn a_bad_configuration_is_one_line_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("node.toml");
    let cases = [
        (
            "[run]\nrouns = 3\n",
            "node.toml:2: unknown key `rouns`; did you mean `rounds`?",
        ),
        ("[run\n", "node.toml:1: "),
        (
            "[run]\nrounds = \"many\"\n",
            "node.toml:2: `rounds`: give a whole number from 0 on in place of \"many\"",
        ),
        (
            "[strategy]\npreset = \"dilocco\"\n",
            "node.toml:2: preset `dilocco` does not exist",
        ),
        (
            "[strategy]\npreset = \"d-psgd\"\n[strategy.architecture]\ncontribution = \"delta\"\n",
            "node.toml:",
        ),
        (
            "[network]\nlisten = [\"here\"]\n",
            "node.toml:2: `here` is not a multiaddress",
        ),
        (
            "[daemon]\nhttp = \"1.2.3.4:5\"\n",
            "node.toml:2: 1.2.3.4:5 can be reached from outside",
        ),
        (
            "[daemon]\nuntil_accuracy = 0.9\nevaluate_every = 0\n",
            "node.toml:3: `daemon.evaluate_every` must be above 0 with ",
        ),
        (
            "[daemon]\npatience_rounds = 2\nevaluate_every = 0\n[run]\nrounds = 9\n",
            "node.toml:3: `daemon.evaluate_every` must be above 0 with ",
        ),
    ];
    for (text, start) in cases {
        std::fs::write(&config, text).unwrap();
        let line = failure_with(6, dir.path(), &["run", "--config", "node.toml"]);
        assert!(line.starts_with(start), "{line}");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    }
    let line = failure_with(6, dir.path(), &["run", "--config", "none.toml"]);
    assert!(line.starts_with("none.toml: "), "{line}");
    assert_ends(&line, "`murmurate init --to none.toml` writes one");
    let line = failure_with(2, dir.path(), &["run", "--join", "10.0.0.1:4001"]);
    assert_begins(&line, "--join: `10.0.0.1:4001` is not a multiaddress");
    let line = failure_with(2, dir.path(), &["run", "--device", "gpu"]);
    assert_begins(&line, "--device: there is no device `gpu`; a GPU is `cuda`");
    // That would be a run `birds.key` with a key in birds.key.key.
    let line = failure_with(2, dir.path(), &["run-key", "birds.key"]);
    assert_ends(&line, "`murmurate run-key birds` writes birds.key");
    // No command has created a directory.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn unreadable_data_and_a_taken_directory_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let line = failure(dir.path(), &["run", "--dir", "a", "--data", "no/such/data"]);
    assert!(line.contains("no/such/data"), "{line}");
    let _lock = murmurate_node::store::DirectoryLock::acquire(&dir.path().join("a")).unwrap();
    let line = failure(dir.path(), &["run", "--dir", "a"]);
    let pid = std::process::id();
    assert_eq!(
        line,
        format!("a is in use by process {pid}; stop that daemon or give another --dir")
    );
}

#[test]
fn a_damaged_checkpoint_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("checkpoint.json"), "{\"version\": 1").unwrap();
    // A directory that does not know its run is refused before its checkpoint is read.
    let line = failure_with(6, dir.path(), &["run", "--dir", "a"]);
    assert_begins(
        &line,
        "a has a checkpoint.json and neither membership.toml nor run.key",
    );
    success(dir.path(), &["run-key", "birds", "--to", "a/run.key"]);
    let line = failure(dir.path(), &["run", "--dir", "a"]);
    assert!(line.starts_with("a/checkpoint.json is damaged ("), "{line}");
    let line = failure(dir.path(), &["export", "a", "--to", "m.safetensors"]);
    assert!(line.starts_with("a/checkpoint.json is damaged ("), "{line}");
    let kept = std::fs::read_to_string(home.join("checkpoint.json")).unwrap();
    assert_eq!(kept, "{\"version\": 1");
    assert!(!dir.path().join("m.safetensors").exists());
}

#[test]
fn bad_flags_of_local_are_named_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        (&["--nodes", "0"][..], "--nodes: 0 daemons; give 1 to 256"),
        (
            &["--kill", "9@round:1"],
            "--kill: there is no daemon 9; they are 0 to 3",
        ),
        (
            &["--preset", "dilocco"],
            "--preset: preset `dilocco` does not exist",
        ),
        (
            &["--until-accuracy", "95"],
            "--until-accuracy: give a share from 0 to 1; 95 % is 0.95",
        ),
        (&["--baseline=-1"], "--baseline: give 0 to 3600 seconds"),
    ];
    for (flags, start) in cases {
        let args = [&["local", "--dir", "swarm"], flags].concat();
        let line = failure_with(2, dir.path(), &args);
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn what_cannot_be_simulated_or_measured_is_refused_with_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sim/scenarios/comparison/comparison.toml"
    );
    let last = u64::MAX.to_string();
    let cases = [
        (
            &["sim", "compare", comparison, "--presets", "dilocco"][..],
            "--presets: preset `dilocco` does not exist",
        ),
        (&["sim", "--seeds", "0"], "--seeds: give 1 or more"),
        (
            &["sim", "--seeds", "5", "--seed", &last],
            "--seeds: give 1 or more",
        ),
        (
            &["bench", "exchange", "--preset", "none"],
            "--preset: `none` exchanges nothing",
        ),
        (
            &["bench", "join", "--preset", "bsp"],
            "--preset: `bsp` exchanges gradients: there are none",
        ),
    ];
    for (args, start) in cases {
        let line = failure(dir.path(), args);
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn export_and_eval_round_trip_a_model() {
    use murmurate_node::config::{Config, Overrides};
    use murmurate_node::store::{CheckpointWriter, Expected, Manifest, Store};
    use murmurate_strategies::state::StateSink;

    let dir = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        dir: Some(dir.path().join("a")),
        ..Overrides::default()
    };
    let config = Config::load(None, &overrides).unwrap();
    let (inner, device) = (config.strategy.inner_kind(), &config.daemon.device);
    let mut trainer =
        murmurate_tasks::build(&config.task, inner, device, config.run.seed, &config.shards)
            .unwrap();
    let measured = trainer.evaluate().unwrap();
    let parameters = murmurate_tasks::parameters(trainer.as_mut());
    let layout = Arc::new(trainer.layout().clone());
    let plan = config
        .strategy
        .plan(config.run.id, &layout, 0)
        .unwrap()
        .hash();
    let expected = Expected {
        run: config.run.id,
        plan,
        layout: layout.hash(),
    };
    let store = Store::open(&config.daemon.dir).unwrap();
    let writer = CheckpointWriter::begin(store.dir(), 3, layout.clone()).unwrap();
    let mut sink = writer.sink("mix").unwrap();
    sink.tensor("anchor", &parameters).unwrap();
    let mut manifest = Manifest::new(&expected, 3, layout.tensors());
    manifest.config = config.effective.clone();
    writer
        .commit(manifest, vec![sink.finish().unwrap()])
        .unwrap();

    let said = success(dir.path(), &["export", "a", "--to", "m.safetensors"]);
    assert!(said.ends_with("of round 3 to m.safetensors\n"), "{said}");
    let line = failure(dir.path(), &["export", "a", "--to", "m.safetensors"]);
    assert_begins(&line, "--to: m.safetensors exists already");
    let line = failure(dir.path(), &["export", "b", "--to", "n.safetensors"]);
    assert!(line.starts_with("b holds no checkpoint"), "{line}");

    let text = success(
        dir.path(),
        &[
            "eval",
            "--model",
            "m.safetensors",
            "--data",
            "bundled",
            "--json",
        ],
    );
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["test_accuracy"].as_f64(), measured.accuracy);
    assert_eq!(found["test_loss"].as_f64(), Some(measured.loss));

    std::fs::write(
        dir.path().join("cnn.toml"),
        "[task]\nkind = \"image-classifier\"\nmodel = \"cnn\"\n",
    )
    .unwrap();
    let args = ["eval", "--model", "m.safetensors", "--config", "cnn.toml"];
    let line = failure(dir.path(), &args);
    assert!(line.contains("is it a file of another model?"), "{line}");
}
