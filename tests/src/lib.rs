//! What whole-system tests share: the built command, daemons as child processes, their lines, their
//! HTTP interface. No test lives here.
//!
//! Nothing waits by sleeping for a while and hoping: every wait is for something (a line, an end, a
//! status), has a deadline, and shows what the daemon said when the deadline passes.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests fail as tests do"
)]

mod command;
mod daemon;
mod http;
mod program;
mod serial;
mod settings;

pub use command::{Outcome, failure, local, murmurate, success};
pub use daemon::{Daemon, Ended};
pub use http::{get, status, wait_until};
pub use program::{example, program};
pub use serial::{Turn, turn};
pub use settings::Settings;
