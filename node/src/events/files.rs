//! The log's files: `events.jsonl` is written, and `events.1.jsonl` to `events.3.jsonl` are older.

use crate::lines::Lines;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that is written.
pub const NAME: &str = "events.jsonl";

/// Bytes of one file, at most.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Number of files, the one that is written included.
pub const FILES: u32 = 4;

/// The path of a file: 0 is written, larger numbers are older.
pub(super) fn path(dir: &Path, number: u32) -> PathBuf {
    match number {
        0 => dir.join(NAME),
        number => dir.join(format!("events.{number}.jsonl")),
    }
}

/// The open log.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    lines: Lines,
    most: u64,
}

impl Files {
    /// Opens the log to append.
    pub(super) fn open(dir: &Path, most: u64) -> io::Result<Self> {
        Ok(Self {
            dir: dir.to_owned(),
            lines: Lines::open(&path(dir, 0))?,
            most,
        })
    }

    /// Appends lines that each end with a line feed. Begins a new file first if these would not fit.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.lines.bytes() > 0 && self.lines.bytes() + lines.len() as u64 > self.most {
            // Not there, the file is moved away already: the new one could not be opened.
            let last = if path(&self.dir, 0).exists() {
                FILES - 1
            } else {
                0
            };
            for number in (0..last).rev() {
                match fs::rename(path(&self.dir, number), path(&self.dir, number + 1)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            *self = Self::open(&self.dir, self.most)?;
        }
        self.lines.write(lines)
    }
}
