//! Progress of the daemons: a live line for each on a terminal, plain lines elsewhere. All on
//! stderr, because stdout is for the results.

use crate::progress::{Progress, is_live, tell};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Shortest time between two plain lines of one daemon.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Shows the progress of the daemons.
#[derive(Debug)]
pub(super) enum Display {
    Live {
        all: MultiProgress,
        lines: Vec<ProgressBar>,
    },
    Plain {
        last: Vec<Option<Instant>>,
    },
    Quiet,
}

impl Display {
    /// A display for `nodes` daemons.
    pub(super) fn new(nodes: usize) -> Self {
        if !is_live() {
            return Self::Plain {
                last: vec![None; nodes],
            };
        }
        let all = MultiProgress::new();
        let lines = (0..nodes)
            .map(|index| {
                let line = all.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{prefix} {msg}") {
                    line.set_style(style);
                }
                line.set_prefix(format!("daemon {index:>2}"));
                line
            })
            .collect();
        Self::Live { all, lines }
    }

    /// A display that shows errors only.
    pub(super) fn quiet() -> Self {
        Self::Quiet
    }

    /// Shows the progress of one daemon.
    pub(super) fn progress(&mut self, place: usize, progress: &Progress) {
        match self {
            Self::Live { lines, .. } => {
                if let Some(line) = lines.get(place) {
                    line.set_message(progress.describe());
                }
            }
            Self::Plain { last } => {
                let Some(last) = last.get_mut(place) else {
                    return;
                };
                if last.is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL) {
                    *last = Some(Instant::now());
                    tell(format_args!("daemon {place:>2} {}", progress.describe()));
                }
            }
            Self::Quiet => {}
        }
    }

    /// Prints a message on a line of its own.
    pub(super) fn say(&self, text: &str) {
        match self {
            Self::Live { all, .. } => all.suspend(|| tell(text)),
            Self::Plain { .. } => tell(text),
            Self::Quiet => tracing::debug!("{text}"),
        }
    }

    /// Keeps the last state of every line on the terminal.
    pub(super) fn finish(&self) {
        if let Self::Live { lines, .. } = self {
            lines.iter().for_each(ProgressBar::abandon);
        }
    }
}
