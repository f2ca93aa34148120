//! The parameters that daemon and trainer both see: one memory file with two slots.
//!
//! The slot in use holds the parameters as the Executor knows them. A trainer writes a cut to the
//! other slot, which becomes the one in use once the trainer has said that it is complete. The daemon
//! reads and writes the file by position and never maps it, so no code here is unsafe.

use crate::error::AttachError;
use crate::limits::{COPY_THREADS_MAX, VALUES_AT_A_TIME};
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Why reading and writing cannot fail: both sides hold the file open, its size is sealed where the
/// system can do so, and its pages exist since it was made.
const HELD: &str = "the memory file is held open and has its full size";

/// The memory file, its slots, and what the trainer has not taken over yet.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
    values: usize,
    current: u8,
    /// Ranges of the slot in use that the trainer does not have: sorted, apart from each other.
    news: Vec<Range<usize>>,
    buffer: Vec<f32>,
}

impl Memory {
    /// A file with two slots of this many values.
    pub(crate) fn new(values: usize) -> Result<Self, AttachError> {
        let bytes = 8 * values as u64;
        let failed = |e: std::io::Error| AttachError::Memory {
            bytes,
            reason: e.to_string(),
        };
        let file = shared_file("murmurate-parameters").map_err(failed)?;
        file.set_len(bytes).map_err(failed)?;
        // All pages now: too little memory is an error here and not the end of a process later.
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals};
            fallocate(&file, FallocateFlags::empty(), 0, bytes).map_err(|e| failed(e.into()))?;
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            fcntl_add_seals(&file, seals).map_err(|e| failed(e.into()))?;
        }
        Ok(Self {
            file,
            values,
            current: 0,
            news: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// The file.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The slot in use.
    pub(crate) const fn current(&self) -> u8 {
        self.current
    }

    /// The other slot.
    pub(crate) const fn spare(&self) -> u8 {
        1 - self.current
    }

    /// The trainer has written all its parameters to the other slot: that one is in use from here.
    pub(crate) fn swap(&mut self) {
        self.current = self.spare();
        self.news.clear();
    }

    /// Compares the two slots. Reads up to the first piece that differs.
    pub(crate) fn is_unchanged(&self) -> bool {
        let piece = VALUES_AT_A_TIME.min(self.values);
        let (mut ours, mut theirs) = (vec![0.0; piece], vec![0.0; piece]);
        (0..self.values).step_by(piece.max(1)).all(|offset| {
            let len = piece.min(self.values - offset);
            self.copy_out(self.current, offset, &mut ours[..len]);
            self.copy_out(self.spare(), offset, &mut theirs[..len]);
            ours[..len] == theirs[..len]
        })
    }

    /// Ranges that the trainer has to take over.
    pub(crate) fn news(&self) -> &[Range<usize>] {
        &self.news
    }

    pub(crate) fn taken_over(&mut self) {
        self.news.clear();
    }

    pub(crate) fn all_is_new(&mut self) {
        self.news.clear();
        self.news.push(0..self.values);
    }

    pub(crate) fn read(&self, offset: usize, into: &mut [f32]) {
        self.copy_out(self.current, offset, into);
    }

    /// As [`Memory::read`], of the other slot: in mode `gradients` a gradient.
    pub(crate) fn read_spare(&self, offset: usize, into: &mut [f32]) {
        self.copy_out(self.spare(), offset, into);
    }

    pub(crate) fn write(&mut self, offset: usize, values: &[f32]) {
        self.note(offset..offset + values.len());
        let (file, start) = (&self.file, self.position(self.current, offset));
        let part = part_of(values.len());
        std::thread::scope(|scope| {
            let mut parts = values.chunks(part).zip((start..).step_by(4 * part));
            let first = parts.next();
            for (piece, at) in parts {
                scope.spawn(move || put(file, piece, at));
            }
            if let Some((piece, at)) = first {
                put(file, piece, at);
            }
        });
    }

    /// Calls `f(offset, values)` for pieces of a range in ascending order; what `f` leaves becomes the parameters.
    pub(crate) fn edit(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &mut [f32])) {
        self.note(range.clone());
        self.pieces(range, |memory, offset, piece| {
            f(offset, piece);
            put(&memory.file, piece, memory.position(memory.current, offset));
        });
    }

    /// As [`Memory::edit`], and changes nothing.
    pub(crate) fn view(&mut self, range: Range<usize>, f: &mut dyn FnMut(usize, &[f32])) {
        self.pieces(range, |_, offset, piece| f(offset, piece));
    }

    fn pieces(&mut self, range: Range<usize>, mut f: impl FnMut(&Self, usize, &mut [f32])) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(VALUES_AT_A_TIME, 0.0);
        for offset in range.clone().step_by(VALUES_AT_A_TIME) {
            let piece = &mut buffer[..VALUES_AT_A_TIME.min(range.end - offset)];
            take(&self.file, piece, self.position(self.current, offset));
            f(self, offset, piece);
        }
        self.buffer = buffer;
    }

    fn copy_out(&self, slot: u8, offset: usize, into: &mut [f32]) {
        let (file, start) = (&self.file, self.position(slot, offset));
        let part = part_of(into.len());
        std::thread::scope(|scope| {
            let mut parts = into.chunks_mut(part).zip((start..).step_by(4 * part));
            let first = parts.next();
            for (piece, at) in parts {
                scope.spawn(move || take(file, piece, at));
            }
            if let Some((piece, at)) = first {
                take(file, piece, at);
            }
        });
    }

    const fn position(&self, slot: u8, offset: usize) -> u64 {
        4 * (slot as u64 * self.values as u64 + offset as u64)
    }

    /// Adds a range to the news and joins it with those that it touches.
    fn note(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let mut joined = range;
        self.news.retain(|other| {
            let apart = other.end < joined.start || joined.end < other.start;
            if !apart {
                joined = joined.start.min(other.start)..joined.end.max(other.end);
            }
            apart
        });
        let at = self
            .news
            .partition_point(|other| other.start < joined.start);
        self.news.insert(at, joined);
    }
}

