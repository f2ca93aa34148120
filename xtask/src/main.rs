//! `cargo xtask`: the checks that a change must pass, each by its name or all together.
//!
//! `verify` has the checks that CI runs for each change, `verify-all` those of once a week; both change no file of the
//! repository. `fix` applies automatic changes.
//! This crate is not part of the product.

mod alerts;
mod book;
mod book_test;
mod command;
mod dist;
mod figures;
mod fuzz;
mod links;
mod passed;
mod privacy;
mod python;
mod seeds;
mod steps;
mod tool;
mod trials;

use crate::command::Failure;
use crate::steps::{Lane, STEPS, Step};
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
    std::env::set_current_dir(command::root())?;
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            help();
            Ok(())
        }
        ["verify"] => verify(&|step| step.lane == Lane::Fast),
        ["verify-all"] => verify(&|_| true),
        ["fix"] => fix(),
        ["figures"] => figures::figures(),
        ["peers", options @ ..] => figures::peers(options),
        ["privacy", peers @ ..] => privacy::privacy(peers),
        ["dist", options @ ..] => dist::dist(options),
        ["fuzz", options @ ..] => fuzz::Options::parse(options).and_then(|o| fuzz::fuzz(&o)),
        ["book-test", pages @ ..] if !pages.is_empty() => book_test::of_pages(pages),
        ["nextest", options @ ..] => {
            command::run("cargo", &[&["nextest", "run"], options].concat())
        }
        names => names.iter().try_for_each(|name| named(name)),
    }
}

/// Runs steps of CI in order, those with changed inputs. The first failure ends it.
fn verify(chosen: &dyn Fn(&Step) -> bool) -> Result<(), Failure> {
    let began = Instant::now();
    let mut steps = STEPS.iter().filter(|step| chosen(step));
    steps.try_for_each(Step::run_if_changed)?;
    println!("\nall passed in {} s", began.elapsed().as_secs());
    Ok(())
}

fn named(name: &str) -> Result<(), Failure> {
    match STEPS.iter().find(|step| step.name == name) {
        Some(step) => step.run(),
        None => Err(Failure::new(format!(
            "there is no step {name:?}; `cargo xtask help` lists them"
        ))),
    }
}

fn help() {
    println!("cargo xtask verify          what a change can break, as CI runs it; changes no file");
    println!("cargo xtask verify-all      every step, as CI runs them once a week");
    println!("                            (both leave out what passed with the same files before)");
    println!(
        "cargo xtask fix             format, apply clippy's suggestions, write generated files"
    );
    println!(
        "cargo xtask figures         remake the figures of docs/benchmarks.md on this machine"
    );
    println!(
        "cargo xtask peers [exchange|steps|all] [--runs N] [--params N] [--python PATH] [--json]"
    );
    println!("                            rounds beside gloo's, and inner steps beside PyTorch's");
    println!("cargo xtask privacy [PEERS] remake the table of docs/privacy.md, or rows of it");
    println!("cargo xtask NAME [NAME ...] these steps");
    println!("cargo xtask fuzz [TARGET] [--seconds N] [--keep]");
    println!("                            one target, longer, keeping the inputs that it finds");
    dist::help();
    println!("cargo xtask book-test PAGE  the commands of one tutorial, such as friends");
    println!("cargo xtask nextest [ARGS]  the tests under cargo-nextest, if it is installed");
    for (lane, title) in [
        (Lane::Fast, "Steps of `verify`"),
        (Lane::Slow, "Steps that only `verify-all` has"),
    ] {
        println!("\n{title}:");
        for step in STEPS.iter().filter(|step| step.lane == lane) {
            println!("  {:<14} {}", step.name, step.what);
        }
    }
}

/// Fixes that a program can make: formatting, clippy's safe suggestions, generated files.
fn fix() -> Result<(), Failure> {
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged"];
    command::run(
        "cargo",
        &[&clippy[..], &["--workspace", "--all-targets"]].concat(),
    )?;
    command::run("cargo", &["fmt", "--all"])?;
    // Tests compare the generated pages of docs/ with the code, and write the pages on request.
    // `facts` does not change measured speeds, which belong to one machine.
    command::run_with(
        "cargo",
        &[
            "test",
            "-p",
            "murmurate-protocol",
            "-p",
            "murmurate-strategies",
            "-p",
            "murmurate-node",
            "-p",
            "murmurate",
            "--tests",
        ],
        &[("UPDATE_DOCS", "facts")],
    )
}
