//! What is known about the terminal, and lines for it that are no results.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// The columns of a terminal that does not say how many it has.
const COLUMNS_UNKNOWN: usize = 80;

/// Whether lines may be drawn again and again: only where both outputs are terminals. If one of them
/// is a file or a pipe, somebody keeps or reads what is printed.
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
