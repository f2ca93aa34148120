//! The fuzz targets under libFuzzer, on the stable toolchain and without cargo-fuzz.
//!
//! Like cargo-fuzz with `-s none`, it builds the targets with LLVM's coverage counters and starts
//! them. New inputs go to the target directory; `--keep` merges them into the corpus of the
//! repository, smallest inputs first.

use crate::command::{Failure, fresh, host, run, run_with, target};
use crate::seeds;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Duration for each target in `verify-all`, seconds.
const SECONDS: u32 = 30;

/// Maximum size of one target's corpus in the repository, bytes. With nine targets this stays below
/// 360 KB.
const CORPUS_BYTES_MAX: u64 = 40_000;

/// Maximum size of one input in the corpus, bytes. Longer inputs cover little more and fill the
/// corpus.
const INPUT_BYTES_MAX: u32 = 2048;

/// Compiler flags that libFuzzer requires, as cargo-fuzz passes them.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Which targets run, for how long, and whether new inputs are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    only: Option<String>,
    seconds: u32,
    keep: bool,
}

impl Options {
    /// Reads `[TARGET] [--seconds N] [--keep]`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut options = Self {
            only: None,
            seconds: SECONDS,
            keep: false,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--keep" => options.keep = true,
                "--seconds" => {
                    let seconds = words.next().and_then(|word| word.parse().ok());
                    options.seconds =
                        seconds.ok_or_else(|| Failure::new("--seconds takes a whole number"))?;
                }
                name if !name.starts_with('-') && options.only.is_none() => {
                    options.only = Some(name.to_owned());
                }
                other => return Err(Failure::new(format!("fuzz does not know {other:?}"))),
            }
        }
        Ok(options)
    }
}

/// The step for each change: all targets fit the code that they call. Dependencies are those that other steps
/// have checked, as far as their versions are the same.
pub(crate) fn compiles() -> Result<(), Failure> {
    let to = target();
    let to = to.to_string_lossy();
    let check = ["check", "--locked", "--manifest-path", "fuzz/Cargo.toml"];
    run("cargo", &[&check[..], &["--target-dir", &to]].concat())
}

/// The step of each week.
pub(crate) fn all() -> Result<(), Failure> {
    fuzz(&Options::parse(&[])?)
}

pub(crate) fn fuzz(options: &Options) -> Result<(), Failure> {
    let mut targets = targets()?;
    if let Some(only) = &options.only {
        targets.retain(|target| target == only);
    }
    if targets.is_empty() {
        return Err(Failure::new("there is no such fuzz target"));
    }
    let binaries = build()?;
    let left = Mutex::new(targets);
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let one_after_another = || -> Result<(), Failure> {
        while let Some(name) = next() {
            Target::new(&name, &binaries)?.run(options)?;
        }
        Ok(())
    };
    // A target uses one core.
    let cores = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one_after_another)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

fn build() -> Result<PathBuf, Failure> {
    let build = target().join("fuzz");
    let host = host()?;
    // With --target, build scripts and procedural macros are built without the counters.
    let cargo = [
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
    ];
    let to = build.to_string_lossy();
    let place = ["--target", &host, "--target-dir", &to];
    run_with(
        "cargo",
        &[&cargo[..], &place[..]].concat(),
        &[("RUSTFLAGS", FLAGS)],
    )?;
    Ok(build.join(&host).join("release"))
}

/// The names of all targets, which are those of their files.
fn targets() -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir("fuzz/fuzz_targets")? {
        let path = entry?.path();
        if let Some(name) = path.file_stem() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    // They are taken from the end.
    names.sort_by(|one, other| other.cmp(one));
    Ok(names)
}

struct Target {
    name: String,
    binary: PathBuf,
    /// The inputs in the repository. A run only reads them.
    corpus: PathBuf,
    /// The inputs that are derived from other files.
    seeds: PathBuf,
    found: PathBuf,
    /// The input that ended a run with a failure.
    crashes: PathBuf,
}

impl Target {
    fn new(name: &str, binaries: &Path) -> Result<Self, Failure> {
        let target = Self {
            name: name.to_owned(),
            binary: binaries.join(name),
            corpus: Path::new("fuzz/corpus").join(name),
            seeds: target().join("fuzz").join("seeds").join(name),
            found: target().join("fuzz").join("found").join(name),
            crashes: target().join("fuzz").join("crashes").join(name),
        };
        for directory in [&target.crashes, &target.seeds] {
            fresh(directory)?;
        }
        seeds::write(name, &target.seeds)?;
        for directory in [&target.corpus, &target.found] {
            fs::create_dir_all(directory)?;
        }
        Ok(target)
    }

