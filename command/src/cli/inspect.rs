//! Arguments of the commands that look at a daemon: why, log, top, limit, doctor, explain.

use super::membership::USUAL_DIR;
use super::offered::{self, offered};
use crate::exit::Ended;
use clap::Args;
use clap::builder::PossibleValuesParser;
use murmurate_node::api::Topic;
use murmurate_node::events::KINDS;
use std::path::PathBuf;

fn topics() -> Vec<&'static str> {
    Topic::ALL.map(Topic::word).to_vec()
}

/// Asks a running daemon why its round does not end, why a contribution did not count, what takes the
/// time, or why the accuracy fell.
///
/// The answer ends in one action, or in "Nothing to do."
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The running daemon's directory [default: murmurate-state], and what to explain: round (the
    /// default), contribution, slow or accuracy
    #[arg(
        value_name = "DIR] [round|contribution|slow|accuracy",
        num_args = 0..=2,
        value_parser = offered(str::parse::<String>, topics),
        hide_possible_values = true
    )]
    words: Vec<String>,
    /// About this round instead of the present or the last one
    #[arg(long, value_name = "N")]
    pub(crate) round: Option<u64>,
    /// About this peer: the beginning of its id
    #[arg(long, value_name = "ID")]
    pub(crate) peer: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl WhyArgs {
    /// The directory and the topic.
    pub(crate) fn asked(&self) -> anyhow::Result<(PathBuf, Topic)> {
        let default = || PathBuf::from(USUAL_DIR);
        match self.words.as_slice() {
            [] => Ok((default(), Topic::Round)),
            [one] => Ok(match Topic::of_word(one) {
                Some(topic) => (default(), topic),
                None => (PathBuf::from(one), Topic::Round),
            }),
            [dir, word, ..] => match Topic::of_word(word) {
                Some(topic) => Ok((PathBuf::from(dir), topic)),
                None => Err(Ended::usage(format!(
                    "`{word}` cannot be explained: ask for round, contribution, slow or accuracy"
                ))),
            },
        }
    }
}

/// Prints the event log of a daemon, or those of several joined by cause and time.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Directories of daemons, running or not [default: murmurate-state]
    #[arg(value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Join the logs of several daemons, whose clocks may differ
    #[arg(long)]
    pub(crate) merge: bool,
    /// Only events of this kind, such as peer_down; docs/events.md lists all; may be given several times
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS), hide_possible_values = true)]
    pub(crate) kind: Vec<String>,
    /// Only events of this round
    #[arg(long, value_name = "N")]
    pub(crate) round: Option<u64>,
    /// Print the entries as they are, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a trace for Perfetto or Chrome's about:tracing
    #[arg(long, value_name = "FILE")]
    pub(crate) chrome: Option<PathBuf>,
}

/// The longest pause between two questions, seconds.
pub(crate) const INTERVAL_MAX_S: f64 = 3600.0;

/// The shortest pause between two questions, seconds: each one takes a little of the daemon's time.
pub(crate) const INTERVAL_MIN_S: f64 = 0.1;

/// Shows a daemon and its swarm on the terminal: what the round does or waits for, the peers, loss, accuracy, the
/// time of each round, events.
///
/// Keys: s sorts by the next column, r reverses, / filters, the arrows select a peer, p pauses, ? shows all
/// keys and signs, q quits.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The running daemon's directory, or the address of its page [default: murmurate-state]
    #[arg(value_name = "DIR|URL", conflicts_with = "replay")]
    pub(crate) daemon: Option<String>,
    /// Print one frame as text and end; so does an output that is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print all that is known as one JSON object and end
    #[arg(long)]
    pub(crate) json: bool,
    /// Show a recorded run: the event log of a daemon (events.jsonl, or its directory), and after it those
    /// of others, whose rounds are shown too
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) replay: Vec<PathBuf>,
    /// Seconds between two questions to the daemon
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) interval: f64,
}

/// Changes last until the daemon ends; its configuration is not changed.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// The running daemon's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// For all peers together: "10 MB/s", 80mbit, bytes per second, or none
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// For each peer
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate_per_peer: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Checks what a daemon needs before it starts, or while it runs: configuration, directory, membership,
/// data, memory, disk, ports, and whether the daemons to join answer.
///
/// Nothing is changed. The exit code is 1 if a check failed.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The daemon's directory [default: that of the configuration]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Configuration file of the daemon [default: node.toml in DIR, or that of DIR's last checkpoint]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of a daemon to join; may be given several times
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) join: Vec<String>,
    /// File with the invite with which the daemon is to enter, or the line itself
    #[arg(long, value_name = "FILE")]
    pub(crate) invite: Option<String>,
    /// The run is open, as for `murmurate run --open`
    #[arg(long)]
    pub(crate) open: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write all of this, the configuration, the status and the end of the event log into a file for a
    /// report of a problem; keys, tokens and invites are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A code such as M021 [default: list all]
    #[arg(value_name = "CODE", value_parser = offered(str::parse::<String>, offered::all_codes), hide_possible_values = true)]
    pub(crate) code: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_may_be_left_out() {
        let asked = |words: &[&str]| {
            let args = WhyArgs {
                words: words.iter().map(|&word| word.to_owned()).collect(),
                round: None,
                peer: None,
                json: false,
            };
            args.asked()
                .map(|(dir, topic)| (dir.display().to_string(), topic))
        };
        let default = || USUAL_DIR.to_owned();
        assert_eq!(asked(&[]).unwrap(), (default(), Topic::Round));
        assert_eq!(asked(&["slow"]).unwrap(), (default(), Topic::Slow));
        assert_eq!(
            asked(&["node-0"]).unwrap(),
            ("node-0".to_owned(), Topic::Round)
        );
        let two = asked(&["node-0", "contribution"]).unwrap();
        assert_eq!(two, ("node-0".to_owned(), Topic::Contribution));
        assert!(asked(&["node-0", "luck"]).is_err());
    }
}
