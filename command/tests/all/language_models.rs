//! A language model from training to text, by the commands of docs/language-models.md.

use crate::common::{assert_begins, assert_has};
use crate::common::{failure, success};

/// A folder with a text and a configuration of two rounds.
fn prepared(task: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = "A flock of starlings turns at dusk. No bird leads it.\n".repeat(60);
    std::fs::write(dir.path().join("text.txt"), text).unwrap();
    let config = format!(
        "[run]\nrounds = 2\n[task]\nkind = \"causal-lm\"\ndata = \"text.txt\"\ncontext = 16\n\
         batch = 4\n{task}\n[strategy]\npreset = \"local-sgd\"\n[strategy.inner]\n\
         optimizer = \"adam-w\"\nlr = 5e-3\n[network]\nmdns = false\n"
    );
    std::fs::write(dir.path().join("node.toml"), config).unwrap();
    dir
}

const SMALL: &str = "layers = 1\nwidth = 32\nheads = 4\nkv_heads = 2";

#[test]
fn a_model_is_trained_exported_measured_sampled_and_trained_further() {
    let dir = prepared(SMALL);
    let dir = dir.path();
    success(dir, &["run", "--config", "node.toml", "--dir", "a"]);
    let said = success(dir, &["export", "a", "--to", "model"]);
    assert!(said.contains("of round 2 to model"), "{said}");
    let line = failure(dir, &["export", "a", "--to", "model"]);
    assert!(line.starts_with("--to: model exists already"), "{line}");
    let line = failure(dir, &["export", "a", "--to", "model.safetensors"]);
    assert!(line.contains("is written as a folder"), "{line}");

    let eval = ["eval", "--model", "model", "--data", "text.txt"];
    let said = success(dir, &eval);
    assert!(said.contains("bits per byte"), "{said}");
    let line = failure(dir, &eval[..3]);
    assert!(line.starts_with("--data: give the text"), "{line}");

    let prompt = ["--prompt", "A flock", "--max-tokens", "8"];
    let args = [&["generate", "--model", "model"][..], &prompt].concat();
    let text = success(dir, &args);
    assert!(text.starts_with("A flock") && text.len() > 8, "{text:?}");
    assert_eq!(text, success(dir, &args));

    // The loss of a run that starts from the model begins where the first one ended.
    let (from, rounds) = (["--init", "model"], ["--rounds", "1"]);
    let run = ["run", "--config", "node.toml", "--dir", "b"];
    success(dir, &[&run[..], &from, &rounds].concat());
    success(dir, &["export", "b", "--to", "further"]);
    let loss = |model| {
        let args = ["eval", "--model", model, "--data", "text.txt", "--json"];
        let found: serde_json::Value = serde_json::from_str(&success(dir, &args)).unwrap();
        found["test_loss"].as_f64().unwrap()
    };
    assert!(loss("further") < loss("model") - 0.05);

    let config = std::fs::read_to_string(dir.join("node.toml")).unwrap();
    std::fs::write(
        dir.join("wide.toml"),
        config.replace("width = 32", "width = 64"),
    )
    .unwrap();
    let args = [
        "run",
        "--config",
        "wide.toml",
        "--dir",
        "c",
        "--init",
        "model",
    ];
    let line = failure(dir, &args);
    let shapes = "is F32 [256, 32], this model has F32 [256, 64]";
    assert!(line.contains(shapes), "{line}");
}

#[test]
fn adapters_are_trained_exported_and_measured() {
    let base = prepared(SMALL);
    success(base.path(), &["run", "--config", "node.toml", "--dir", "a"]);
    success(base.path(), &["export", "a", "--to", "model"]);
    let model = base.path().join("model");
    let dir = prepared(&format!("model = {model:?}\nlora_rank = 2"));
    let dir = dir.path();
    success(dir, &["run", "--config", "node.toml", "--dir", "a"]);
    success(dir, &["export", "a", "--to", "adapter"]);
    assert!(dir.join("adapter/adapter_config.json").exists());
    assert!(!dir.join("adapter/model.safetensors").exists());
    let eval = ["eval", "--model", "adapter", "--config", "node.toml"];
    let said = success(dir, &eval);
    assert!(said.contains("perplexity"), "{said}");
    let line = failure(dir, &["eval", "--model", "adapter", "--data", "text.txt"]);
    assert_has(&line, "describe their model with --config");

    // Adapters on other weights are another model, though all names and shapes are the same.
    let weights = model.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let args = [
        "run",
        "--config",
        "node.toml",
        "--dir",
        "a",
        "--rounds",
        "3",
    ];
    let line = failure(dir, &args);
    assert!(line.contains("belongs to another model"), "{line}");
}

