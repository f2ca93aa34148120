//! Passages of text files. They begin and end between lines, so that no word and no character is cut.

use super::piece::Piece;
use crate::data::BadRecords;
use crate::data::error::{DataError, Problem, at};
use crate::data::first_bytes::MARK;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// Bytes in which the end of a line is looked for. Text with longer lines is cut between characters.
const LINE_SEARCH: u64 = 1 << 16;

/// Reads the lines that begin in a range of bytes.
pub(super) fn read(
    path: &Path,
    bad: &BadRecords,
    range: &Range<u64>,
    f: &mut dyn FnMut(Piece) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let io = at(path);
    let mut file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let start = boundary(&mut file, range.start, size).map_err(io)?;
    let end = boundary(&mut file, range.end, size).map_err(io)?;
    let mut bytes = Vec::with_capacity((end - start) as usize + 1);
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    file.take(end - start).read_to_end(&mut bytes).map_err(io)?;
    let ends = end == size;
    if start == 0 && bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    if bytes.is_empty() {
        return Ok(());
    }
    if ends && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    let text = lines(path, start as usize, bytes, bad)?;
    f(Piece::Text { text, ends })
}

/// The text of a file from byte `start` on, without lines that are left out because they are not UTF-8.
pub(in crate::data) fn lines(
    path: &Path,
    start: usize,
    bytes: Vec<u8>,
    bad: &BadRecords,
) -> Result<String, DataError> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let (mut text, mut begin) = (String::with_capacity(bytes.len()), start);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let found = str::from_utf8(line);
        let wrong = |error: std::str::Utf8Error| Problem::NotText(begin + error.valid_up_to());
        text.extend(bad.checked(found.map_err(wrong).map_err(at(path)))?);
        begin += line.len();
    }
    Ok(text)
}

/// Where the line after a position begins. A position at the beginning of a line stays.
fn boundary(file: &mut File, at: u64, size: u64) -> io::Result<u64> {
    if at == 0 || at >= size {
        return Ok(at.min(size));
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at - 1))?;
    file.take(LINE_SEARCH).read_to_end(&mut bytes)?;
    if let Some(newline) = bytes.iter().position(|&byte| byte == b'\n') {
        return Ok(at + newline as u64);
    }
    // Bytes 0b10xx_xxxx continue a character of UTF-8, which has at most three of them.
    let rest = bytes.get(1..).unwrap_or_default().iter().take(3);
    let cut = rest.take_while(|&&byte| byte & 0xc0 == 0x80).count();
    Ok(at + cut as u64)
}
