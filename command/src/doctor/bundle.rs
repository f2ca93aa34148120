//! A file for a report of a problem: what doctor found, the configuration, the status and the end of
//! the event log, without secrets.

use super::redact::{REDACTED, redacted};
use super::report::Report;
use super::subject::Subject;
use anyhow::{Context, bail};
use murmurate_node::store::write_private;
use serde_json::{Value, json};
use std::path::Path;

/// Lines of the event log that are taken along, the last ones.
const LOG_LINES: usize = 500;

/// Keys of the configuration whose values are secrets, or places of secrets.
const SECRET_KEYS: [&str; 5] = ["key", "token", "secret", "password", "invite"];

/// Writes the file.
pub(super) fn write(subject: &Subject, report: &Report, file: &Path) -> anyhow::Result<()> {
    if file.exists() {
        bail!(
            "--bundle: {} exists already; give another name",
            file.display()
        );
    }
    let (config, secrets) = configuration(subject);
    let text = serde_json::to_string_pretty(&json!({
        "written_unix_s": subject.now_s,
        "system": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "threads": std::thread::available_parallelism().map_or(0, |count| count.get()),
        },
        "doctor": report,
        "configuration": config,
        "status": subject.status(),
        "files": files(&subject.dir),
        "log": log(&subject.dir),
    }))?;
    let text = redacted(&text, &subject.dir, &secrets);
    write_private(file, format!("{text}\n").as_bytes())
        .with_context(|| format!("--bundle: {} cannot be written", file.display()))
}

/// The effective configuration without its secrets, and these.
fn configuration(subject: &Subject) -> (Value, Vec<String>) {
    let effective = subject
        .config
        .as_ref()
        .map(|config| config.effective.as_str());
    let table: toml::Table = toml::from_str(effective.unwrap_or_default()).unwrap_or_default();
    let mut value = serde_json::to_value(table).unwrap_or_default();
    let mut secrets = Vec::new();
    hide(&mut value, &mut secrets);
    (value, secrets)
}

fn hide(value: &mut Value, secrets: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, field) in fields {
        match field {
            Value::String(text) if SECRET_KEYS.contains(&key.as_str()) => {
                secrets.push(std::mem::replace(text, REDACTED.to_owned()));
            }
            field => hide(field, secrets),
        }
    }
}

/// The names, sizes and permissions of the daemon's files, never their contents.
fn files(dir: &Path) -> Value {
    use std::os::unix::fs::PermissionsExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<Value> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some(json!({
                "name": entry.file_name().to_string_lossy(),
                "bytes": metadata.len(),
                "mode": format!("{:o}", metadata.permissions().mode() & 0o777),
            }))
        })
        .collect();
    all.sort_by_key(|file| file["name"].as_str().unwrap_or_default().to_owned());
    all.into()
}

/// The end of the event log.
fn log(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    let entries = last
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or(Value::Null));
    entries.collect::<Vec<Value>>().into()
}
