//! Opens a page in the user's browser.

use std::io;
use std::process::{Command, Stdio};

/// The program that opens a page in the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a page. The browser is not waited for.
pub(in crate::local) fn open(url: &str) -> io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(url);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().map(drop)
}
