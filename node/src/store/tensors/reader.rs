//! Reads a safetensors file in pieces.

use super::header::{self, Entry, HEADER_BYTES_MAX};
use super::{TensorFile, VALUES_AT_A_TIME};
use crate::store::StoreError;
use murmurate_protocol::{Digest, SortedMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An open safetensors file: its header in memory, its data on the disk.
#[derive(Debug)]
pub struct TensorReader {
    path: PathBuf,
    data_start: u64,
    data_bytes: u64,
    head_digest: Digest,
    metadata: SortedMap<String, String>,
    entries: SortedMap<String, Entry>,
}

impl TensorReader {
    /// Reads the header of `path` and checks that every tensor lies within the file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a safetensors file.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let damaged = |reason: String| StoreError::damaged(path, reason);
        let mut file = File::open(path).map_err(|e| StoreError::io("open", path, e))?;
        let io = |e| StoreError::io("read", path, e);
        let total = file.metadata().map_err(io)?.len();
        let mut length = [0u8; 8];
        if total < 8 {
            return Err(damaged(
                "it is shorter than a safetensors header".to_owned(),
            ));
        }
        file.read_exact(&mut length).map_err(io)?;
        let header_bytes = u64::from_le_bytes(length);
        if header_bytes > HEADER_BYTES_MAX || header_bytes > total - 8 {
            return Err(damaged("it is not a whole safetensors file".to_owned()));
        }
        let mut head = length.to_vec();
        head.resize(8 + header_bytes as usize, 0);
        file.read_exact(&mut head[8..]).map_err(io)?;
        let (metadata, entries) = header::decode(&head[8..]).map_err(damaged)?;
        let data_bytes = total - 8 - header_bytes;
        if let Some((name, _)) = entries.iter().find(|(_, entry)| !entry.fits(data_bytes)) {
            return Err(damaged(format!("`{name}` does not lie within the file")));
        }
        Ok(Self {
            path: path.to_owned(),
            data_start: 8 + header_bytes,
            data_bytes,
            head_digest: Digest::of(&head),
            metadata,
            entries,
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The free text under `key` in the header.
    pub fn description(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// Names of all entries, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// True where there is an entry `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Shape of the f32 tensor `name`; `None` if there is none.
    pub fn shape(&self, name: &str) -> Option<&[u64]> {
        self.entries
            .get(name)
            .filter(|e| e.dtype == "F32")
            .map(|e| e.shape.as_slice())
    }

    /// Checks the size and both hashes against the manifest's entry.
    ///
    /// # Errors
    /// If they differ, or the file cannot be read.
    pub fn verify(&self, expected: &TensorFile) -> Result<(), StoreError> {
        let damaged = |reason: &str| Err(StoreError::damaged(&self.path, reason));
        if self.data_start + self.data_bytes != expected.bytes {
            return damaged("it has another size than its manifest says");
        }
        if self.head_digest.to_hex() != expected.header_blake3 {
            return damaged("the hash of its header differs from its manifest's");
        }
        let mut hasher = blake3::Hasher::new();
        self.pieces(0, self.data_bytes, |piece| {
            hasher.update(piece);
        })?;
        if hasher.finalize().to_hex().as_str() != expected.data_blake3 {
            return damaged("the hash of its data differs from its manifest's");
        }
        Ok(())
    }

    /// Copies the f32 tensor `name` into `into`. Returns `Ok(false)` if there is no tensor with
    /// this name and length.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, name: &str, into: &mut [f32]) -> Result<bool, StoreError> {
        let Some(entry) = self.entries.get(name).filter(|e| e.dtype == "F32") else {
            return Ok(false);
        };
        if entry.bytes() != 4 * into.len() as u64 {
            return Ok(false);
        }
        let mut rest = into;
        self.pieces(entry.data_offsets.0, entry.bytes(), |piece| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(piece.len() / 4);
            for (value, bytes) in now.iter_mut().zip(piece.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*bytes);
            }
            rest = later;
        })?;
        Ok(true)
    }

    /// The bytes of the entry `name`; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_bytes(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(entry) = self.entries.get(name).filter(|e| e.dtype == "U8") else {
            return Ok(None);
        };
        let mut all = Vec::new();
        self.pieces(entry.data_offsets.0, entry.bytes(), |piece| {
            all.extend_from_slice(piece)
        })?;
        Ok(Some(all))
    }

    /// Passes `bytes` bytes of the data, beginning at `start`, to `each` in pieces. The length of
    /// each piece except the last is a multiple of four.
    fn pieces(
        &self,
        start: u64,
        bytes: u64,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let io = |e| StoreError::io("read", &self.path, e);
        let mut file = File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(self.data_start + start))
            .map_err(io)?;
        let mut piece = vec![0u8; bytes.min(4 * VALUES_AT_A_TIME as u64) as usize];
        let mut left = bytes;
        while left > 0 {
            let n = left.min(piece.len() as u64) as usize;
            file.read_exact(&mut piece[..n]).map_err(io)?;
            each(&piece[..n]);
            left -= n as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tensors::TensorWriter;

    #[test]
    fn what_was_written_comes_back_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.safetensors");
        let values: Vec<f32> = (0..100_003).map(|i| (i as f32).sqrt()).collect();
        let mut writer = TensorWriter::create(&path, 64).unwrap();
        writer.tensor("v", &[100_003], &values).unwrap();
        writer.bytes("b", b"xyz");
        let file = writer.finish().unwrap();
        let reader = TensorReader::open(&path).unwrap();
        reader.verify(&file).unwrap();
        let mut back = vec![0.0; values.len()];
        assert!(reader.read("v", &mut back).unwrap());
        assert_eq!(back, values);
        assert_eq!(reader.read_bytes("b").unwrap().unwrap(), b"xyz");
        assert!(!reader.read("w", &mut back).unwrap());
        assert!(!reader.read("v", &mut back[1..]).unwrap());
    }

    #[test]
    fn lengths_that_reach_beyond_the_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.safetensors");
        let cases: [&[u8]; 4] = [
            b"",
            &u64::MAX.to_le_bytes(),
            b"\x10\0\0\0\0\0\0\0{}",
            b"\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}         ",
        ];
        for bytes in cases {
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(
                TensorReader::open(&path),
                Err(StoreError::Damaged { .. })
            ));
        }
    }
}
