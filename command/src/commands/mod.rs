//! One file for each command: calls the library with the arguments and prints the result.

mod against;
pub(crate) mod bench;
pub(crate) mod control;
pub(crate) mod daemon_http;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod inspect;
mod language;
pub(crate) mod local;
pub(crate) mod membership;
pub(crate) mod model;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod sim;

use crate::out;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use murmurate_node::config::Variable;
use std::path::Path;

/// The keys of the configuration that variables of the environment set. A variable that is no text sets none.
pub(crate) fn environment() -> Vec<Variable> {
    let all = std::env::vars_os();
    murmurate_node::config::environment(
        all.filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?))),
    )
}

const VARIABLE: &str = "MURMURATE_INVITE";

/// The invite of the command line, or else that of the variable `MURMURATE_INVITE`. A service has no better
/// place for it: the processes of a machine show their command lines to everyone.
pub(crate) fn invite(given: Option<String>) -> Option<String> {
    let set = || std::env::var(VARIABLE).ok();
    given.or_else(set).filter(|invite| !invite.is_empty())
}

/// An error in one line, with the causes that it does not itself tell.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.dedup_by(|cause, before| before.contains(cause.as_str()));
    let line = causes.join(": ");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A progress bar, which `--quiet` hides.
fn bar(length: u64, template: &str) -> anyhow::Result<ProgressBar> {
    let bar = if out::is_quiet() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(length)
    };
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// Tries a file before the work, which may take hours. Its content stays until then.
fn writable(flag: &str, path: &Path) -> anyhow::Result<()> {
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    file.with_context(|| cannot_write(flag, path))?;
    Ok(())
}

fn cannot_write(flag: &str, path: &Path) -> String {
    format!("{flag}: {} cannot be written", path.display())
}
