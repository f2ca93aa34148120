//! One file for each command: calls the library with the arguments and prints the result.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod daemon_http;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod hide;
pub(crate) mod init;
mod kept;
mod language;
pub(crate) mod limit;
pub(crate) mod local;
pub(crate) mod log;
pub(crate) mod membership;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod sim;
pub(crate) mod strategies;
pub(crate) mod survey;
pub(crate) mod top;
pub(crate) mod why;

use murmurate_node::config::Variable;

/// The keys of the configuration that variables of the environment set. A variable that is no text sets
/// none.
pub(crate) fn environment() -> Vec<Variable> {
    let all = std::env::vars_os();
    murmurate_node::config::environment(
        all.filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?))),
    )
}

/// The invite of the command line, or else that of the variable `MURMURATE_INVITE`. A service has no better
/// place for it: the processes of a machine show their command lines to everyone.
pub(crate) fn invite(given: Option<String>) -> Option<String> {
    let set = || std::env::var(hide::VARIABLE).ok();
    given.or_else(set).filter(|invite| !invite.is_empty())
}

/// An error with its causes in one line.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    error
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
