//! Arguments of `murmurate why` and `murmurate log`.

use super::offered::offered;
use crate::exit::Ended;
use clap::Args;
use clap::builder::PossibleValuesParser;
use murmurate_node::api::Topic;
use murmurate_node::events::KINDS;
use std::path::PathBuf;

/// The daemon's directory where no other is given.
pub(crate) const DEFAULT_DIR: &str = "murmurate-state";

/// What can be explained.
pub(crate) const TOPICS: [(&str, Topic); 4] = [
    ("round", Topic::Round),
    ("contribution", Topic::Contribution),
    ("slow", Topic::Slow),
    ("accuracy", Topic::Accuracy),
];

fn topics() -> Vec<&'static str> {
    TOPICS.map(|(word, _)| word).to_vec()
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
        let default = || PathBuf::from(DEFAULT_DIR);
        match self.words.as_slice() {
            [] => Ok((default(), Topic::Round)),
            [one] => Ok(match topic(one) {
                Some(topic) => (default(), topic),
                None => (PathBuf::from(one), Topic::Round),
            }),
            [dir, word, ..] => match topic(word) {
                Some(topic) => Ok((PathBuf::from(dir), topic)),
                None => Err(Ended::usage(format!(
                    "`{word}` cannot be explained: ask for round, contribution, slow or accuracy"
                ))),
            },
        }
    }
}

fn topic(word: &str) -> Option<Topic> {
    let found = TOPICS.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, topic)| topic)
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
        let default = || DEFAULT_DIR.to_owned();
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
