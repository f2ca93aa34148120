//! The commands that look at a daemon: `why` asks it to explain itself, `log` prints event logs, `top` shows it on
//! the terminal, `limit` shows or changes its limits on the sending rate.

use super::daemon_http;
use crate::cli::{INTERVAL_MAX_S, INTERVAL_MIN_S, LimitArgs, LogArgs, TopArgs, USUAL_DIR, WhyArgs};
use crate::exit::Ended;
use crate::out;
use anyhow::{Context, bail};
use murmurate_node::api::words::short;
use murmurate_node::api::{Answer, TOKEN_FILE, noted_address};
use murmurate_node::bulk::BulkLimits;
use murmurate_node::events::{Entry, LogEnd, Names, Skipped, chrome_trace, merge, read_dir, utc};
use murmurate_node::progress::bytes;
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_top::{Recording, Source, Still, Target};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn why(args: &WhyArgs) -> anyhow::Result<()> {
    let (dir, topic) = args.asked()?;
    let mut path = format!("/api/v1/why?what={}", topic.word());
    if let Some(round) = args.round {
        path.push_str(&format!("&round={round}"));
    }
    if let Some(peer) = &args.peer {
        if peer.is_empty() || !peer.chars().all(|c| c.is_ascii_hexdigit()) {
            let text =
                format!("--peer: `{peer}` is not the beginning of a daemon's id, such as 0123abcd");
            return Err(Ended::usage(text));
        }
        path.push_str(&format!("&peer={peer}"));
    }
    let answer = match daemon_http::get(&dir, &path) {
        Ok(answer) => answer,
        Err(error) => bail!("{error}{}", last_words(&dir)),
    };
    if !answer.ok {
        bail!("the daemon does not understand: {}", answer.content.trim());
    }
    if args.json {
        return out::line(answer.content);
    }
    let answer: Answer = serde_json::from_str(&answer.content)?;
    let swarm = daemon_http::swarm(&dir).unwrap_or_default();
    out::with(|out| {
        for said in answer.sentences.iter().chain([&answer.action]) {
            writeln!(out, "{}", with_names(said, swarm.names()))?;
        }
        Ok(())
    })
}

/// A text with the names of the daemons that have one, as the page shows it. Commands keep the ids.
fn with_names<'a>(text: &str, names: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    names.fold(text.to_owned(), |text, (id, name)| {
        let id = short(id);
        let text = text.replace(&format!("daemon {id}"), &format!("daemon {name}"));
        text.replace(&format!("Daemon {id}"), &format!("Daemon {name}"))
    })
}

/// What the log of a daemon that does not answer says last.
fn last_words(dir: &Path) -> String {
    let entries = read_dir(dir)
        .map(|(entries, _)| entries)
        .unwrap_or_default();
    let dir = dir.display();
    match LogEnd::of(&entries) {
        None => String::new(),
        Some(LogEnd::Left { round }) => {
            format!("; the last one left in order in round {round} (`murmurate log {dir}`)")
        }
        Some(LogEnd::Broken { round, kind }) => format!(
            "; its log ends in round {round} with `{kind}`: its process is stopped (kill -CONT goes on), or it was \
             killed, or its machine failed: then start it again in the same directory (`murmurate log {dir}`)"
        ),
    }
}