/// How many values one thread copies: the trainer waits meanwhile, so its cores are free.
fn part_of(len: usize) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = threads
        .min(COPY_THREADS_MAX)
        .min(len / VALUES_AT_A_TIME + 1);
    len.div_ceil(threads).max(1)
}

fn take(file: &File, into: &mut [f32], at: u64) {
    let bytes = bytemuck::cast_slice_mut(into);
    file.read_exact_at(bytes, at).expect(HELD);
}

fn put(file: &File, values: &[f32], at: u64) {
    let bytes = bytemuck::cast_slice(values);
    file.write_all_at(bytes, at).expect(HELD);
}

/// A file in memory that no path leads to.
#[cfg(target_os = "linux")]
pub(crate) fn shared_file(name: &str) -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(memfd_create(name, flags)?.into())
}

/// A temporary file that no path leads to: this system has no files in memory.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shared_file(name: &str) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("{name}-{}-{count}", std::process::id()));
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_noted_once() {
        let mut memory = Memory::new(600_000).unwrap();
        memory.write(10, &[1.0, 2.0]);
        memory.write(12, &[3.0]);
        memory.write(0, &[9.0]);
        assert_eq!(memory.news(), [0..1, 10..13]);
        memory.edit(5..500_000, &mut |_, piece| {
            piece.iter_mut().for_each(|v| *v += 1.0)
        });
        assert_eq!(memory.news(), [0..1, 5..500_000]);
        let mut all = vec![0.0; 600_000];
        memory.read(0, &mut all);
        let sum: f64 = all.iter().map(|v| f64::from(*v)).sum();
        assert_eq!(sum, 9.0 + 6.0 + 499_995.0);
    }

    #[test]
    fn a_torn_cut_leaves_the_slot_in_use_as_it_was() {
        let mut memory = Memory::new(4).unwrap();
        memory.write(0, &[1.0, 2.0, 3.0, 4.0]);
        let spare = memory.position(memory.spare(), 0);
        memory.file.write_all_at(&[0xff; 10], spare).unwrap();
        let mut read = [0.0; 4];
        memory.read(0, &mut read);
        assert_eq!(read, [1.0, 2.0, 3.0, 4.0]);
        assert!(matches!(memory.news(), [whole] if *whole == (0..4)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_trainer_cannot_shorten_the_file() {
        let memory = Memory::new(1000).unwrap();
        assert!(memory.file.set_len(10).is_err());
        assert!(memory.file.set_len(100_000).is_err());
    }
}
