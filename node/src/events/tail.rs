//! Reads a daemon's log while it grows.

use super::entry::Entry;
use super::files::path;
use super::read::read;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most bytes of one read.
const READ_BYTES_MAX: u64 = 1 << 20;

/// A log that is read from where the last read ended.
#[derive(Debug)]
pub struct Tail {
    file: PathBuf,
    read: u64,
}

impl Tail {
    /// The log of a daemon's directory, from its beginning.
    pub fn new(dir: &Path) -> Self {
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
    pub fn more(&mut self) -> io::Result<Vec<Entry>> {
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
