//! What a command prints. Results go to stdout, everything else to stderr.
//!
//! Nothing here panics when a reader has gone, as in `murmurate strategies | head -1`. A command whose
//! results no program reads any more ends at once and quietly ([`ReaderGone`]); a daemon trains on. That
//! is why `SIGPIPE` stays ignored: it would also end a process that writes to a closed socket.

mod fit;

use comfy_table::Table;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by `--quiet`, once, before anything is printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// The program that read stdout has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program that reads the output has ended")]
pub(crate) struct ReaderGone;

/// Lets [`tell`] print nothing from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns `true` if only results and errors are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a result and the end of the line.
pub(crate) fn line(text: impl fmt::Display) -> anyhow::Result<()> {
    with(|out| writeln!(out, "{text}"))
}

/// Prints a result that brings its own ends of lines.
pub(crate) fn text(text: impl fmt::Display) -> anyhow::Result<()> {
    with(|out| write!(out, "{text}"))
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?)
}

/// Prints a report as JSON, or in its own words.
pub(crate) fn report(
    as_json: bool,
    report: &(impl Serialize + fmt::Display),
) -> anyhow::Result<()> {
    if as_json { json(report) } else { text(report) }
}

/// Prints figures as JSON, or as a table.
pub(crate) fn figures<T: Serialize>(
    as_json: bool,
    figures: &T,
    words: fn(&T) -> Table,
) -> anyhow::Result<()> {
    if as_json {
        json(figures)
    } else {
        table(&words(figures))
    }
}

/// Prints a table, or its rows as `key: value` lines if the terminal is too narrow for it.
pub(crate) fn table(table: &Table) -> anyhow::Result<()> {
    line(fit::table(table, columns()))
}

/// Prints lines of text, which are folded if the terminal is too narrow for them.
pub(crate) fn folded(lines: &str) -> anyhow::Result<()> {
    text(fit::lines(lines, columns()))
}

/// The columns of the terminal behind stdout. A file or a pipe has no end of its lines.
fn columns() -> usize {
    match size() {
        None | Some((0, _)) => usize::MAX,
        Some((columns, _)) => usize::from(columns),
    }
}

/// The columns and rows of the terminal behind stdout; none for a file or a pipe.
pub(crate) fn size() -> Option<(u16, u16)> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(out);
    Some(size.map_or((0, 0), |size| (size.ws_col, size.ws_row)))
}

/// Prints a result in parts. It reaches the reader when `print` returns or flushes.
pub(crate) fn with(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = print(&mut out).and_then(|()| out.flush());
    printed.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::anyhow!("the results cannot be written to stdout: {error}"),
    })
}

/// Prints a line that is no result: progress, a hint, a warning.
pub(crate) fn tell(text: impl fmt::Display) {
    if !is_quiet() {
        complain(text);
    }
}

/// Prints an error, which `--quiet` does not silence.
pub(crate) fn complain(text: impl fmt::Display) {
    // A reader that has gone misses the line, which is no reason to stop.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
