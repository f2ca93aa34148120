//! Ensures one daemon per directory by an exclusive file lock, which the system releases when its
//! holder ends, in any way.

use crate::store::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Locks a daemon's directory until it is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    // Closing the file, also by SIGKILL, releases the lock, so no stale lock can remain.
    _file: File,
}

impl DirectoryLock {
    /// Locks `dir` and writes this process's id into the lock file.
    ///
    /// # Errors
    /// If another process holds the lock; the error names it.
    pub fn acquire(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| StoreError::io("open", &path, e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse {
                    dir: dir.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", &path, e)),
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        noted.map_err(|e| StoreError::io("write", &path, e))?;
        Ok(Self { _file: file })
    }
}

/// The process that wrote the lock file, as far as the file tells.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| text.trim().parse::<u32>().ok())
    {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_by_name_and_the_directory_is_free_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirectoryLock::acquire(dir.path()).unwrap();
        let line = DirectoryLock::acquire(dir.path()).unwrap_err().to_string();
        let expected = format!(
            "{} is in use by process {}; stop that daemon or give another --dir",
            dir.path().display(),
            std::process::id()
        );
        assert_eq!(line, expected);
        drop(first);
        DirectoryLock::acquire(dir.path()).unwrap();
    }
}
