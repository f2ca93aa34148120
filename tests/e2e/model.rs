//! `murmurate export` writes a model that `murmurate eval` measures.

use murmurate_tests::{Daemon, Settings, success, turn};
use serde_json::Value;

#[test]
fn an_exported_model_is_the_one_that_was_trained() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        rounds: 12,
        start_with: 2,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &dir.path().join("a"), &[]);
    let (_, address, _) = first.listening();
    let second = Daemon::start(
        &turn,
        &settings.shard(1),
        &dir.path().join("b"),
        &[&address],
    );
    let (first, second) = (first.end(), second.end());
    let (report, other) = (first.polite(), second.polite());
    assert!(report.test_accuracy > Some(0.5), "{report:?}");
    assert_eq!(report.digest, other.digest);

    for home in ["a", "b"] {
        let model = format!("{home}.safetensors");
        success(dir.path(), &["export", home, "--to", &model]);
        let said = success(
            dir.path(),
            &["eval", "--model", &model, "--data", "bundled", "--json"],
        );
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(found["test_accuracy"].as_f64(), report.test_accuracy);
        assert_eq!(found["test_loss"].as_f64(), report.test_loss);
    }
    let [a, b] = ["a", "b"].map(|h| {
        let bytes = std::fs::read(dir.path().join(format!("{h}.safetensors"))).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..].to_vec()
    });
    assert_eq!(a, b, "the tensors, to the bit");
}
