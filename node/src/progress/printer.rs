//! Prints progress, messages and the final report, as far as the terminal allows.

use super::line::{Line, Progress, bytes, duration, optional};
use crate::api::Status;
use crate::faults::Fault;
use crate::goal::Target;
use crate::report::NodeReport;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use murmurate_protocol::Digest;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shortest time between two lines of progress for a program.
const JSON_INTERVAL: Duration = Duration::from_millis(200);

/// Shortest time between two plain lines of progress.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// The columns of a terminal that does not say how many it has.
const COLUMNS_UNKNOWN: usize = 80;

/// Columns of the spinner and the space after it.
const SPINNER_WIDTH: usize = 2;

/// The form of a daemon's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogMode {
    /// A live line on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// Plain lines.
    Plain,
    /// JSON lines on stdout.
    Json,
    /// The final report only.
    Quiet,
}

/// Prints to stdout. If the reader has gone, printing stops and training continues.
#[derive(Debug)]
pub(crate) struct Printer {
    form: Form,
    last: Option<Instant>,
    last_evaluation: Option<u64>,
    last_phase: String,
    told: Vec<String>,
    /// The goal at which the run ends before its last round.
    target: Target,
}

#[derive(Debug)]
enum Form {
    Live(ProgressBar),
    Plain,
    Json,
    Quiet,
}

impl Printer {
    pub(crate) fn new(mode: LogMode) -> Self {
        let form = match mode {
            LogMode::Json => Form::Json,
            LogMode::Quiet => Form::Quiet,
            LogMode::Auto if is_live() => Form::Live(live_line()),
            LogMode::Auto | LogMode::Plain => Form::Plain,
        };
        Self {
            form,
            last: None,
            last_evaluation: None,
            last_phase: String::new(),
            told: Vec::new(),
            target: Target::default(),
        }
    }

    /// The printer of a run that also ends at a goal.
    #[must_use]
    pub(crate) fn until(self, target: Target) -> Self {
        Self { target, ..self }
    }

    /// Prints the addresses at which others can join. A program is told all of them each time,
    /// people only those that are new. In an `open` run an address is all that others need.
    pub(crate) fn listening(
        &mut self,
        peer: &str,
        addresses: &[String],
        http: Option<String>,
        open: Option<&str>,
    ) {
        if let Form::Json = self.form {
            let addresses = addresses.to_vec();
            json(&Line::Listening {
                peer: peer.to_owned(),
                addresses,
                http,
            });
            return;
        }
        if self.told.is_empty() {
            self.say(&format!("daemon {peer}"));
            if let Some(http) = http {
                self.say(&format!(
                    "page at http://{http}/, with /status and /metrics"
                ));
            }
        }
        for address in addresses {
            if self.told.contains(address) {
                continue;
            }
            match open {
                // The name of an open run is what lets a daemon in.
                Some(name) => self.say(&format!(
                    "join with: murmurate run --open --name {name} --join {address}"
                )),
                None => self.say(&format!("listening on {address}")),
            }
            self.told.push(address.clone());
        }
    }

    /// Prints progress, unless the last line is too recent. At the end of the run, and in JSON
    /// after a new evaluation, it always prints. May be called at any rate.
    pub(crate) fn progress(&mut self, status: &Status) {
        let interval = match self.form {
            Form::Plain => PLAIN_INTERVAL,
            Form::Live(_) | Form::Json | Form::Quiet => JSON_INTERVAL,
        };
        let evaluation = status.evaluation.as_ref().map(|e| e.round);
        let ends = status.phase == "finished" && self.last_phase != status.phase;
        let news = ends || matches!(self.form, Form::Json) && evaluation != self.last_evaluation;
        // A daemon that stays after its last round has nothing new to tell people.
        let over = status.phase == "finished" && !matches!(self.form, Form::Json);
        if !news && (over || self.last.is_some_and(|last| last.elapsed() < interval)) {
            return;
        }
        self.last = Some(Instant::now());
        self.last_evaluation = evaluation;
        self.last_phase.clone_from(&status.phase);
        let progress = Progress::from(status);
        match &self.form {
            Form::Live(bar) => {
                let width = columns().saturating_sub(SPINNER_WIDTH);
                bar.set_message(progress.describe(self.target, width));
            }
            Form::Plain => say_plain(&progress.describe(self.target, usize::MAX)),
            Form::Json => json(&Line::Progress(progress)),
            Form::Quiet => {}
        }
    }

