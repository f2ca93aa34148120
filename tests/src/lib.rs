//! Helpers of whole-system tests: the built command, daemons as child processes, their output, their
//! HTTP interface.
//!
//! No helper sleeps for a fixed time. Every wait is for an event (a line, an exit, a status), has a
//! deadline, and prints the daemon's output if the deadline passes.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests fail as tests do"
)]

mod browser;
mod command;
mod daemon;
mod http;
mod program;
mod serial;
mod settings;

pub use browser::Browser;
pub use command::{
    Outcome, assert_begins, assert_ends, assert_has, failure, failure_with, local, murmurate,
    success,
};
pub use daemon::{Daemon, Ended};
pub use http::{get, status, wait_until};
pub use program::{example, program};
pub use serial::{Turn, quiet_turn, turn};
pub use settings::Settings;
