//! The page `docs/cli.md` is the help of all commands.
//!
//! `UPDATE_DOCS=1 cargo test -p murmurate --bin murmurate document` writes it.

use super::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/cli.md";

/// Columns of the help on the page.
const WIDTH: usize = 100;

const INTRODUCTION: &str = "# The command line

<!-- Written by `UPDATE_DOCS=1 cargo test -p murmurate --bin murmurate document`; do not edit. -->

What `--help` of each command says. `murmurate man` writes the same as manual pages, and
`murmurate completions` writes completions for a shell. [Running daemons](operations.md#exit-codes-and-output)
explains exit codes and output.
";

/// The help of a command and of those below it.
fn write(page: &mut String, command: &mut Command, parents: &str) {
    let path = format!("{parents}{}", command.get_name());
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let help = lines.join("\n");
    writeln!(page, "\n## {path}\n\n```text\n{help}\n```").unwrap();
    let parents = format!("{path} ");
    for below in command.get_subcommands_mut() {
        if !below.is_hide_set() && below.get_name() != "help" {
            write(page, below, &parents);
        }
    }
}

#[test]
fn the_page_is_the_help_of_all_commands() {
    let mut page = INTRODUCTION.to_owned();
    let mut command = Cli::command().term_width(WIDTH);
    // Fills in what commands inherit, such as their full names in usages.
    command.build();
    write(&mut page, &mut command, "");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root.join(PAGE), page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    assert!(
        found == page,
        "{PAGE} is stale: UPDATE_DOCS=1 cargo test -p murmurate --bin murmurate document"
    );
}
