//! The steps of CI in the order in which they run: cheap ones first. Steps that share a build profile are
//! next to each other, so that nothing is built twice.
//!
//! A step belongs to one of two lanes. [`Lane::Fast`] has what a change of the source can break;
//! [`Lane::Slow`] has what only a dependency, another feature or a release can break.

use crate::command::{Failure, host, run, run_with, succeeds, target};
use crate::passed::Passed;
use crate::{alerts, book, book_test, fuzz, links, python, tool, trials};
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

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "tools",
        what: "the versions of the tools",
        lane: Lane::Fast,
        inputs: &[],
        check: tools,
    },
    Step {
        name: "links",
        what: "relative links in Markdown files",
        lane: Lane::Fast,
        inputs: &[],
        check: links::check,
    },
    Step {
        name: "fmt",
        what: "cargo fmt --check",
        lane: Lane::Fast,
        inputs: &["*.rs", "rustfmt.toml"],
        check: fmt,
    },
    Step {
        name: "fetch",
        what: "dependencies, as locked",
        lane: Lane::Fast,
        inputs: &[],
        check: fetch,
    },
    Step {
        name: "python",
        what: "the Python package",
        lane: Lane::Fast,
        inputs: &["python"],
        check: python::check,
    },
    Step {
        name: "alerts",
        what: "alert rules and the dashboard, by promtool",
        lane: Lane::Fast,
        inputs: &["deploy"],
        check: alerts::check,
    },
    Step {
        name: "clippy",
        what: "cargo clippy, warnings denied",
        lane: Lane::Fast,
        inputs: COMPILED,
        check: clippy,
    },
    Step {
        name: "doc",
        what: "cargo doc, warnings denied",
        lane: Lane::Fast,
        inputs: COMPILED,
        check: doc,
    },
    Step {
        name: "fuzz-check",
        what: "cargo check of the fuzz targets",
        lane: Lane::Fast,
        inputs: COMPILED,
        check: fuzz::compiles,
    },
    Step {
        name: "test",
        what: "cargo test --workspace",
        lane: Lane::Fast,
        inputs: EVERYTHING,
        check: test,
    },
    Step {
        name: "zero-config",
        what: "murmurate local --nodes 4 --json, as the tests built it",
        lane: Lane::Fast,
        inputs: COMPILED,
        check: trials::zero_config,
    },
    Step {
        name: "determinism",
        what: "a simulated scenario twice gives the same trace",
        lane: Lane::Fast,
        inputs: COMPILED,
        check: trials::determinism,
    },
    Step {
        name: "seeds",
        what: "tests over random seeds, with more of them",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: seeds,
    },
    Step {
        name: "release",
        what: "cargo run --release -- local --nodes 4 --json",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: trials::release,
    },
    Step {
        name: "book-test",
        what: "every command of the tutorials",
        lane: Lane::Slow,
        inputs: EVERYTHING,
        check: book_test::check,
    },
    Step {
        name: "fuzz",
        what: "every fuzz target for 30 s",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: fuzz::all,
    },
    Step {
        name: "interop",
        what: "our QUIC with libp2p's own",
        lane: Lane::Slow,
        inputs: &["Cargo.toml", "interop", "net", "protocol"],
        check: interop,
    },
    Step {
        name: "proxy",
        what: "a daemon whose only way out is tinyproxy",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: proxy,
    },
    Step {
        name: "features",
        what: "cargo check with wgpu, cuda and otlp",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: features,
    },
    Step {
        name: "devices",
        what: "the feature wgpu, on a Vulkan driver for the processor",
        lane: Lane::Slow,
        inputs: COMPILED,
        check: devices,
    },
    Step {
        name: "deny",
        what: "licences, bans, sources and advisories, by cargo-deny",
        lane: Lane::Slow,
        inputs: &[],
        check: tool::deny,
    },
    Step {
        name: "book",
        what: "the book by mdBook, every link in it",
        lane: Lane::Slow,
        inputs: &["*.md", "docs"],
        check: book::check,
    },
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
