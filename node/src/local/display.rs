//! One live line per daemon on a terminal, plain lines elsewhere. Always on stderr: stdout belongs
//! to the results.

use crate::progress::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Least time between two plain lines of one daemon.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Shows the daemons.
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
    /// For this number of daemons.
    pub(super) fn new(nodes: usize) -> Self {
        if !std::io::stderr().is_terminal() {
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

    /// Shows nothing but trouble.
    pub(super) fn quiet() -> Self {
        Self::Quiet
    }

    /// A daemon got on.
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
                    eprintln!("daemon {place:>2} {}", progress.describe());
                }
            }
            Self::Quiet => {}
        }
    }

    /// Something worth a line of its own.
    pub(super) fn say(&self, text: &str) {
        match self {
            Self::Live { all, .. } => all.suspend(|| eprintln!("{text}")),
            Self::Plain { .. } => eprintln!("{text}"),
            Self::Quiet => tracing::debug!("{text}"),
        }
    }

    /// Leaves the last state of every line standing.
    pub(super) fn finish(&self) {
        if let Self::Live { lines, .. } = self {
            lines.iter().for_each(ProgressBar::abandon);
        }
    }
}
