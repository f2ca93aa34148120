//! Writes a safetensors file in a stream.

use super::header::{self, Entry};
use super::{TensorFile, VALUES_AT_A_TIME};
use crate::store::StoreError;
use crate::store::files::{PRIVATE, create};
use murmurate_protocol::{Digest, SortedMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A safetensors file that is being written.
///
/// In the format the header comes first, but it is complete only at the end. The writer leaves room
/// for it and fills it in at the end. If the header needs more room, the data is moved once on the
/// disk.
#[derive(Debug)]
pub struct TensorWriter {
    path: PathBuf,
    file: File,
    room: usize,
    metadata: SortedMap<String, String>,
    entries: SortedMap<String, Entry>,
    blobs: Vec<(String, Vec<u8>)>,
    written: u64,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl TensorWriter {
    /// Creates `path` with `room` bytes for the header.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, room: usize) -> Result<Self, StoreError> {
        let room = room.next_multiple_of(8);
        let mut file = create(path, PRIVATE)?;
        file.seek(SeekFrom::Start(8 + room as u64))
            .map_err(|e| StoreError::io("write", path, e))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            room,
            metadata: SortedMap::new(),
            entries: SortedMap::new(),
            blobs: Vec::new(),
            written: 0,
            hasher: blake3::Hasher::new(),
            buffer: Vec::with_capacity(4 * VALUES_AT_A_TIME),
        })
    }

    /// Adds free text to the header.
    pub fn describe(&mut self, key: &str, text: &str) {
        self.metadata.insert(key.to_owned(), text.to_owned());
    }

    /// True where there is an entry `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name) || self.blobs.iter().any(|(n, _)| n == name)
    }

    /// Appends a tensor of this shape.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn tensor(&mut self, name: &str, shape: &[u64], values: &[f32]) -> Result<(), StoreError> {
        let start = self.written;
        for some in values.chunks(VALUES_AT_A_TIME) {
            self.buffer.clear();
            self.buffer
                .extend(some.iter().flat_map(|v| v.to_le_bytes()));
            self.flush_buffer()?;
        }
        self.enter(name, "F32", shape.to_vec(), start);
        Ok(())
    }

    /// Adds bytes. They are written after all tensors, which keeps the tensors aligned.
    pub fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.blobs.push((name.to_owned(), bytes.to_vec()));
    }

    /// Writes the header and flushes the file to stable storage.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(mut self) -> Result<TensorFile, StoreError> {
        for (name, bytes) in std::mem::take(&mut self.blobs) {
            let start = self.written;
            self.buffer.clear();
            self.buffer.extend_from_slice(&bytes);
            self.flush_buffer()?;
            self.enter(&name, "U8", vec![bytes.len() as u64], start);
        }
        let header = header::encode(&self.metadata, &self.entries, self.room);
        let mut head = (header.len() as u64).to_le_bytes().to_vec();
        head.extend_from_slice(&header);
        self.settle(&head)
            .map_err(|e| StoreError::io("write", &self.path, e))?;
        let name = self
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(TensorFile {
            name,
            bytes: head.len() as u64 + self.written,
            header_blake3: Digest::of(&head).to_hex(),
            data_blake3: self.hasher.finalize().to_hex().to_string(),
        })
    }

    fn settle(&mut self, head: &[u8]) -> io::Result<()> {
        let room = 8 + self.room as u64;
        if head.len() as u64 > room {
            self.move_data(room, head.len() as u64)?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(head)?;
        self.file.set_len(head.len() as u64 + self.written)?;
        self.file.sync_all()
    }

    /// Moves the data from byte `from` to byte `to`. Starts with the last piece, because the ranges
    /// overlap.
    fn move_data(&mut self, from: u64, to: u64) -> io::Result<()> {
        let mut source = File::open(&self.path)?;
        let mut piece = vec![0u8; 4 * VALUES_AT_A_TIME];
        let mut left = self.written;
        while left > 0 {
            let n = left.min(piece.len() as u64);
            left -= n;
            let piece = &mut piece[..n as usize];
            source.seek(SeekFrom::Start(from + left))?;
            source.read_exact(piece)?;
            self.file.seek(SeekFrom::Start(to + left))?;
            self.file.write_all(piece)?;
        }
        Ok(())
    }

    fn flush_buffer(&mut self) -> Result<(), StoreError> {
        self.file
            .write_all(&self.buffer)
            .map_err(|e| StoreError::io("write", &self.path, e))?;
        self.hasher.update(&self.buffer);
        self.written += self.buffer.len() as u64;
        Ok(())
    }

    fn enter(&mut self, name: &str, dtype: &str, shape: Vec<u64>, start: u64) {
        let entry = Entry {
            dtype: dtype.to_owned(),
            shape,
            data_offsets: (start, self.written),
        };
        self.entries.insert(name.to_owned(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::{Dtype, SafeTensors};

    fn write(room: usize) -> (tempfile::TempDir, TensorFile, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.safetensors");
        let mut writer = TensorWriter::create(&path, room).unwrap();
        writer.describe("task", "[task]\nmodel = \"mlp\"");
        writer.bytes("odd", b"abc");
        writer
            .tensor("a.weight", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, -0.0])
            .unwrap();
        let many: Vec<f32> = (0..200_000).map(|i| i as f32).collect();
        writer.tensor("b", &[200_000], &many).unwrap();
        writer.tensor("empty", &[0], &[]).unwrap();
        let file = writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (dir, file, bytes)
    }

    fn check(file: &TensorFile, bytes: &[u8]) {
        assert_eq!(file.bytes, bytes.len() as u64);
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        assert_eq!(tensors.len(), 4);
        let a = tensors.tensor("a.weight").unwrap();
        assert_eq!((a.dtype(), a.shape()), (Dtype::F32, &[2, 3][..]));
        assert_eq!(a.data()[20..], (-0.0f32).to_le_bytes());
        let b = tensors.tensor("b").unwrap();
        assert_eq!(b.data()[4 * 199_999..], 199_999f32.to_le_bytes());
        assert_eq!(tensors.tensor("odd").unwrap().data(), b"abc");
        let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
        assert!(metadata.metadata().as_ref().unwrap()["task"].contains("mlp"));
    }

    #[test]
    fn the_reference_implementation_reads_what_is_written() {
        let (_dir, file, bytes) = write(4096);
        check(&file, &bytes);
    }

    #[test]
    fn a_header_that_outgrows_its_room_moves_the_data() {
        let (_dir, file, bytes) = write(8);
        check(&file, &bytes);
    }
}