    /// Fuzzes, and keeps the found inputs if the options say so.
    fn run(&self, options: &Options) -> Result<(), Failure> {
        self.fuzz(options.seconds)?;
        if options.keep {
            self.keep()?;
        }
        Ok(())
    }

    fn fuzz(&self, seconds: u32) -> Result<(), Failure> {
        let bytes = bytes_in(&self.corpus)?;
        if bytes > CORPUS_BYTES_MAX {
            let corpus = self.corpus.display();
            return Err(Failure::new(format!(
                "{corpus} has {bytes} bytes, more than {CORPUS_BYTES_MAX}"
            )));
        }
        let log = self.found.with_extension("log");
        let ended = Command::new(&self.binary)
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={}/", self.crashes.display()))
            .args([&self.found, &self.corpus, &self.seeds])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .status()?;
        let log = fs::read_to_string(&log)?;
        if ended.success() {
            let name = &self.name;
            println!("{name}: {}", statistics(&log));
            return Ok(());
        }
        println!("{}", last_lines(&log, 60));
        for entry in fs::read_dir(&self.crashes)? {
            let path = entry?.path();
            println!("{}, as base64:", path.display());
            println!("{}", base64(&fs::read(&path)?));
        }
        Err(Failure::new(format!(
            "target {} ended with {ended}",
            self.name
        )))
    }

    /// Replaces the corpus by the smallest inputs that cover what the old and the new ones cover.
    fn keep(&self) -> Result<(), Failure> {
        let merged = self.found.with_extension("merged");
        fresh(&merged)?;
        let paths = [&merged, &self.corpus, &self.found].map(|path| path.to_string_lossy());
        let length = format!("-max_len={INPUT_BYTES_MAX}");
        run(
            &self.binary,
            &["-merge=1", &length, &paths[0], &paths[1], &paths[2]],
        )?;
        fresh(&self.corpus)?;
        let mut inputs = Vec::new();
        for entry in fs::read_dir(&merged)? {
            let entry = entry?;
            inputs.push((entry.metadata()?.len(), entry.file_name()));
        }
        inputs.sort();
        let mut left = CORPUS_BYTES_MAX;
        for (bytes, name) in inputs {
            if bytes > left {
                break;
            }
            left -= bytes;
            fs::copy(merged.join(&name), self.corpus.join(&name))?;
        }
        println!(
            "{}: {} bytes are kept",
            self.corpus.display(),
            CORPUS_BYTES_MAX - left
        );
        Ok(())
    }
}

fn bytes_in(directory: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// The number of inputs and the coverage of a run, from libFuzzer's log.
fn statistics(log: &str) -> String {
    let after = |label: &str| {
        let line = log.lines().rev().find(|line| line.contains(label));
        let rest = line.and_then(|line| line.split(label).nth(1));
        rest.and_then(|rest| rest.split_whitespace().next())
            .unwrap_or("?")
            .to_owned()
    };
    format!(
        "{} inputs, {} edges, {} features, {} new inputs",
        after("stat::number_of_executed_units:"),
        after(" cov:"),
        after(" ft:"),
        after("stat::new_units_added:"),
    )
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Base64 (RFC 4648, section 4). The log can then contain the input that crashed a target.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let sextet = (group >> (18 - 6 * position) & 63) as usize;
            let digit = char::from(ALPHABET[sextet]);
            text.push(if position <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_the_examples_of_rfc_4648() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in examples {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn options_are_a_target_its_seconds_and_whether_to_keep() {
        let options = Options::parse(&["frame", "--seconds", "5", "--keep"]).unwrap();
        let expected = Options {
            only: Some("frame".to_owned()),
            seconds: 5,
            keep: true,
        };
        assert_eq!(options, expected);
        assert!(Options::parse(&["--seconds"]).is_err());
        assert!(Options::parse(&["--runs=1"]).is_err());
    }

    #[test]
    fn statistics_come_from_the_last_lines_of_the_log() {
        let log = "#2 INITED cov: 3 ft: 4 corp: 1/1b\n#9 NEW cov: 5 ft: 6 corp: 2/3b\n\
                   stat::number_of_executed_units: 9\nstat::new_units_added: 2\n";
        assert_eq!(
            statistics(log),
            "9 inputs, 5 edges, 6 features, 2 new inputs"
        );
    }
}
