//! The `murmurate` command: parse, run, one line when it goes wrong, exit code.

mod cli;
mod commands;

use clap::Parser;
use std::process::ExitCode;

// burn allocates in every operation; the system's allocator gives big blocks back to the kernel
// each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("MURMURATE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .init();
    let result = match cli.command {
        cli::Command::Run(args) => commands::run::run(args),
        cli::Command::Local(args) => commands::local::run(args),
        cli::Command::Init(args) => commands::init::run(&args),
        cli::Command::Sim(args) => commands::sim::run(&args),
        cli::Command::Export(args) => commands::export::run(&args),
        cli::Command::Eval(args) => commands::eval::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", commands::one_line(&error));
            ExitCode::FAILURE
        }
    }
}
