//! The steps of CI in the order in which they run: cheap ones first, and those that share a build
//! profile next to each other, so that nothing is built twice.

use crate::command::{host, run, run_with};
use crate::failure::Failure;
use crate::{
    alerts, book, book_test, deny, determinism, devices, fuzz, links, python, zero_config,
};
use std::io::Write as _;
use std::time::Instant;

/// One check, with the name that starts it.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    check: fn() -> Result<(), Failure>,
}

impl Step {
    const fn new(
        name: &'static str,
        what: &'static str,
        check: fn() -> Result<(), Failure>,
    ) -> Self {
        Self { name, what, check }
    }

    /// Runs the step. Prints a heading before it and its duration in seconds after it.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        println!("\n==> {}: {}", self.name, self.what);
        // The heading must come before the output of child processes.
        std::io::stdout().flush()?;
        let began = Instant::now();
        let result = (self.check)();
        let seconds = began.elapsed().as_secs();
        match result {
            Ok(()) => println!("--- {}: {seconds} s", self.name),
            Err(_) => println!("--- {}: failed after {seconds} s", self.name),
        }
        result.map_err(|failure| failure.within(self.name))
    }
}

/// All steps, in order.
pub(crate) const STEPS: &[Step] = &[
    Step::new("tools", "the versions of the tools", tools),
    Step::new("links", "relative links in Markdown files", links::check),
    Step::new("fmt", "cargo fmt --check", fmt),
    Step::new("fetch", "dependencies, as locked", fetch),
    Step::new("clippy", "cargo clippy, warnings denied", clippy),
    Step::new("doc", "cargo doc, warnings denied", doc),
    Step::new("python", "the Python package", python::check),
    Step::new(
        "alerts",
        "alert rules and the dashboard, by promtool",
        alerts::check,
    ),
    Step::new("test", "cargo test --workspace", test),
    Step::new("fuzz", "every fuzz target for 30 s", fuzz::all),
    Step::new(
        "zero-config",
        "cargo run --release -- local --nodes 4 --json",
        zero_config::check,
    ),
    Step::new(
        "book-test",
        "every command of the tutorials",
        book_test::check,
    ),
    Step::new(
        "determinism",
        "a simulated scenario twice gives the same trace",
        determinism::check,
    ),
    Step::new("features", "cargo check with wgpu, cuda and otlp", features),
    Step::new("deny", "licences, bans and sources", deny::check),
    Step::new("book", "the book by mdBook, every link in it", book::check),
];

/// Steps that `verify` leaves out.
pub(crate) const APART: &[Step] = &[
    // It builds burn and wgpu once more, for a test of the few files that know devices.
    Step::new(
        "devices",
        "the feature wgpu, on a Vulkan driver for the processor; weekly",
        devices::check,
    ),
];

fn tools() -> Result<(), Failure> {
    run("rustc", &["--version"])?;
    run("cargo", &["--version"])?;
    let cores = std::thread::available_parallelism()?;
    println!("{cores} cores");
    Ok(())
}

fn fmt() -> Result<(), Failure> {
    run("cargo", &["fmt", "--all", "--check"])
}

fn fetch() -> Result<(), Failure> {
    run("cargo", &["fetch", "--locked", "--target", &host()?])
}

fn clippy() -> Result<(), Failure> {
    let arguments = ["clippy", "--workspace", "--all-targets"];
    run(
        "cargo",
        &[&arguments[..], &["--", "-D", "warnings"]].concat(),
    )
}

fn doc() -> Result<(), Failure> {
    run_with(
        "cargo",
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )
}

fn test() -> Result<(), Failure> {
    run("cargo", &["test", "--workspace", "--no-fail-fast"])
}

fn features() -> Result<(), Failure> {
    // The build script of a dependency of burn's CUDA back end downloads LLVM, which a check does
    // not need. It skips the download if DOCS_RS is set.
    // In one pass: a feature changes what most dependencies are built with, so each pass checks them all.
    let check = ["check", "-p", "murmurate", "--all-targets"];
    let features = ["--features", "wgpu,cuda,otlp"];
    run_with(
        "cargo",
        &[&check[..], &features].concat(),
        &[("DOCS_RS", "1")],
    )
}
