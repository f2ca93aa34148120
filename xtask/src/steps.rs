//! The steps of CI in the order in which they run: cheap ones first. Steps that share a build profile are
//! next to each other, so that nothing is built twice.
//!
//! A step belongs to one of two lanes. [`Lane::Fast`] has what a change of the source can break;
//! [`Lane::Slow`] has what only a dependency, another feature or a release can break.

use crate::command::{Failure, host, run, run_with, succeeds, target};
use crate::passed::Passed;
use crate::{alerts, book, book_test, fuzz, links, python, tool, trials};
use Lane::{Fast, Slow};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// `verify`, which CI runs for every change.
    Fast,
    /// `verify-all`, which CI runs once a week.
    Slow,
}

/// One check, with the name that starts it.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) lane: Lane,
    /// Its inputs, as paths for git: it runs only if one of these files has changed since it passed. The
    /// step's own code counts too. Without paths it always runs.
    inputs: &'static [&'static str],
    check: fn() -> Result<(), Failure>,
}

impl Step {
    const fn new(
        lane: Lane,
        name: &'static str,
        what: &'static str,
        inputs: &'static [&'static str],
        check: fn() -> Result<(), Failure>,
    ) -> Self {
        Self {
            name,
            what,
            lane,
            inputs,
            check,
        }
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

    /// Runs the step unless it passed before with the same inputs.
    pub(crate) fn run_if_changed(&self) -> Result<(), Failure> {
        if self.inputs.is_empty() {
            return self.run();
        }
        let passed = Passed::of(self.name, self.inputs)?;
        if passed.is_recorded() {
            println!("\n==> {}: passed before with the same files", self.name);
            return Ok(());
        }
        self.run()?;
        passed.record()
    }
}

/// Tests read documents, examples and deployment files too.
const EVERYTHING: &[&str] = &["."];

/// All files that a compiler may read. The list names the excluded ones, so that a new folder counts.
const COMPILED: &[&str] = &[
    ".",
    ":!*.md",
    ":!docs",
    ":!deploy",
    ":!python",
    ":!.github",
    ":!.ci",
];

/// A line for each step.
#[rustfmt::skip]
pub(crate) const STEPS: &[Step] = &[
    Step::new(Fast, "tools", "the versions of the tools", &[], tools),
    Step::new(Fast, "links", "relative links in Markdown files", &[], links::check),
    Step::new(Fast, "fmt", "cargo fmt --check", &["*.rs", "rustfmt.toml"], fmt),
    Step::new(Fast, "fetch", "dependencies, as locked", &[], fetch),
    Step::new(Fast, "python", "the Python package", &["python"], python::check),
    Step::new(Fast, "alerts", "alert rules and the dashboard, by promtool", &["deploy"], alerts::check),
    Step::new(Fast, "clippy", "cargo clippy, warnings denied", COMPILED, clippy),
    Step::new(Fast, "doc", "cargo doc, warnings denied", COMPILED, doc),
    Step::new(Fast, "fuzz-check", "cargo check of the fuzz targets", COMPILED, fuzz::compiles),
    Step::new(Fast, "test", "cargo test --workspace", EVERYTHING, test),
    Step::new(Fast, "zero-config", "murmurate local --nodes 4 --json, as the tests built it", COMPILED, trials::zero_config),
    Step::new(Fast, "determinism", "a simulated scenario twice gives the same trace", COMPILED, trials::determinism),
    Step::new(Slow, "seeds", "tests over random seeds, with more of them", COMPILED, seeds),
    Step::new(Slow, "release", "cargo run --release -- local --nodes 4 --json", COMPILED, trials::release),
    Step::new(Slow, "book-test", "every command of the tutorials", EVERYTHING, book_test::check),
    Step::new(Slow, "fuzz", "every fuzz target for 30 s", COMPILED, fuzz::all),
    Step::new(Slow, "miri", "the crate with unsafe code under Miri, on the nightly toolchain", &["Cargo.lock", "native"], miri),
    Step::new(Slow, "interop", "our QUIC with libp2p's own", &["Cargo.toml", "interop", "net", "protocol"], interop),
    Step::new(Slow, "proxy", "a daemon whose only way out is tinyproxy", COMPILED, proxy),
    Step::new(Slow, "features", "cargo check with wgpu, cuda and otlp", COMPILED, features),
    Step::new(Slow, "devices", "the feature wgpu, on a Vulkan driver for the processor", COMPILED, devices),
    Step::new(Slow, "deny", "licences, bans, sources and advisories, by cargo-deny", &[], tool::deny),
    Step::new(Slow, "book", "the book by mdBook, every link in it", &["*.md", "docs"], book::check),
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

fn seeds() -> Result<(), Failure> {
    let packages = [
        "murmurate-sim",
        "murmurate-protocol",
        "murmurate-strategies",
    ];
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    let arguments: Vec<&str> = ["test", "--no-fail-fast"]
        .into_iter()
        .chain(packages)
        .collect();
    run_with("cargo", &arguments, &[("MURMURATE_SEEDS", "long")])
}

fn miri() -> Result<(), Failure> {
    let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
    run(
        "rustup",
        &[&install[..], &["--component", "miri,rust-src"]].concat(),
    )?;
    let to = target().join("miri");
    let to = to.to_string_lossy();
    let test = [
        "miri",
        "test",
        "-p",
        "murmurate-native",
        "--target-dir",
        &to,
    ];
    let nightly = ["run", "nightly", "cargo"];
    run("rustup", &[&nightly[..], &test].concat())
}

fn interop() -> Result<(), Failure> {
    let to = target();
    let to = to.to_string_lossy();
    let test = ["test", "--locked", "--manifest-path", "interop/Cargo.toml"];
    run("cargo", &[&test[..], &["--target-dir", &to]].concat())
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

/// The test needs tinyproxy and network namespaces. Elsewhere it is skipped without them; here it fails.
fn proxy() -> Result<(), Failure> {
    if !succeeds("tinyproxy", &["-v"]) {
        install(&["tinyproxy", "iproute2"]);
    }
    let test = ["test", "--workspace", "--test", "e2e", "--", "proxied::"];
    run_with("cargo", &test, &[("MURMURATE_PROXY_TEST", "required")])
}

/// Where Vulkan drivers are announced.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// The packages of Debian and Ubuntu with the driver and its loader.
const PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

/// The tests of graphics devices on Mesa's lavapipe, a Vulkan driver that computes on the processor.
fn devices() -> Result<(), Failure> {
    if !driver() {
        install(&PACKAGES);
    }
    if !driver() {
        println!("skipped: there is no Vulkan driver, and apt cannot install one; checking only");
        return run("cargo", &["check", "-p", "murmurate", "--features", "wgpu"]);
    }
    let build = ["test", "-p", "murmurate", "--features", "wgpu"];
    run("cargo", &[&build[..], &["--test", "devices"]].concat())
}

fn driver() -> bool {
    let holds_one = |dir: &&str| {
        let entries = Path::new(dir).read_dir();
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    DRIVERS.iter().any(holds_one)
}

/// Installs packages of Debian and Ubuntu, where that is allowed.
fn install(packages: &[&str]) {
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let install = [&install[..], packages].concat();
    let ready = succeeds("apt-get", &install) || {
        succeeds("apt-get", &["update"]) && succeeds("apt-get", &install)
    };
    if !ready {
        println!("apt-get could not install {}", packages.join(" and "));
    }
}
