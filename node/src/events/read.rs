//! Reads logs: of this version or another one, whole, torn, or while they grow.

use super::entry::{Entry, Kind, VERSION};
use murmurate_protocol::Phase;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The file that is written.
pub const NAME: &str = "events.jsonl";

pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;

/// Number of files, the one that is written included.
pub(super) const FILES: u32 = 4;

/// The path of a file: 0 is written, larger numbers are older.
pub(super) fn path(dir: &Path, number: u32) -> PathBuf {
    match number {
        0 => dir.join(NAME),
        number => dir.join(format!("events.{number}.jsonl")),
    }
}

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Lines that were not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines of another version of the log.
    pub other_version: u64,
    /// Lines that are no entry, such as one that a crash has cut off.
    pub unreadable: u64,
}

/// End of the log of a daemon that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// The daemon left in order.
    Left {
        /// Its last round.
        round: u64,
    },
    /// It was killed, or its machine failed.
    Broken {
        /// Its last round.
        round: u64,
        /// The kind of the last entry.
        kind: String,
    },
}

impl LogEnd {
    /// The end of these entries; `None` if there is none.
    pub fn of(entries: &[Entry]) -> Option<Self> {
        let last = entries.last()?;
        let round = last.round;
        Some(match &last.kind {
            Kind::Phase { phase } if phase == Phase::Left.word() => Self::Left { round },
            kind => Self::Broken {
                round,
                kind: kind.name().to_owned(),
            },
        })
    }
}

/// The entries of a daemon's log, oldest first.
///
/// # Errors
/// If there is no log, or a file cannot be read. Lines that are no entries are counted, not errors.
pub fn read_dir(dir: &Path) -> io::Result<(Vec<Entry>, Skipped)> {
    let mut entries = Vec::new();
    let mut skipped = Skipped::default();
    let mut found = false;
    for number in (0..FILES).rev() {
        match File::open(path(dir, number)) {
            Ok(file) => {
                found = true;
                read(bounded(file), &mut entries, &mut skipped)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if found {
        Ok((entries, skipped))
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The entries of one file of a log.
///
/// # Errors
/// If the file cannot be read. Lines that are no entries are counted, not errors.
pub fn read_file(file: &Path) -> io::Result<(Vec<Entry>, Skipped)> {
    let mut entries = Vec::new();
    let mut skipped = Skipped::default();
    read(bounded(File::open(file)?), &mut entries, &mut skipped)?;
    Ok((entries, skipped))
}

/// A file, up to the bytes that a log has: another file of its name may have no line feed and no end.
fn bounded(file: File) -> impl BufRead {
    BufReader::new(file.take(FILE_BYTES_MAX))
}

fn read(mut from: impl BufRead, into: &mut Vec<Entry>, skipped: &mut Skipped) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match entry(&line) {
            Ok(entry) => into.push(entry),
            Err(true) => skipped.other_version += 1,
            Err(false) if line.trim_ascii().is_empty() => {}
            Err(false) => skipped.unreadable += 1,
        }
    }
}

/// The entry of a line; otherwise whether it is of another version.
fn entry(line: &[u8]) -> Result<Entry, bool> {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(false);
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v: VERSION }) => serde_json::from_slice(line).map_err(|_| false),
        Ok(_) => Err(true),
        Err(_) => Err(false),
    }
}

/// The number of the last entry; zero without one.
pub(super) fn last_seq(dir: &Path) -> u64 {
    // The last file may have just been begun.
    let last = |number| {
        let mut entries = Vec::new();
        let file = File::open(path(dir, number)).ok()?;
        read(bounded(file), &mut entries, &mut Skipped::default()).ok()?;
        entries.iter().map(|entry| entry.seq).max()
    };
    last(0).or_else(|| last(1)).unwrap_or(0)
}

/// The most bytes of one read.
const READ_BYTES_MAX: u64 = 1 << 20;

/// A log that is read from where the last read ended.
#[derive(Debug)]
pub(crate) struct Tail {
    file: PathBuf,
    read: u64,
}

impl Tail {
    /// The log of a daemon's directory, from its beginning.
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            file: path(dir, 0),
            read: 0,
        }
    }

    /// The entries that were added. There are none while there is no log. A line that is not whole yet is
    /// read the next time.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub(crate) fn more(&mut self) -> io::Result<Vec<Entry>> {
        let mut file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() < self.read {
            // The log goes on in a new file.
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |last| last + 1);
        self.read += whole as u64;
        let mut entries = Vec::new();
        read(&bytes[..whole], &mut entries, &mut Default::default())?;
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(seq: u64) -> String {
        format!(
            "{{\"v\":1,\"seq\":{seq},\"time\":1.5,\"daemon\":\"ab\",\"round\":0,\"kind\":\"saved\"}}\n"
        )
    }

    #[test]
    fn each_entry_is_read_once_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(dir.path());
        let numbers = |tail: &mut Tail| -> Vec<u64> {
            let entries = tail.more().unwrap();
            entries.iter().map(|entry| entry.seq).collect()
        };
        assert!(numbers(&mut tail).is_empty(), "there is no log yet");
        let name = path(dir.path(), 0);
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&name)
            .unwrap();
        let (half, rest) = (&line(2)[..30], &line(2)[30..]);
        file.write_all((line(1) + half).as_bytes()).unwrap();
        assert_eq!(numbers(&mut tail), [1]);
        assert!(numbers(&mut tail).is_empty());
        file.write_all(rest.as_bytes()).unwrap();
        assert_eq!(numbers(&mut tail), [2]);
        std::fs::rename(&name, path(dir.path(), 1)).unwrap();
        std::fs::write(&name, line(3)).unwrap();
        assert_eq!(numbers(&mut tail), [3], "the log goes on in a new file");
    }
}
