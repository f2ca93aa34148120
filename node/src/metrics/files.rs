//! The files of one daemon's metrics, and their bounds: `metrics.jsonl` with one earlier part, and the
//! newest event files.

use super::event_file;
use super::line::Line;
use crate::lines::Lines;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file before the next one begins: about 60,000 rounds of JSON.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Event files that are kept. Each start of the daemon begins one, because TensorBoard stops reading a
/// file at a record that a crash has cut.
const EVENT_FILES_MAX: usize = 16;

/// The current lines, and those before them.
const LINES: &str = "metrics.jsonl";
const EARLIER_LINES: &str = "metrics.1.jsonl";

const EVENTS: &str = "events.out.tfevents.";

#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    lines: Lines,
    events: File,
    events_bytes: u64,
    most: u64,
}

impl Files {
    /// Continues `metrics.jsonl` in `dir` and begins an event file.
    pub(super) fn create(dir: &Path, unix_s: f64) -> io::Result<Self> {
        Self::bounded(dir, unix_s, FILE_BYTES_MAX)
    }

    pub(super) fn bounded(dir: &Path, unix_s: f64, most: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let lines = Lines::open(&dir.join(LINES))?;
        let (events, events_bytes) = begin_events(dir, unix_s)?;
        Ok(Self {
            dir: dir.to_owned(),
            lines,
            events,
            events_bytes,
            most,
        })
    }

    /// Writes one line to both files. After it returns, a reader sees it.
    pub(super) fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if self.lines.bytes() > 0 && self.lines.bytes() + text.len() as u64 > self.most {
            let path = self.dir.join(LINES);
            fs::rename(&path, self.dir.join(EARLIER_LINES))?;
            self.lines = Lines::open(&path)?;
        }
        self.lines.write(&text)?;
        let payload = event_file::scalars(line.unix_s, line.round, &line.scalars());
        let record = event_file::record(&payload);
        if self.events_bytes + record.len() as u64 > self.most {
            (self.events, self.events_bytes) = begin_events(&self.dir, line.unix_s)?;
        }
        self.events.write_all(&record)?;
        self.events_bytes += record.len() as u64;
        Ok(())
    }

    /// Replaces the lines' file by a device without room.
    #[cfg(test)]
    pub(super) fn fill(&mut self, full: File) {
        self.lines.fill(full);
    }
}

/// Begins an event file and removes the oldest beyond the bound. TensorBoard reads the files of a
/// directory in the order of their names.
fn begin_events(dir: &Path, unix_s: f64) -> io::Result<(File, u64)> {
    let mut names: Vec<String> = fs::read_dir(dir)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(EVENTS))
        .collect();
    names.sort();
    let excess = (names.len() + 1).saturating_sub(EVENT_FILES_MAX);
    for old in &names[..excess] {
        fs::remove_file(dir.join(old))?;
    }
    let opening = event_file::record(&event_file::opening(unix_s));
    let seconds = unix_s as u64;
    // Several files of one second are numbered, beyond those that were removed.
    let same = format!("{EVENTS}{seconds:010}.murmurate.");
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix(&same)?.parse::<u32>().ok());
    let next = numbers.max().map_or(0, |last| last + 1);
    for number in next.. {
        let path = dir.join(format!("{same}{number:06}"));
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(mut file) => {
                file.write_all(&opening)?;
                return Ok((file, opening.len() as u64));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