#[test]
fn a_file_holds_no_paths_and_asks_for_its_data() {
    let dir = prepared("");
    let dir = dir.path();
    let config = std::fs::read_to_string(dir.join("node.toml")).unwrap();
    let small = "kind = \"language-model\"\nlayers = 1\nwidth = 32";
    let config = config.replace("kind = \"causal-lm\"", small);
    let data = dir.join("text.txt").to_string_lossy().into_owned();
    let config = config.replace("data = \"text.txt\"", &format!("data = {data:?}"));
    std::fs::write(dir.join("node.toml"), config).unwrap();
    success(dir, &["run", "--config", "node.toml", "--dir", "a"]);
    for file in ["m.safetensors", "n.safetensors"] {
        success(dir, &["export", "a", "--to", file]);
    }
    let bytes = std::fs::read(dir.join("m.safetensors")).unwrap();
    assert_eq!(bytes, std::fs::read(dir.join("n.safetensors")).unwrap());
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("language-model") && !text.contains("text.txt"));
    let line = failure(dir, &["eval", "--model", "m.safetensors"]);
    assert_begins(&line, "--data: m.safetensors was trained on");
    let args = ["eval", "--model", "m.safetensors", "--data", "text.txt"];
    assert!(success(dir, &args).contains("bits per byte"));
}

/// A trial of a tiny model with two entrants.
const TRIAL: &str = r#"
baseline = "bsp"
budget = "local-adam"
points = 2
step_ms = 20.0
[task]
kind = "causal-lm"
layers = 1
width = 16
heads = 2
context = 16
batch = 2
[[size]]
peers = 2
inner_steps = 4
seeds = [1]
[[data]]
name = "iid"
scenario = { task = { shards = { kind = "dealt" } } }
[[data]]
name = "by source"
scenario = { task = { shards = { kind = "iid" } } }
[[network]]
name = "home"
scenario.network = { latency_ms = 20.0, uplink_mbit = 20.0, downlink_mbit = 100.0 }
[[entrant]]
name = "bsp"
strategy = { preset = "bsp", inner = { optimizer = "adam-w", lr = 0.003 } }
[[entrant]]
name = "local-adam"
strategy = { preset = "local-adam", synchronization = { inner_steps = 2 } }
"#;

#[test]
fn strategies_are_compared_on_a_text_and_finished_runs_are_not_repeated() {
    let dir = prepared(SMALL);
    let dir = dir.path();
    std::fs::write(dir.join("trial.toml"), TRIAL).unwrap();
    let sim = ["sim", "language", "trial.toml", "--data", "text.txt"];
    let kept = ["--results", "runs.jsonl"];
    let said = success(dir, &[&sim[..], &kept, &["--split", "iid"]].concat());
    assert_has(&said, "2 peers, iid: 4 inner steps each, 16 samples");
    let results = || std::fs::read_to_string(dir.join("runs.jsonl")).unwrap();
    let first = results();
    assert_eq!(first.lines().count(), 2);
    let more = ["--markdown", "--penalties", "measured.toml"];
    let said = success(dir, &[&sim[..], &kept, &more].concat());
    assert!(said.contains("| local-adam | 2 |"), "{said}");
    assert!(said.contains("2 peers, by source"), "{said}");
    assert!(results().starts_with(&first) && results().lines().count() == 4);
    let measured = std::fs::read_to_string(dir.join("measured.toml")).unwrap();
    assert_eq!(measured.matches("[[row]]").count(), 4, "{measured}");
    let json = success(dir, &[&sim[..], &kept, &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let loss = |row: usize| json["rows"][row]["loss"]["mean"].as_f64().unwrap();
    assert!(
        loss(0) < 256.0_f64.ln() && loss(1) < 256.0_f64.ln(),
        "{json}"
    );
    assert_eq!(results().lines().count(), 4);
}

#[test]
fn a_comparison_on_a_text_that_cannot_be_made_is_refused_in_one_line() {
    let dir = prepared(SMALL);
    let dir = dir.path();
    std::fs::write(dir.join("trial.toml"), TRIAL).unwrap();
    let sim = ["sim", "language", "trial.toml"];
    for (more, expected) in [
        (&[][..], "--data: give a text file"),
        (&["--data", "none.txt"], "none.txt"),
        (
            &["--data", "text.txt", "--entrants", "bps"],
            "no entrant `bps`",
        ),
        (&["--data", "text.txt", "--peers", "5"], "--peers: no size"),
        (
            &["--data", "text.txt", "--split", "x"],
            "--split: no distribution",
        ),
        (
            &["--data", "text.txt", "--results", "text.txt"],
            "text.txt:1: is no result",
        ),
    ] {
        let line = failure(dir, &[&sim[..], more].concat());
        assert!(line.contains(expected), "{line}");
    }
}
