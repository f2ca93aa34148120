//! A file for a report of a problem: what doctor found, the configuration, the status and the end of
//! the event log, without secrets.

use super::finding::Report;
use super::home::SECRETS;
use super::subject::Subject;
use anyhow::{Context, bail};
use murmurate_node::store::write_private;
use serde_json::{Value, json};
use std::path::Path;

/// Lines of the event log that are taken along, the last ones.
const LOG_LINES: usize = 500;

/// Keys of the configuration whose values are secrets, or places of secrets.
const SECRET_KEYS: [&str; 5] = ["key", "token", "secret", "password", "invite"];

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

fn log(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    let entries = last
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or(Value::Null));
    entries.collect::<Vec<Value>>().into()
}

/// What stands in place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// How every invite begins.
const INVITE: &str = "murmurate-invite-";

/// Shorter words of a secret file are no secrets, and stand in many places.
const SECRET_MIN: usize = 16;

/// The text without the secrets of a daemon's directory, without the secrets in `more`, and without invites.
fn redacted(text: &str, dir: &Path, more: &[String]) -> String {
    let files = SECRETS.iter().map(|name| dir.join(name));
    let contents: Vec<String> = files
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    // The run's public key and the name of a run are in all reports. Everything long that is quoted or
    // stands alone in a line of a private file is taken for a secret.
    let words = contents
        .iter()
        .flat_map(|content| content.lines().filter(|line| !line.starts_with("run_key")))
        .flat_map(|line| line.split(|c: char| c.is_whitespace() || c == '"'));
    let mut clean = text.to_owned();
    for secret in words.chain(more.iter().map(String::as_str)) {
        if secret.len() >= SECRET_MIN {
            clean = clean.replace(secret, REDACTED);
        }
    }
    without_invites(&clean)
}

fn without_invites(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(INVITE) {
        let (before, invite) = rest.split_at(at);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let end = invite.find(|c| !plain(c)).unwrap_or(invite.len());
        clean.push_str(before);
        clean.push_str(REDACTED);
        rest = &invite[end..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_files_and_invites_are_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let (seed, secret, public) = ("1f".repeat(32), "2e".repeat(32), "3d".repeat(32));
        std::fs::write(dir.path().join("identity.key"), format!("{seed}\n")).unwrap();
        let card =
            format!("# note\nname = \"birds\"\nrun_key = \"{public}\"\nsecret = \"{secret}\"\n");
        std::fs::write(dir.path().join("membership.toml"), card).unwrap();
        let text = format!(
            "{seed} of birds {public}, {secret}; murmurate-invite-1.AbC_-9 end, my-own-password!"
        );
        let clean = redacted(&text, dir.path(), &["my-own-password!".to_owned()]);
        let expected =
            format!("[redacted] of birds {public}, [redacted]; [redacted] end, [redacted]");
        assert_eq!(clean, expected);
    }
}
