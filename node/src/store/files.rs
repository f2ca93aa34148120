//! Replaces small files atomically: after a crash, each is the old or the new version. And one daemon per
//! directory, by an exclusive file lock, which the system releases when its holder ends, in any way.

use crate::store::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Permissions of what only this user may read.
pub(crate) const PRIVATE: u32 = 0o600;

/// Writes `bytes` to a temporary file beside `path`, syncs it, renames it to `path` and syncs the
/// directory. After a crash at any instant, the file is the complete old or new version.
///
/// # Errors
/// If a step fails. The old file is then intact.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    replace(path, bytes, 0o644)
}

/// As `write_atomically`, readable by this user only.
///
/// # Errors
/// If a step fails. The old file is then intact.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    replace(path, bytes, PRIVATE)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    let temporary = temporary_beside(path);
    let written = create(&temporary, mode).and_then(|mut file| {
        file.write_all(bytes)
            .map_err(|e| StoreError::io("write", &temporary, e))?;
        file.sync_all()
            .map_err(|e| StoreError::io("sync", &temporary, e))
    });
    let renamed = written.and_then(|()| {
        std::fs::rename(&temporary, path).map_err(|e| StoreError::io("rename", &temporary, e))
    });
    if renamed.is_err() {
        // The temporary file is incomplete. If it cannot be removed, it only costs space.
        let _ = std::fs::remove_file(&temporary);
    }
    renamed?;
    sync_parent(path)
}

/// Checks that only its owner may read a file with a secret. The error says what to do.
#[cfg(unix)]
pub(crate) fn check_permissions(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path).map_err(|e| e.to_string())?;
    let mode = metadata.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!(
        "others may read it (mode {:o}); run chmod 600 on it",
        mode & 0o777
    ))
}

#[cfg(not(unix))]
pub(crate) fn check_permissions(_: &Path) -> Result<(), String> {
    Ok(())
}

/// Creates a directory that only this user may enter: checkpoints hold the model and the configuration.
/// One that is there keeps its permissions.
pub(crate) fn create_private(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Path of the temporary file that is later renamed to `path`.
pub(crate) fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Creates or truncates a file with these permissions.
pub(crate) fn create(path: &Path, mode: u32) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let opened = options.open(path).and_then(|file| {
        restrict(&file, mode)?;
        Ok(file)
    });
    opened.map_err(|e| StoreError::io("create", path, e))
}

/// Opens a private file, to which lines are added.
///
/// # Errors
/// If it is not there, or may not be written.
pub(crate) fn append_private(path: &Path) -> Result<File, StoreError> {
    let opened = OpenOptions::new().append(true).open(path);
    opened.map_err(|e| StoreError::io("open", path, e))
}

/// Sets the permissions of a file that is left over from a crash, and has its own.
#[cfg(unix)]
fn restrict(file: &File, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let now = file.metadata()?;
    if now.is_file() && now.permissions().mode() & 0o777 & !mode != 0 {
        file.set_permissions(PermissionsExt::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_: &File, _: u32) -> std::io::Result<()> {
    Ok(())
}

/// Makes a rename or a new name in the directory of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    sync_directory(parent)
}

/// Makes the names in `dir` durable.
pub(crate) fn sync_directory(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|e| StoreError::io("sync", dir, e))
}

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
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, b"old").unwrap();
        // A directory at the temporary path makes the write fail.
        std::fs::create_dir(temporary_beside(&path)).unwrap();
        assert!(write_atomically(&path, b"new").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        std::fs::remove_dir(temporary_beside(&path)).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

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
