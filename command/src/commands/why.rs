//! `murmurate why`: asks a running daemon to explain itself.

use crate::cli::{TOPICS, WhyArgs};
use crate::commands::daemon_http::{self, Request};
use crate::exit::Ended;
use crate::out;
use anyhow::bail;
use murmurate_node::api::Answer;
use murmurate_node::api::words::short;
use murmurate_node::events::{LogEnd, read_dir};
use std::path::Path;

pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<()> {
    let (dir, topic) = args.asked()?;
    let what = TOPICS.into_iter().find(|(_, known)| *known == topic);
    let what = what.map_or("round", |(word, _)| word);
    let mut path = format!("/api/v1/why?what={what}");
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
            "; its log ends in round {round} with `{kind}`: it was killed or stopped, or its machine failed; \
             start it again in the same directory (`murmurate log {dir}`)"
        ),
    }
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
}
