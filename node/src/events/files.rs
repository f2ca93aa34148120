//! The log's files: `events.jsonl` is written, and `events.1.jsonl` to `events.3.jsonl` are older.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
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
    file: File,
    bytes: u64,
    most: u64,
    /// Whether the last write has failed, and may have left the beginning of a line.
    torn: bool,
}

impl Files {
    /// Opens the log to append. A line that a crash has cut off is ended, so that it spoils no other.
    pub(super) fn open(dir: &Path, most: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .open(path(dir, 0))?;
        let mut bytes = file.seek(SeekFrom::End(0))?;
        if bytes > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        let dir = dir.to_owned();
        Ok(Self {
            dir,
            file,
            bytes,
            most,
            torn: false,
        })
    }

    /// Appends lines that each end with a line feed. Begins a new file first if these would not fit.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + lines.len() as u64 > self.most {
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
        if self.torn {
            self.file.write_all(b"\n")?;
            self.bytes += 1;
            self.torn = false;
        }
        let written = self.file.write_all(lines);
        self.torn = written.is_err();
        self.bytes += lines.len() as u64;
        written
    }
}
