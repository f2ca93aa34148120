//! The command as a user starts it. One program: each more would link the command's dependencies again.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod cli;
mod common;
mod deploy;
mod doctor;
mod language_models;
mod own_data;
mod shell;
mod watched;
