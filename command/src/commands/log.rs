//! `murmurate log`: prints the event logs of daemons, joined by cause, or writes them as a trace.

use crate::cli::LogArgs;
use crate::out;
use anyhow::{Context, bail};
use murmurate_node::events::{Entry, Skipped, chrome_trace, merge, read_dir};
use serde_json::Value;
use std::path::PathBuf;

/// Seconds of a day.
const DAY_S: u64 = 24 * 3600;

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<()> {
    let dirs = match args.dirs.is_empty() {
        true => vec![PathBuf::from(crate::cli::DEFAULT_DIR)],
        false => args.dirs.clone(),
    };
    if dirs.len() > 1 && !args.merge {
        bail!("several directories are given: add --merge to join their logs");
    }
    let mut logs = Vec::new();
    for dir in &dirs {
        let (entries, skipped) = read_dir(dir).with_context(|| {
            format!(
                "{} has no event log: give the directory of a daemon that has run",
                dir.display()
            )
        })?;
        tell_skipped(&dir.display().to_string(), skipped);
        logs.push(entries);
    }
    let mut entries = merge(logs);
    entries.retain(|entry| is_wanted(args, entry));
    if let Some(file) = &args.chrome {
        let trace = chrome_trace(&entries).to_string();
        std::fs::write(file, trace)
            .with_context(|| format!("--chrome: {} cannot be written", file.display()))?;
        out::tell(format_args!(
            "wrote {}: open it in ui.perfetto.dev or about:tracing",
            file.display()
        ));
        return Ok(());
    }
    out::with(|out| {
        for entry in &entries {
            match args.json {
                true => writeln!(out, "{}", serde_json::to_string(entry)?)?,
                false => writeln!(out, "{}", line(entry))?,
            }
        }
        Ok(())
    })
}

fn tell_skipped(dir: &str, skipped: Skipped) {
    if skipped.other_version > 0 {
        let count = skipped.other_version;
        out::tell(format_args!(
            "{dir}: {count} lines are of another version of the log and left out"
        ));
    }
    if skipped.unreadable > 0 {
        let count = skipped.unreadable;
        out::tell(format_args!(
            "{dir}: {count} lines are no entries (a crash may have cut one off) and left out"
        ));
    }
}

fn is_wanted(args: &LogArgs, entry: &Entry) -> bool {
    let round = args.round.is_none_or(|round| entry.round == round);
    let name = || entry.kind.name();
    round && (args.kind.is_empty() || args.kind.contains(&name()))
}

/// An entry for people.
fn line(entry: &Entry) -> String {
    let daemon: String = entry.daemon.chars().take(8).collect();
    let mut line = format!(
        "{} {daemon} round {} {}",
        utc(entry.time),
        entry.round,
        entry.kind.name()
    );
    let Ok(Value::Object(fields)) = serde_json::to_value(&entry.kind) else {
        return line;
    };
    for (key, value) in fields.iter().filter(|(key, _)| *key != "kind") {
        line.push_str(&format!(" {key}={}", words(value)));
    }
    line
}

/// A value for people: ids are short, numbers have few digits.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() == 64 => text.chars().take(8).collect(),
        Value::String(text) if text.contains(' ') => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(","),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => format!("{number:.3}"),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A Unix time as date and time of day, UTC.
///
/// **Source:** Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn utc(unix_s: f64) -> String {
    let millis = (unix_s * 1000.0).max(0.0) as u64;
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (days, of_day) = (seconds / DAY_S + 719_468, seconds % DAY_S);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0.0), "1970-01-01 00:00:00.000");
        assert_eq!(utc(951_782_400.5), "2000-02-29 00:00:00.500");
        assert_eq!(utc(1_767_225_599.999), "2025-12-31 23:59:59.999");
    }

    #[test]
    fn a_line_is_short() {
        let id = "ab".repeat(32);
        let text = format!(
            "{{\"v\":1,\"seq\":4,\"time\":1.5,\"daemon\":\"{id}\",\"round\":7,\"kind\":\"lied\",\
             \"peer\":\"{id}\",\"what\":\"two votes\",\"proven\":true}}"
        );
        let entry: Entry = serde_json::from_str(&text).unwrap();
        let expected = "1970-01-01 00:00:01.500 abababab round 7 lied peer=abababab proven=true \
                        what=\"two votes\"";
        assert_eq!(line(&entry), expected);
    }
}
