//! The file `openings` in the daemon's directory: with which parameters its last rounds began, a line
//! each. After a restart of the whole swarm the daemons confirm each other's states with it.
//!
//! Lines are only added, and not synced: what a power cut takes, others remember. Once in a while the
//! file is written again without its oldest lines.

use crate::store::{append_private, write_private};
use murmurate_protocol::limits::OPENINGS_MAX;
use murmurate_protocol::{Base, Digest, Round};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Lines of the file, beyond which the oldest ones are removed.
const LINES_MAX: usize = 2 * OPENINGS_MAX;

/// With which parameters the last rounds began.
#[derive(Debug)]
pub(super) struct Openings {
    path: PathBuf,
    last: VecDeque<Base>,
    lines: usize,
    file: Option<File>,
    /// Set once the last line could not be written, which was reported.
    failed: bool,
}

impl Openings {
    /// Those of earlier lives. A file that cannot be read is an empty one: the others remember.
    pub(super) fn new(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut openings = Self {
            path,
            last: VecDeque::new(),
            lines: 0,
            file: None,
            failed: false,
        };
        for base in text.lines().filter_map(read) {
            openings.keep(base);
        }
        openings
    }

    /// The last ones, oldest first.
    pub(super) fn all(&self) -> Vec<Base> {
        self.last.iter().copied().collect()
    }

    fn keep(&mut self, base: Base) {
        if self.last.len() == OPENINGS_MAX {
            self.last.pop_front();
        }
        self.last.push_back(base);
    }

    /// Adds one.
    ///
    /// # Errors
    /// If the file cannot be written, once until it can be again.
    pub(super) fn add(&mut self, base: Base) -> Result<(), String> {
        let reported = self.failed;
        let added = self.write(base);
        self.failed = added.is_err();
        if self.failed {
            // Half a line may be there.
            self.file = None;
        }
        if reported { Ok(()) } else { added }
    }

    fn write(&mut self, base: Base) -> Result<(), String> {
        self.keep(base);
        match &mut self.file {
            Some(file) if self.lines < LINES_MAX => {
                self.lines += 1;
                let written = file.write_all(line(base).as_bytes());
                written.map_err(|error| error.to_string())
            }
            // The last line of an earlier life may have no end.
            _ => self.rewrite(),
        }
    }

    fn rewrite(&mut self) -> Result<(), String> {
        let text: String = self.last.iter().copied().map(line).collect();
        write_private(&self.path, text.as_bytes()).map_err(|error| error.to_string())?;
        self.lines = self.last.len();
        self.file = Some(append_private(&self.path).map_err(|error| error.to_string())?);
        Ok(())
    }
}

fn line(base: Base) -> String {
    format!("{} {}\n", base.round.0, base.anchor.to_hex())
}

fn read(line: &str) -> Option<Base> {
    let (round, anchor) = line.split_once(' ')?;
    Some(Base {
        round: Round(round.parse().ok()?),
        anchor: Digest::from_hex(anchor)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(round: u64) -> Base {
        Base {
            round: Round(round),
            anchor: Digest::of(&round.to_le_bytes()),
        }
    }

    #[test]
    fn the_last_ones_come_back_and_the_file_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openings");
        let mut first = Openings::new(path.clone());
        let rounds = 3 * LINES_MAX as u64;
        for round in 0..rounds {
            first.add(base(round)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= LINES_MAX);
        let last: Vec<Base> = (rounds - OPENINGS_MAX as u64..rounds).map(base).collect();
        assert_eq!(Openings::new(path).all(), last);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("away").join("openings");
        let mut openings = Openings::new(path.clone());
        assert!(openings.add(base(1)).is_err());
        assert!(openings.add(base(2)).is_ok());
        std::fs::create_dir(dir.path().join("away")).unwrap();
        openings.add(base(3)).unwrap();
        assert_eq!(Openings::new(path).all(), [base(1), base(2), base(3)]);
    }

    #[test]
    fn half_a_line_and_nonsense_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("openings");
        let whole = line(base(7));
        std::fs::write(&path, format!("\nx\n9 abc\n{whole}{}", &whole[..30])).unwrap();
        let mut openings = Openings::new(path.clone());
        assert_eq!(openings.all(), [base(7)]);
        openings.add(base(8)).unwrap();
        assert_eq!(Openings::new(path).all(), [base(7), base(8)]);
    }
}
