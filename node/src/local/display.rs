//! Progress of the daemons: a live line for each on a terminal, plain lines elsewhere. All on
//! stderr, because stdout is for the results.

use crate::goal::Target;
use crate::progress::{Progress, columns, duration, is_live, optional, tell};
use crate::report::NodeReport;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Shortest time between two plain lines of one daemon.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Columns of `daemon 12 ` at the beginning of a line.
const PREFIX_WIDTH: usize = 10;

/// Shows the progress of the daemons.
#[derive(Debug)]
pub(super) struct Display {
    form: Form,
    target: Target,
}

#[derive(Debug)]
enum Form {
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
    /// A display for `nodes` daemons, whose run also ends at `target`.
    pub(super) fn new(nodes: usize, target: Target) -> Self {
        let form = match is_live() {
            true => Form::live(nodes),
            false => Form::Plain {
                last: vec![None; nodes],
            },
        };
        Self { form, target }
    }

    /// A display that shows errors only.
    pub(super) fn quiet() -> Self {
        Self {
            form: Form::Quiet,
            target: Target::default(),
        }
    }

    /// Shows the progress of one daemon.
    pub(super) fn progress(&mut self, place: usize, progress: &Progress) {
        let target = self.target;
        match &mut self.form {
            Form::Live { lines, .. } => {
                if let Some(line) = lines.get(place) {
                    let width = columns().saturating_sub(PREFIX_WIDTH);
                    line.set_message(progress.describe(target, width));
                }
            }
            Form::Plain { last } => {
                let Some(last) = last.get_mut(place) else {
                    return;
                };
                if last.is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL) {
                    *last = Some(Instant::now());
                    let words = progress.describe(target, usize::MAX);
                    tell(format_args!("daemon {place:>2} {words}"));
                }
            }
            Form::Quiet => {}
        }
    }

    /// Shows in the line of a daemon that it no longer trains. Its last speed and time left would be
    /// wrong from now on.
    pub(super) fn ended(&self, place: usize, how: &str) {
        if let Form::Live { lines, .. } = &self.form
            && let Some(line) = lines.get(place)
        {
            line.set_message(how.to_owned());
        }
    }

    /// Shows in the line of a daemon what it has achieved.
    pub(super) fn left(&self, place: usize, report: &NodeReport) {
        let how = format!(
            "left after {} rounds in {}  loss {}  accuracy {}",
            report.rounds,
            duration(report.wall_s),
            optional(report.test_loss),
            optional(report.test_accuracy)
        );
        self.ended(place, &how);
    }

    /// Prints a message on a line of its own.
    pub(super) fn say(&self, text: &str) {
        match &self.form {
            Form::Live { all, .. } => all.suspend(|| tell(text)),
            Form::Plain { .. } => tell(text),
            Form::Quiet => tracing::debug!("{text}"),
        }
    }

    /// Keeps the last state of every line on the terminal.
    pub(super) fn finish(&self) {
        if let Form::Live { lines, .. } = &self.form {
            lines.iter().for_each(ProgressBar::abandon);
        }
    }
}

impl Form {
    fn live(nodes: usize) -> Self {
        let all = MultiProgress::new();
        let lines = (0..nodes)
            .map(|index| {
                let line = all.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_msg}") {
                    line.set_style(style);
                }
                line.set_prefix(format!("daemon {index:>2}"));
                line
            })
            .collect();
        Self::Live { all, lines }
    }
}
