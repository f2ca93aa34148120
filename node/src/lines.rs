//! Files of lines that survive crashes and full disks: a line that was cut off spoils no other.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Lines {
    file: File,
    bytes: u64,
    /// The last write has failed, and may have left the beginning of a line.
    torn: bool,
}

impl Lines {
    /// Opens a file to append, or creates it. A line that a crash or a full disk has cut off is ended.
    ///
    /// # Errors
    /// If the file cannot be opened, read or written.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path)?;
        let bytes = file.seek(SeekFrom::End(0))?;
        let mut torn = false;
        if bytes > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            torn = last != *b"\n";
        }
        Ok(Self { file, bytes, torn })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends lines that each end with a line feed.
    ///
    /// # Errors
    /// If the disk is full, for example. The next lines begin a line of their own.
    pub(crate) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.write_all(b"\n")?;
            self.bytes += 1;
        }
        let written = self.file.write_all(lines);
        self.torn = written.is_err();
        self.bytes += lines.len() as u64;
        written
    }

    /// Replaces the file by a device without room.
    #[cfg(test)]
    pub(crate) fn fill(&mut self, full: File) {
        self.file = full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_torn_line_begins_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "one\ntw").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        lines.write(b"three\n").unwrap();
        let whole = std::mem::replace(
            &mut lines.file,
            OpenOptions::new().write(true).open("/dev/full").unwrap(),
        );
        assert!(lines.write(b"four\n").is_err());
        lines.fill(whole);
        lines.write(b"five\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "one\ntw\nthree\n\nfive\n");
        assert_eq!(Lines::open(&path).unwrap().bytes(), text.len() as u64);
    }
}
