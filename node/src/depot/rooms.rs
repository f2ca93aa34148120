//! Buffers of slices that are used again. A fresh buffer of some megabytes costs the kernel a fault
//! and a zeroed page for every 4 kB, in every round; a buffer that is used again costs neither.
//!
//! A buffer becomes the bytes of a slice, and returns when the last holder of those bytes drops
//! them: the depot at the slice's release, or the network once it has sent them.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of buffers that wait to be used again. Beyond it the oldest ones are freed. A round of a
/// model of 400 MB among four peers leaves 1 GB.
const IDLE_BYTES_MAX: usize = 1 << 30;

/// Smaller buffers are left to the allocator, which recycles them without the kernel.
const ROOM_BYTES_MIN: usize = 64 << 10;

/// A buffer is used again for at least this share of its capacity, in eighths.
const FILLED_EIGHTHS_MIN: usize = 7;

/// Buffers that wait to be used again. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms(Arc<Mutex<Idle>>);

#[derive(Debug, Default)]
struct Idle {
    /// Empty, the oldest first.
    rooms: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Rooms {
    /// An empty buffer for this many bytes. It has their capacity where one was waiting, and none
    /// otherwise.
    pub(super) fn take(&self, bytes: usize) -> Vec<u8> {
        let mut idle = self.idle();
        let fits = |room: &Vec<u8>| {
            room.capacity() >= bytes && bytes >= room.capacity() / 8 * FILLED_EIGHTHS_MIN
        };
        // The newest one is the likeliest to be in a cache.
        let at = idle.rooms.iter().rposition(fits);
        let room = at.and_then(|at| idle.rooms.remove(at)).unwrap_or_default();
        idle.bytes -= room.capacity();
        room
    }

    /// Makes a filled buffer into bytes, which give it back when they are dropped.
    pub(super) fn keep(&self, room: Vec<u8>) -> Bytes {
        if room.capacity() < ROOM_BYTES_MIN {
            return Bytes::from(room);
        }
        Bytes::from_owner(Kept {
            room,
            rooms: self.clone(),
        })
    }

    /// Takes a buffer back that is not needed any more.
    pub(super) fn give_back(&self, mut room: Vec<u8>) {
        if !(ROOM_BYTES_MIN..=IDLE_BYTES_MAX).contains(&room.capacity()) {
            return;
        }
        room.clear();
        let mut freed = Vec::new();
        let mut idle = self.idle();
        idle.bytes += room.capacity();
        idle.rooms.push_back(room);
        while idle.bytes > IDLE_BYTES_MAX
            && let Some(oldest) = idle.rooms.pop_front()
        {
            idle.bytes -= oldest.capacity();
            freed.push(oldest);
        }
        // The kernel takes the pages back without the lock.
        drop(idle);
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        // Nothing in between can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owner of a slice's bytes.
struct Kept {
    room: Vec<u8>,
    rooms: Rooms,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.room
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.rooms.give_back(std::mem::take(&mut self.room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1 << 20;

    fn waiting(rooms: &Rooms) -> usize {
        let idle = rooms.idle();
        let sum: usize = idle.rooms.iter().map(Vec::capacity).sum();
        assert_eq!(idle.bytes, sum, "the count is the sum");
        idle.rooms.len()
    }

    fn filled(rooms: &Rooms, bytes: usize) -> Bytes {
        let mut room = rooms.take(bytes);
        assert!(room.is_empty());
        room.reserve_exact(bytes);
        room.resize(bytes, 7);
        rooms.keep(room)
    }

    #[test]
    fn a_buffer_returns_with_its_last_holder_and_is_used_again() {
        let rooms = Rooms::default();
        let bytes = filled(&rooms, SIZE);
        let place = bytes.as_ptr();
        let part = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(waiting(&rooms), 0, "a part of it is held");
        assert_eq!(&part[..], [7; 10]);
        drop(part);
        assert_eq!(waiting(&rooms), 1);
        let again = filled(&rooms, SIZE - 100);
        assert_eq!((again.as_ptr(), waiting(&rooms)), (place, 0));
    }

    #[test]
    fn a_buffer_serves_about_its_own_size_only() {
        let rooms = Rooms::default();
        drop(filled(&rooms, SIZE));
        assert_eq!(rooms.take(SIZE + 1).capacity(), 0);
        assert_eq!(rooms.take(SIZE / 2).capacity(), 0);
        assert_eq!(rooms.take(usize::MAX).capacity(), 0);
        assert_eq!(waiting(&rooms), 1);
        assert!(rooms.take(SIZE).capacity() >= SIZE);
        drop(filled(&rooms, 1000));
        assert_eq!(waiting(&rooms), 0, "small ones are the allocator's");
    }

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let rooms = Rooms::default();
        let size = IDLE_BYTES_MAX / 4;
        for _ in 0..6 {
            // Reserved only: no page of it is ever touched.
            rooms.give_back(Vec::with_capacity(size));
        }
        assert_eq!(waiting(&rooms), 4);
        rooms.give_back(Vec::with_capacity(IDLE_BYTES_MAX + 1));
        assert_eq!(waiting(&rooms), 4);
        // The newest stay.
        rooms.give_back(Vec::with_capacity(SIZE));
        assert_eq!(waiting(&rooms), 4);
        assert!(rooms.take(SIZE).capacity() >= SIZE);
    }
}
