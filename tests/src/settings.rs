//! The configuration of one test daemon: what `murmurate init` would write, with a port, a
//! directory and a shard of its own, on loopback only.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The settings that tests change. All others have the daemon's defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `run.name`.
    pub name: String,
    /// `run.seed`.
    pub seed: u64,
    /// `run.rounds`.
    pub rounds: u64,
    /// `run.start_with`.
    pub start_with: u32,
    /// `run.start_wait_s`.
    pub start_wait_s: f64,
    /// Lines of `[task]` beside the kind.
    pub task: String,
    /// `shards.index`.
    pub index: u32,
    /// `strategy.preset`.
    pub preset: String,
    /// `strategy.synchronization.inner_steps`; `None` leaves the preset's.
    pub inner_steps: Option<u32>,
    /// `daemon.save_every_s`.
    pub save_every_s: f64,
    /// `daemon.evaluate_every`.
    pub evaluate_every: u64,
    /// `daemon.stay`: it runs on after the last round.
    pub stay: bool,
    /// `run.open`: without it, a daemon needs an invite or a key.
    pub open: bool,
    /// `network.wire_versions`; `None` leaves all that the program speaks.
    pub wire_versions: Option<[u8; 2]>,
    /// Where it listens: UDP, then TCP. Zero takes any free port.
    pub ports: [u16; 2],
}

/// Shards of a test's data.
const SHARDS: u32 = 4;

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "e2e".to_owned(),
            seed: 1,
            rounds: 0,
            start_with: 1,
            start_wait_s: 30.0,
            task: String::new(),
            index: 0,
            preset: "diloco".to_owned(),
            inner_steps: None,
            save_every_s: 0.0,
            evaluate_every: 0,
            stay: false,
            open: true,
            wire_versions: None,
            ports: [0, 0],
        }
    }
}

impl Settings {
    /// The same for another shard.
    pub fn shard(&self, index: u32) -> Self {
        Self {
            index,
            ..self.clone()
        }
    }

    /// The configuration of a daemon that lives in `dir`.
    pub fn toml(&self, dir: &Path) -> String {
        let mut text = String::new();
        let [udp, tcp] = self.ports;
        let mut line = |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").unwrap();
        line(format_args!(
            "[run]\nname = {:?}\nseed = {}\nrounds = {}\nopen = {}",
            self.name, self.seed, self.rounds, self.open
        ));
        line(format_args!("start_with = {}", self.start_with));
        line(format_args!("start_wait_s = {:?}", self.start_wait_s));
        line(format_args!(
            "[task]\nkind = \"image-classifier\"\n{}",
            self.task
        ));
        line(format_args!(
            "[shards]\nindex = {}\nof = {SHARDS}",
            self.index
        ));
        line(format_args!("[strategy]\npreset = {:?}", self.preset));
        if let Some(steps) = self.inner_steps {
            line(format_args!(
                "[strategy.synchronization]\ninner_steps = {steps}"
            ));
        }
        line(format_args!("[network]\nmdns = false\nlisten = ["));
        line(format_args!("\"/ip4/127.0.0.1/udp/{udp}/quic-v1\","));
        line(format_args!("\"/ip4/127.0.0.1/tcp/{tcp}\"]"));
        if let Some(versions) = self.wire_versions {
            line(format_args!("wire_versions = {versions:?}"));
        }
        line(format_args!("[daemon]\ndir = {dir:?}"));
        line(format_args!("save_every_s = {:?}", self.save_every_s));
        line(format_args!("evaluate_every = {}", self.evaluate_every));
        line(format_args!("stay = {}", self.stay));
        text
    }

    /// Writes it beside `dir` and gives its path.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let path = dir.with_extension("toml");
        std::fs::write(&path, self.toml(dir)).unwrap();
        path
    }
}
