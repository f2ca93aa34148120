//! `cargo xtask`: the checks that a change must pass, each by its name or all together.
//!
//! `verify` is what CI runs; it changes no file of the repository. `fix` applies automatic changes.
//! This crate is not part of the product.

mod alerts;
mod book;
mod book_test;
mod command;
mod deny;
mod determinism;
mod devices;
mod dist;
mod failure;
mod figures;
mod fix;
mod fuzz;
mod links;
mod paths;
mod prepare;
mod python;
mod seeds;
mod steps;
mod tool;
mod zero_config;

use crate::failure::Failure;
use crate::prepare::Prepared;
use crate::steps::{APART, STEPS};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nFAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Every step runs in the root, in whichever directory the command was started.
    std::env::set_current_dir(paths::root())?;
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            help();
            Ok(())
        }
        ["verify"] => verify(),
        ["fix"] => fix::fix(),
        ["prepare"] => prepare::all(),
        ["figures"] => figures::figures(),
        ["dist", options @ ..] => dist::dist(options),
        ["fuzz", options @ ..] => fuzz::Options::parse(options).and_then(|o| fuzz::fuzz(&o)),
        ["book-test", pages @ ..] if !pages.is_empty() => book_test::of_pages(pages),
        ["nextest", options @ ..] => {
            command::run("cargo", &[&["nextest", "run"], options].concat())
        }
        names => names.iter().try_for_each(|name| named(name)),
    }
}

/// Runs all steps of CI in order. The first failure ends it.
fn verify() -> Result<(), Failure> {
    let began = Instant::now();
    for step in STEPS {
        let prepared = match step.name {
            "test" => prepare::begin()?,
            _ => None,
        };
        let result = step.run();
        prepared.map_or(Ok(()), Prepared::end)?;
        result?;
    }
    println!("\nall passed in {} s", began.elapsed().as_secs());
    Ok(())
}

fn named(name: &str) -> Result<(), Failure> {
    match STEPS.iter().chain(APART).find(|step| step.name == name) {
        Some(step) => step.run(),
        None => Err(Failure::new(format!(
            "there is no step {name:?}; `cargo xtask help` lists them"
        ))),
    }
}

fn help() {
    println!("cargo xtask verify          every step below, as CI runs them; changes no file");
    println!(
        "cargo xtask fix             format, apply clippy's suggestions, write generated files"
    );
    println!(
        "cargo xtask figures         remake the figures of docs/benchmarks.md on this machine"
    );
    println!("cargo xtask NAME [NAME ...] these steps");
    println!("cargo xtask prepare         what the steps behind the tests build");
    println!("cargo xtask fuzz [TARGET] [--seconds N] [--keep]");
    println!("                            one target, longer, keeping the inputs that it finds");
    dist::help();
    println!("cargo xtask book-test PAGE  the commands of one tutorial, such as friends");
    println!("cargo xtask nextest [ARGS]  the tests under cargo-nextest, if it is installed");
    println!("\nSteps:");
    for step in STEPS {
        println!("  {:<14} {}", step.name, step.what);
    }
    println!("\nNot in `verify`:");
    for step in APART {
        println!("  {:<14} {}", step.name, step.what);
    }
}
