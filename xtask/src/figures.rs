//! Remakes the figures of docs/benchmarks.md on this machine: one after the other, with the release
//! build. Those beside gloo and PyTorch are a command of their own, which needs a Python with torch.

use crate::command::{self, Failure};
use std::fmt::Write as _;

/// Where the figures are written, in the directory of build results.
const FILE: &str = "figures.md";

/// The commands, without the program's name.
const COMMANDS: &[&str] = &[
    "bench net --bytes 2GB --ways quinn,bulk,tls,tcp",
    "bench net --bytes 50MB --ways quinn,bulk --link 50mbit/100ms/1% --rounds 1",
    "bench exchange --nodes 4 --params 100000000 --codec f32",
    "bench exchange --nodes 4 --params 100000000 --codec int8",
    "bench exchange --nodes 4 --params 100000000 --bulk tls",
    "bench exchange --nodes 4 --params 100000000 --payload-max 1452 --rounds 4",
    "bench join --params 100000000",
    "bench join --params 100000000 --kill-at 0.5",
    "bench codecs",
];

/// Runs every command, prints its output, and writes all of it to [`FILE`].
pub(crate) fn figures() -> Result<(), Failure> {
    command::run("cargo", &["build", "--release", "-p", "murmurate"])?;
    let program = command::murmurate("release");
    let file = command::target().join(FILE);
    let mut text = format!("# Figures\n\n{}\n", machine());
    for words in COMMANDS {
        println!("\n$ murmurate {words}");
        let words_apart: Vec<&str> = words.split_whitespace().collect();
        let printed = command::output(&program, &words_apart)?;
        print!("{printed}");
        let _ = write!(text, "\n```\n$ murmurate {words}\n{printed}```\n");
        // After each, so that what was measured is kept if a later one fails.
        std::fs::write(&file, &text)?;
    }
    println!("\nwritten to {}", file.display());
    Ok(())
}

/// The script that measures rounds beside gloo's, and inner steps beside PyTorch's.
const PEERS: &str = "python/bench/peers.py";

/// Runs the script in the Python of `--python`. It reads all options, and builds our side.
pub(crate) fn peers(words: &[&str]) -> Result<(), Failure> {
    let apart = words.iter().skip_while(|word| **word != "--python").nth(1);
    let joined = words.iter().find_map(|word| word.strip_prefix("--python="));
    let python = apart.copied().or(joined).unwrap_or("python3");
    if !command::succeeds(python, &["-c", "import torch"]) {
        return Err(Failure::new(format!(
            "{python} cannot import torch: pip install torch, or give another Python by --python"
        )));
    }
    eprintln!("{}", machine());
    let target = command::target();
    let target = [("CARGO_TARGET_DIR", &*target.to_string_lossy())];
    command::run_with(python, &[&[PEERS], words].concat(), &target)
}

/// The processor and the commit, as far as they are known.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("an unknown processor", |m| {
        m.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let commit = command::output("git", &["rev-parse", "--short", "HEAD"]);
    let commit = commit.map_or_else(|_| "unknown".to_owned(), |out| out.trim().to_owned());
    format!("{cores} cores of {model}, commit {commit}")
}
