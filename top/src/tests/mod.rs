//! Tests of the whole view: frames of recorded data, and daemons that answer badly or not at all.

mod answers;
mod frames;

use crate::picture::{Answers, Picture};
use murmurate_node::events::read_file;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

/// A file of the tests.
fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path)
}

/// A recorded answer of a daemon, as text.
fn recorded(name: &str) -> String {
    std::fs::read_to_string(file("data").join(name)).unwrap()
}

fn parsed<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&recorded(name)).unwrap()
}

/// What one of five daemons answered while its round waited for one that was stopped, and after another one
/// was killed.
fn answers() -> Answers {
    Answers {
        swarm: parsed("swarm.json"),
        history: parsed("history.json"),
        contributions: parsed("contributions.json"),
        mine: parsed("mine.json"),
        slow: parsed("slow.json"),
    }
}

/// The same as a picture, with the events until then.
fn picture() -> Picture {
    let answers = answers();
    let now = answers.swarm.unix_s;
    let (entries, skipped) = read_file(&file("data/events.jsonl")).unwrap();
    assert_eq!(skipped, Default::default());
    let mut picture = Picture::default();
    picture.answered(answers, now);
    picture.happened(entries.into_iter().filter(|entry| entry.time <= now));
    picture
}

/// Where a value lacks something that another one has. Fields that only the value has do not count: an older
/// daemon does not send them.
fn lost(value: &Value, whole: &Value) -> Option<String> {
    match (value, whole) {
        (Value::Object(value), Value::Object(whole)) => whole.iter().find_map(|(key, whole)| {
            let lost = lost(value.get(key).unwrap_or(&Value::Null), whole)?;
            Some(format!("{key}.{lost}"))
        }),
        (Value::Array(value), Value::Array(whole)) if value.len() == whole.len() => value
            .iter()
            .zip(whole)
            .find_map(|(value, whole)| lost(value, whole)),
        (value, whole) => (value != whole).then(|| format!(" {value} is not {whole}")),
    }
}

#[test]
fn what_a_daemon_answers_is_read_without_loss() {
    let all = answers();
    for (name, read) in [
        ("swarm.json", serde_json::to_value(all.swarm)),
        ("history.json", serde_json::to_value(all.history)),
        (
            "contributions.json",
            serde_json::to_value(all.contributions),
        ),
        ("mine.json", serde_json::to_value(all.mine)),
    ] {
        assert_eq!(lost(&read.unwrap(), &parsed(name)), None, "{name}");
    }
}
