//! The `murmurate` command: parses arguments, runs, prints one line on failure, sets the exit code.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod allocator;
mod cli;
mod commands;
mod doctor;
mod exit;
mod out;
mod usage;

use clap::Parser;
use exit::Exit;
use std::io::IsTerminal;
use std::process::ExitCode;

/// The log level without `MURMURATE_LOG`.
const LOG: &str = "warn";

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return usage(&answer),
    };
    allocator::huge_pages(matches!(cli.command, cli::Command::Sim(_)));
    if cli.quiet {
        out::be_quiet();
    }
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("MURMURATE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOG)),
        )
        .with_ansi(has_colours())
        // A line that cannot be written is lost. Telling so on stderr would fail as well, and panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
    use cli::Command::{Eval, Generate, Sim};
    let computes = matches!(cli.command, Sim(_) | Eval(_) | Generate(_));
    let _computing = computes.then(|| murmurate_tasks::compute_here(out::complain));
    let result = match cli.command {
        cli::Command::Bench(args) => commands::bench::run(args.what),
        cli::Command::Run(args) => commands::run::run(args),
        cli::Command::Local(args) => commands::local::run(args),
        cli::Command::Init(args) => commands::reference::init(&args),
        cli::Command::Sim(args) => commands::sim::run(&args),
        cli::Command::Plan(args) => commands::sim::plan(&args),
        cli::Command::Strategies(args) => commands::reference::strategies(&args),
        cli::Command::Export(args) => commands::model::export(&args),
        cli::Command::Generate(args) => commands::generate::generate(&args),
        cli::Command::Eval(args) => commands::model::eval(&args),
        cli::Command::Limit(args) => commands::inspect::limit(&args),
        cli::Command::Top(args) => commands::inspect::top(&args),
        cli::Command::Why(args) => commands::inspect::why(&args),
        cli::Command::Log(args) => commands::inspect::log(&args),
        cli::Command::RunKey(args) => commands::membership::run_key(&args),
        cli::Command::Invite(args) => commands::membership::invite(&args),
        cli::Command::Admit(args) => commands::membership::admit(&args),
        cli::Command::Revoke(args) => commands::membership::revoke(&args),
        cli::Command::Control(args) => commands::control::run(&args),
        cli::Command::Members(args) => commands::membership::members(&args),
        cli::Command::Doctor(args) => commands::doctor::doctor(&args),
        cli::Command::Explain(args) => commands::doctor::explain(&args),
        cli::Command::Completions(args) => commands::reference::completions(&args),
        cli::Command::Man(args) => commands::reference::man(&args),
        cli::Command::Id(args) => commands::membership::id(&args),
    };
    match result {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            let exit = Exit::of(&error);
            if exit != Exit::Done {
                out::complain(format_args!("error: {}", commands::one_line(&error)));
            }
            exit.into()
        }
    }
}

/// Prints the answer to a request that is no command, such as `--help`, or the error of the command line.
fn usage(answer: &clap::Error) -> ExitCode {
    match usage::explained(answer) {
        Some(words) => out::complain(format_args!("error: {words}\n\nFor more, try `--help`.")),
        // A reader that has gone misses it.
        None => drop(answer.print()),
    }
    if answer.use_stderr() {
        Exit::Usage.into()
    } else {
        Exit::Done.into()
    }
}

/// Returns `true` if the log may have colours: on a terminal, unless `NO_COLOR` says no (<https://no-color.org>).
fn has_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !refused
}