    /// Enough time has passed for [`Printer::progress`] to print. Before that a caller can skip building a status.
    pub(crate) fn wants_progress(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= JSON_INTERVAL)
    }

    pub(crate) fn fault(&self, fault: Fault, round: u64) {
        let text = format!("fault {fault} in round {round}");
        self.either(&Line::Fault { fault, round }, &text);
    }

    /// Prints that this daemon is cut off from this many others on request, or, with zero, that it is
    /// no longer.
    pub(crate) fn split(&self, round: u64, away: usize) {
        let text = match away {
            0 => format!("round {round}: all daemons can be reached again"),
            _ => format!("round {round}: {away} daemons are cut off"),
        };
        self.either(&Line::Split { round, away }, &text);
    }

    pub(crate) fn merged(&self, round: u64, digest: &Digest, sides: &[(u16, f64)]) {
        let line = Line::Merged {
            round,
            digest: digest.to_hex(),
            sides: sides.to_vec(),
        };
        self.either(&line, &merged(round, sides));
    }

    pub(crate) fn note(&self, text: &str) {
        let line = Line::Note {
            text: text.to_owned(),
        };
        self.either(&line, text);
    }

    /// Prints the line for programs or the text for people.
    fn either(&self, line: &Line, text: &str) {
        match self.form {
            Form::Json => json(line),
            Form::Live(_) | Form::Plain | Form::Quiet => self.say(text),
        }
    }

    pub(crate) fn report(&self, report: &NodeReport) {
        if let Form::Json = self.form {
            json(&Line::Report(Box::new(report.clone())));
            return;
        }
        if let Form::Live(bar) = &self.form {
            bar.finish_and_clear();
        }
        let text = report.perplexity.zip(report.bits_per_byte);
        let text = text.map_or(String::new(), |(perplexity, bits)| {
            format!(" (perplexity {perplexity:.2}, {bits:.4} bits per byte)")
        });
        let top_5 = report.test_top_5;
        let top_5 = top_5.map_or(String::new(), |share| format!(" (top 5: {share:.4})"));
        self.result(&format!(
            "{} rounds, {} inner steps, {} samples in {}; accuracy {}{top_5}, loss {}{text}; out {}, in {}",
            report.rounds,
            report.inner_steps,
            report.samples,
            duration(report.wall_s),
            optional(report.test_accuracy),
            optional(report.test_loss),
            bytes(report.bytes_sent.wire),
            bytes(report.bytes_received.wire),
        ));
    }

    /// Prints a line that is no result.
    fn say(&self, text: &str) {
        match &self.form {
            Form::Quiet => tracing::info!("{text}"),
            _ => self.result(text),
        }
    }

    fn result(&self, text: &str) {
        match &self.form {
            Form::Live(bar) => bar.suspend(|| say_plain(text)),
            Form::Plain | Form::Json | Form::Quiet => say_plain(text),
        }
    }
}

/// Says that sides, each with its members and weight, were merged.
pub(crate) fn merged(round: u64, sides: &[(u16, f64)]) -> String {
    let weights: Vec<String> = sides.iter().map(|(_, weight)| weight.to_string()).collect();
    format!(
        "merged: round {round}, sides of weight {}",
        weights.join(" and ")
    )
}

/// Lines may be drawn again and again: both outputs are terminals. If one of them is a file or a pipe, somebody keeps
/// or reads the printed lines.
pub(crate) fn is_live() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// The columns of the terminal behind stderr, on which live lines are drawn.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 => COLUMNS_UNKNOWN,
        columns => columns,
    }
}

/// Prints a line on stderr. A reader that has gone misses it, which is no reason to stop.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn live_line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn say_plain(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

fn json(line: &Line) {
    if let Ok(text) = serde_json::to_string(line) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}
