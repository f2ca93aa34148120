//! What is known about the terminal, and lines for it that are no results.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Whether lines may be drawn again and again: only where both outputs are terminals. If one of them
/// is a file or a pipe, somebody keeps or reads what is printed.
pub(crate) fn is_live() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints a line on stderr. A reader that has gone misses it, which is no reason to stop.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
