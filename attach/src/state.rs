//! The state that a trainer has beside its parameters, such as an optimizer's: bytes that the daemon
//! keeps and does not interpret. Two files, so that a trainer that dies while it writes one leaves
//! the other.

use crate::error::AttachError;
use crate::limits::{STATE_BYTES_BASE, STATE_BYTES_PER_VALUE};
use crate::memory::shared_file;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// The two files, the one in use, and the size of the state in it.
#[derive(Debug)]
pub(crate) struct State {
    files: [File; 2],
    current: u8,
    /// Bytes in the file in use; `None` where there is no state.
    bytes: Option<u64>,
    /// The most that it may have.
    bytes_max: u64,
    /// The attached trainer has to take it back.
    pub(crate) is_news: bool,
    /// It belongs to the parameters in use.
    pub(crate) is_fresh: bool,
}

impl State {
    /// No state, for a model of this many values.
    pub(crate) fn new(values: usize) -> Result<Self, AttachError> {
        let file = || {
            shared_file("murmurate-state").map_err(|e| AttachError::Memory {
                bytes: 0,
                reason: e.to_string(),
            })
        };
        Ok(Self {
            files: [file()?, file()?],
            current: 0,
            bytes: None,
            bytes_max: STATE_BYTES_BASE + STATE_BYTES_PER_VALUE * values as u64,
            is_news: false,
            is_fresh: false,
        })
    }

    /// Both files.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.files[0].as_fd(), self.files[1].as_fd()]
    }

    /// The file in use and its bytes.
    pub(crate) fn held(&self) -> Option<(u8, u64)> {
        self.bytes.map(|bytes| (self.current, bytes))
    }

    /// The file not in use.
    pub(crate) const fn spare(&self) -> u8 {
        1 - self.current
    }

    /// The trainer says that it has written this number of bytes to the file not in use.
    ///
    /// # Errors
    /// One line, where that cannot be.
    pub(crate) fn written(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > self.bytes_max {
            let max = self.bytes_max;
            return Err(format!("a state of {bytes} bytes, at most {max} are kept"));
        }
        let file = &self.files[usize::from(self.spare())];
        let there = file.metadata().map_or(0, |m| m.len());
        if there < bytes {
            return Err(format!("a state of {bytes} bytes, but it wrote {there}"));
        }
        self.current = self.spare();
        self.bytes = Some(bytes);
        self.is_fresh = true;
        Ok(())
    }

    /// The bytes in use.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let Some((current, bytes)) = self.held() else {
            return Ok(None);
        };
        let mut all = vec![0; bytes as usize];
        self.files[usize::from(current)].read_exact_at(&mut all, 0)?;
        Ok(Some(all))
    }

    /// Takes bytes of a checkpoint, for the trainer to take back.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = &self.files[usize::from(self.spare())];
        file.set_len(0)?;
        file.write_all_at(bytes, 0)?;
        self.current = self.spare();
        self.bytes = Some(bytes.len() as u64);
        (self.is_news, self.is_fresh) = (true, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_beyond_what_was_written_is_refused() {
        let mut state = State::new(10).unwrap();
        state.put(b"old").unwrap();
        assert!(state.written(5).unwrap_err().contains("but it wrote 0"));
        assert!(state.written(u64::MAX).unwrap_err().contains("at most"));
        assert_eq!(state.read().unwrap().as_deref(), Some(&b"old"[..]));
        state.files[usize::from(state.spare())]
            .write_all_at(b"newer", 0)
            .unwrap();
        state.written(5).unwrap();
        assert_eq!(state.read().unwrap().as_deref(), Some(&b"newer"[..]));
    }
}
