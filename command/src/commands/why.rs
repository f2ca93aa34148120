//! `murmurate why`: asks a running daemon to explain itself.

use crate::cli::WhyArgs;
use crate::commands::daemon_http::{self, Request};
use crate::out;
use anyhow::bail;
use murmurate_node::api::{Answer, Topic};
use murmurate_node::events::read_dir;
use std::path::Path;

pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<()> {
    let (dir, topic) = args.asked()?;
    let what = match topic {
        Topic::Round => "round",
        Topic::Contribution => "contribution",
        Topic::Slow => "slow",
        Topic::Accuracy => "accuracy",
    };
    let mut path = format!("/api/v1/why?what={what}");
    if let Some(round) = args.round {
        path.push_str(&format!("&round={round}"));
    }
    if let Some(peer) = &args.peer {
        if peer.is_empty() || !peer.chars().all(|c| c.is_ascii_hexdigit()) {
            bail!("--peer: `{peer}` is not the beginning of a daemon's id, such as 0123abcd");
        }
        path.push_str(&format!("&peer={peer}"));
    }
    let answer = match daemon_http::ask(&dir, Request::get(&path)) {
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
    out::with(|out| {
        for sentence in &answer.sentences {
            writeln!(out, "{sentence}")?;
        }
        writeln!(out, "{}", answer.action)
    })
}

/// What the log of a daemon that does not answer says last.
fn last_words(dir: &Path) -> String {
    let entries = read_dir(dir)
        .map(|(entries, _)| entries)
        .unwrap_or_default();
    let Some(last) = entries.last() else {
        return String::new();
    };
    let (round, kind) = (last.round, last.kind.name());
    format!(
        "; its log ends in round {round} with `{kind}` (`murmurate log {}`)",
        dir.display()
    )
}
