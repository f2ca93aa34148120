//! Progress of the daemons: a view or a live line for each on a terminal, plain lines elsewhere. Lines are on
//! stderr, because stdout is for the results.

use crate::goal::Target;
use crate::progress::{Progress, columns, duration, is_live, optional, tell};
use crate::report::NodeReport;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;

/// Shortest time between two plain lines of one daemon.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Columns of `daemon 12 ` at the beginning of a line.
const PREFIX_WIDTH: usize = 10;

/// Shows the progress of the daemons.
#[derive(Debug)]
pub(super) struct Display {
    form: Form,
    nodes: usize,
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
    /// A view, until the user closes it.
    View(LocalView),
    Quiet,
}

impl Display {
    /// A display for `nodes` daemons, whose run also ends at `target`.
    pub(super) fn new(nodes: usize, target: Target) -> Self {
        Self {
            form: Form::lines(nodes),
            nodes,
            target,
        }
    }

    /// As [`Display::new`], with messages alone where there is no terminal: they tell a story.
    pub(super) fn sentences(nodes: usize, target: Target) -> Self {
        let lines = Self::new(nodes, target);
        match lines.form {
            Form::Plain { .. } => Self {
                form: Form::plain(0),
                ..lines
            },
            _ => lines,
        }
    }

    /// As [`Display::new`], with a view in place of the lines while it is open.
    pub(super) fn view(view: LocalView, nodes: usize, target: Target) -> Self {
        Self {
            form: Form::View(view),
            nodes,
            target,
        }
    }

    pub(super) fn quiet() -> Self {
        Self {
            form: Form::Quiet,
            nodes: 0,
            target: Target::default(),
        }
    }

    pub(super) fn progress(&mut self, place: usize, progress: &Progress) {
        self.leave_closed_view();
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
            Form::View(_) | Form::Quiet => {}
        }
    }

    /// Goes on with lines if the user has closed the view.
    fn leave_closed_view(&mut self) {
        if matches!(&self.form, Form::View(view) if view.is_closed()) {
            self.form = Form::lines(self.nodes);
        }
    }

    pub(super) fn living(&mut self, daemons: impl Iterator<Item = LivingDaemon>) {
        if let Form::View(view) = &mut self.form {
            view.living(daemons);
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

    /// Shows the result of a daemon in its line: rounds, time, loss and accuracy.
    pub(super) fn left(&self, place: usize, report: &NodeReport) {
        let without = match report.no_result.count() {
            0 => String::new(),
            count => format!(", {count} without result,"),
        };
        let how = format!(
            "left after {} rounds{without} in {}  loss {}  accuracy {}",
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
            Form::View(view) if !view.is_closed() => view.say(text),
            Form::Plain { .. } | Form::View(_) => tell(text),
            Form::Quiet => tracing::debug!("{text}"),
        }
    }

    /// Keeps the last state of every line on the terminal, or closes the view. Later messages are plain
    /// lines.
    pub(super) fn finish(&mut self) {
        let after = match self.form {
            Form::Quiet => Form::Quiet,
            _ => Form::plain(self.nodes),
        };
        match std::mem::replace(&mut self.form, after) {
            Form::Live { lines, .. } => lines.iter().for_each(ProgressBar::abandon),
            Form::View(view) => view.close(),
            Form::Plain { .. } | Form::Quiet => {}
        }
    }
}

impl Form {
    fn lines(nodes: usize) -> Self {
        if is_live() {
            Self::live(nodes)
        } else {
            Self::plain(nodes)
        }
    }

    fn plain(nodes: usize) -> Self {
        Self::Plain {
            last: vec![None; nodes],
        }
    }

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

/// How long the view may take to give the terminal back.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// A daemon of the swarm that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingDaemon {
    /// Its number, from zero.
    pub index: usize,
    /// Its id, hexadecimal.
    pub peer: String,
    /// The address of its HTTP server.
    pub http: String,
}

/// What a view is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewNews {
    /// A message that would be a line of its own.
    Said(String),
    /// The daemons that live now, by number.
    Living(Vec<LivingDaemon>),
}

/// The swarm's end of a view.
#[derive(Debug)]
pub struct LocalView {
    news: Sender<ViewNews>,
    closed: Receiver<()>,
    living: Vec<LivingDaemon>,
}

impl LocalView {
    /// A view that takes news. It drops the sender of `closed` when the terminal is free again.
    pub fn new(news: Sender<ViewNews>, closed: Receiver<()>) -> Self {
        Self {
            news,
            closed,
            living: Vec::new(),
        }
    }

    fn is_closed(&self) -> bool {
        self.news.is_closed()
    }

    /// Tells a message. A view that is too busy misses it.
    pub(super) fn say(&self, text: &str) {
        let _ = self.news.try_send(ViewNews::Said(text.to_owned()));
    }

    /// Tells which daemons live, if that has changed.
    pub(super) fn living(&mut self, daemons: impl Iterator<Item = LivingDaemon>) {
        let daemons: Vec<LivingDaemon> = daemons.collect();
        if daemons != self.living {
            let told = self.news.try_send(ViewNews::Living(daemons.clone()));
            // A view that is too busy is told again.
            if told.is_ok() {
                self.living = daemons;
            }
        }
    }

    /// Ends it, and waits until the terminal is free.
    pub(super) fn close(self) {
        drop(self.news);
        let _ = self.closed.recv_timeout(CLOSE_WAIT);
    }
}