pub(crate) fn log(args: &LogArgs) -> anyhow::Result<()> {
    let dirs = if args.dirs.is_empty() {
        vec![PathBuf::from(USUAL_DIR)]
    } else {
        args.dirs.clone()
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
            if args.json {
                writeln!(out, "{}", serde_json::to_string(entry)?)?
            } else {
                writeln!(out, "{}", words(entry, &names))?
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
    let mut kinds = args.kind.iter();
    round && (args.kind.is_empty() || kinds.any(|kind| kind == entry.kind.name()))
}

/// An entry for people.
fn words(entry: &Entry, names: &Names) -> String {
    let call = |id: &str| names.call(id);
    format!(
        "{} {} round {} {}",
        utc(entry.time),
        call(&entry.daemon),
        entry.round,
        entry.kind.words(&call)
    )
}

/// Columns and rows of a frame that is printed where there is no terminal.
const FRAME: (u16, u16) = (80, 24);

pub(crate) fn top(args: &TopArgs) -> anyhow::Result<()> {
    if !(INTERVAL_MIN_S..=INTERVAL_MAX_S).contains(&args.interval) {
        let text = format!("--interval: give {INTERVAL_MIN_S} to {INTERVAL_MAX_S} seconds");
        return Err(Ended::usage(text));
    }
    let source = if args.replay.is_empty() {
        let daemon = args.daemon.as_deref().unwrap_or(USUAL_DIR);
        Source::Live(daemon.parse::<Target>()?)
    } else {
        let recording = Recording::read(&args.replay)?;
        if let Some(left_out) = recording.left_out() {
            out::tell(left_out);
        }
        Source::Recorded(recording)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if args.json {
        let still = runtime.block_on(Still::of(source))?;
        return out::json(&still.picture);
    }
    match out::size().filter(|_| !args.once) {
        Some(_) => {
            let interval = Duration::from_secs_f64(args.interval);
            Ok(runtime.block_on(murmurate_top::run(source, interval))?)
        }
        None => {
            let still = runtime.block_on(Still::of(source))?;
            let size = out::size().filter(|(columns, rows)| *columns > 0 && *rows > 0);
            out::text(still.text(size.unwrap_or(FRAME)))
        }
    }
}

pub(crate) fn limit(args: &LimitArgs) -> anyhow::Result<()> {
    let mut change = Map::new();
    let rates = [
        ("max_rate", &args.max_rate),
        ("max_rate_per_peer", &args.max_rate_per_peer),
    ];
    for (key, rate) in rates {
        if let Some(rate) = rate {
            change.insert(key.to_owned(), value(rate));
        }
    }
    let body = (!change.is_empty()).then(|| Value::Object(change).to_string());
    let answer = exchange(&args.dir, body.as_deref())?;
    if args.json {
        return out::text(answer);
    }
    let limits: Value = serde_json::from_str(&answer)?;
    // A chunk of a state must come within this time.
    let least = STATE_CHUNK_BYTES as u64 / BulkLimits::default().progress_wait.as_secs();
    let of = |key: &str| match limits[key].as_u64() {
        None => "no limit".to_owned(),
        Some(rate) if rate < least => {
            let (rate, least) = (bytes(rate), bytes(least));
            format!("{rate} a second, at which no newcomer gets the state here: it needs {least}")
        }
        Some(rate) => format!("{} a second", bytes(rate)),
    };
    out::line(format_args!(
        "all peers together: {}\neach peer: {}",
        of("max_rate"),
        of("max_rate_per_peer")
    ))
}

fn value(rate: &str) -> Value {
    match rate {
        "none" => Value::Null,
        rate => rate
            .parse::<u64>()
            .map_or_else(|_| Value::from(rate), Value::from),
    }
}

/// Sends the change, if there is one, and returns the page's content.
fn exchange(dir: &Path, body: Option<&str>) -> anyhow::Result<String> {
    let answer = match body {
        None => daemon_http::get(dir, "/limits")?,
        Some(body) => {
            // A daemon that does not run is told before a token that cannot be read.
            noted_address(dir)?;
            let file = dir.join(TOKEN_FILE);
            let token = std::fs::read_to_string(&file).with_context(|| {
                format!(
                    "{} cannot be read: ask as the daemon's user",
                    file.display()
                )
            })?;
            let token = format!("Bearer {}", token.trim());
            let head: [(&str, &[u8]); 2] = [
                ("authorization", token.as_bytes()),
                ("content-type", b"application/json"),
            ];
            daemon_http::send(dir, "PUT", "/limits", &head, body)?
        }
    };
    if !answer.ok {
        bail!("the daemon refused the change: {}", answer.content.trim());
    }
    Ok(answer.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_have_their_names_and_commands_the_ids() {
        let id = "cafe0123".repeat(8);
        let text =
            "Rounds go on without daemon cafe0123 (linked); `murmurate revoke cafe0123` says so.";
        let expected =
            "Rounds go on without daemon gpu (linked); `murmurate revoke cafe0123` says so.";
        assert_eq!(
            with_names(text, [(id.as_str(), "gpu")].into_iter()),
            expected
        );
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
        assert_eq!(words(&entry, &Names::default()), expected);
    }
}
