//! Text as bytes: one file, or all files of a folder one after the other. The bytes are not
//! decoded, because a byte-level model accepts any bytes.

use super::error::{DEPTH_MAX, DataError, Problem, TEXT_BYTES_MAX, at};
use super::first_bytes::{MARK, foreign_format};
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// All bytes of a file, or of all files of a folder and its sub-folders in the order of their
/// names (as bytes, so that it is the same on every machine), joined by a newline. Names that
/// begin with a dot are left out.
///
/// # Errors
/// If a file cannot be read, or there is no text or too much.
pub(super) fn read_files(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut text = Vec::new();
    each_document(path, &mut |_, bytes| {
        if !text.is_empty() {
            text.push(b'\n');
        }
        if text.is_empty() {
            text = bytes
        } else {
            text.extend(bytes)
        }
        Ok(())
    })?;
    Ok(text)
}

/// Takes a file and its bytes.
pub(super) type OnDocument<'a> = dyn FnMut(&Path, Vec<u8>) -> Result<(), DataError> + 'a;

/// Calls `f(file, bytes)` for the files of [`read_files`].
///
/// # Errors
/// As [`read_files`], and those of `f`.
pub(super) fn each_document(path: &Path, f: &mut OnDocument<'_>) -> Result<(), DataError> {
    let mut size = 0;
    for file in files_of(path)? {
        let (mut bytes, room) = (Vec::new(), TEXT_BYTES_MAX - size);
        let opened = File::open(&file).map_err(at(&file))?;
        let read = opened.take(room + 1).read_to_end(&mut bytes);
        let read = read.map_err(at(&file))?;
        if read as u64 > room {
            return Err(at(path)(Problem::TooLarge));
        }
        size += read as u64;
        if let Some(format) = foreign_format(&bytes) {
            let needed = "text";
            return Err(at(&file)(Problem::Foreign { format, needed }));
        }
        if bytes.starts_with(MARK) {
            bytes.drain(..MARK.len());
        }
        f(&file, bytes)?;
    }
    match size {
        0 => Err(at(path)(Problem::Empty)),
        _ => Ok(()),
    }
}

/// The file, or all files of a folder and its sub-folders in the order of their names.
pub(super) fn files_of(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::new();
    append(path, &mut files, 0)?;
    Ok(files)
}

fn append(path: &Path, files: &mut Vec<PathBuf>, depth: usize) -> Result<(), DataError> {
    if depth > DEPTH_MAX {
        return Err(at(path)(Problem::TooDeep));
    }
    if !fs::metadata(path).map_err(at(path))?.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(at(path))? {
        names.push(entry.map_err(at(path))?.file_name());
    }
    names.sort_unstable();
    let seen = names
        .iter()
        .filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    seen.into_iter()
        .try_for_each(|name| append(&path.join(name), files, depth + 1))
}

/// Ranges of the training bytes and of the held-out bytes, which are the last `held_out` share.
pub fn split_text(len: usize, held_out: f64) -> (Range<usize>, Range<usize>) {
    let held = ((len as f64 * held_out).ceil() as usize).min(len);
    (0..len - held, len - held..len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_in_the_order_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("c.txt"), "three").unwrap();
        fs::write(dir.path().join("b/x.txt"), "two").unwrap();
        fs::write(dir.path().join("a.txt"), "one").unwrap();
        fs::write(dir.path().join(".hidden"), "no").unwrap();
        assert_eq!(read_files(dir.path()).unwrap(), b"one\ntwo\nthree");
        assert_eq!(read_files(&dir.path().join("a.txt")).unwrap(), b"one");
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("novel.txt");
        let error = read_files(&missing).unwrap_err().to_string();
        assert!(error.contains("novel.txt"), "{error}");
        let empty = read_files(dir.path()).unwrap_err();
        assert!(matches!(empty.problem(), Problem::Empty), "{empty}");
    }

    #[test]
    fn a_binary_file_is_refused_by_its_format() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "text").unwrap();
        fs::write(dir.path().join("b"), b"PAR1\x15\x04").unwrap();
        let error = read_files(dir.path()).unwrap_err().to_string();
        assert!(error.contains("b: this is Parquet, not text"), "{error}");
    }

    #[test]
    fn the_end_is_held_out() {
        assert_eq!(split_text(1000, 0.05), (0..950, 950..1000));
        assert_eq!(split_text(3, 0.5), (0..1, 1..3));
    }
}
