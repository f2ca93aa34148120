//! Reads logs: of this version or another one, whole or torn.

use super::entry::{Entry, Kind, VERSION};
use super::files::{FILE_BYTES_MAX, FILES, path};
use murmurate_protocol::Phase;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

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

/// How the log of a daemon that does not run ends.
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
                kind: kind.name(),
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
    match found {
        true => Ok((entries, skipped)),
        false => Err(io::ErrorKind::NotFound.into()),
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

pub(super) fn read(
    mut from: impl BufRead,
    into: &mut Vec<Entry>,
    skipped: &mut Skipped,
) -> io::Result<()> {
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
