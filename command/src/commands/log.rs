//! `murmurate log`: prints the event logs of daemons, joined by cause, or writes them as a trace.

use crate::cli::LogArgs;
use crate::exit::Ended;
use crate::out;
use anyhow::Context;
use murmurate_node::events::{Entry, Names, Skipped, chrome_trace, merge, read_dir, utc};
use std::path::PathBuf;

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<()> {
    let dirs = match args.dirs.is_empty() {
        true => vec![PathBuf::from(crate::cli::DEFAULT_DIR)],
        false => args.dirs.clone(),
    };
    if dirs.len() > 1 && !args.merge {
        let text = "several directories are given: add --merge to join their logs";
        return Err(Ended::usage(text));
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
    let names = Names::of(&entries);
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
                false => writeln!(out, "{}", line(entry, &names))?,
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
fn line(entry: &Entry, names: &Names) -> String {
    let call = |id: &str| names.call(id);
    format!(
        "{} {} round {} {}",
        utc(entry.time),
        call(&entry.daemon),
        entry.round,
        entry.words(&call)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(line(&entry, &Names::default()), expected);
    }
}
