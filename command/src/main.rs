//! The `murmurate` command: parses arguments, runs, prints one line on failure, sets the exit code.

mod allocator;
mod cli;
mod commands;

use clap::Parser;
use std::io::IsTerminal;
use std::process::ExitCode;

/// The log levels without `MURMURATE_LOG`. In the first daemon of every fresh run Kademlia warns
/// that it knows no peer, which is harmless.
const LOG: &str = "warn,libp2p_kad=error";

fn main() -> ExitCode {
    allocator::small_pages();
    let cli = cli::Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("MURMURATE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOG)),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let result = match cli.command {
        cli::Command::Bench(args) => commands::bench::run(args.what),
        cli::Command::Run(args) => commands::run::run(args),
        cli::Command::Local(args) => commands::local::run(args),
        cli::Command::Init(args) => commands::init::run(&args),
        cli::Command::Sim(args) => commands::sim::run(&args),
        cli::Command::Plan(args) => commands::plan::run(&args),
        cli::Command::Strategies(args) => commands::strategies::run(&args),
        cli::Command::Export(args) => commands::export::run(&args),
        cli::Command::Generate(args) => commands::generate::run(&args),
        cli::Command::Eval(args) => commands::eval::run(&args),
        cli::Command::Limit(args) => commands::limit::run(&args),
        cli::Command::Why(args) => commands::why::run(&args),
        cli::Command::Log(args) => commands::log::run(&args),
        cli::Command::RunKey(args) => commands::membership::run_key(&args),
        cli::Command::Invite(args) => commands::membership::invite(&args),
        cli::Command::Admit(args) => commands::membership::admit(&args),
        cli::Command::Revoke(args) => commands::membership::revoke(&args),
        cli::Command::Members(args) => commands::membership::members(&args),
        cli::Command::Id(args) => commands::membership::id(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", commands::one_line(&error));
            ExitCode::FAILURE
        }
    }
}
