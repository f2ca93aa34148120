//! The store of encoded slices between codec and network. This is a trait because the daemon shares
//! them with its sockets and the simulator does not.

use bytes::Bytes;
use murmurate_protocol::SliceId;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Encoded bytes by slice. Cloning `Bytes` shares them.
pub trait SliceStore {
    /// Stores a slice, replacing an earlier one of the same name.
    fn put(&self, slice: SliceId, bytes: Bytes);
    /// A slice's bytes, if they are stored.
    fn get(&self, slice: &SliceId) -> Option<Bytes>;
    /// Forgets a slice.
    fn remove(&self, slice: &SliceId);

    /// An empty buffer with room for this many bytes. A store may recycle those of released slices.
    fn room(&self, bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }

    /// Makes a filled [room](SliceStore::room) the bytes of a slice.
    fn keep(&self, mut room: Vec<u8>) -> Bytes {
        if is_loose(&room) {
            room.shrink_to_fit();
        }
        Bytes::from(room)
    }
}

/// Set where more than a ninth of a buffer is unused, so that a shorter copy is worth its time. Bounds
/// of dense codecs are tight; only sparse ones leave that much.
pub const fn is_loose(room: &Vec<u8>) -> bool {
    room.capacity() - room.len() > room.len() / 8
}

/// A store for one thread.
#[derive(Debug, Default)]
pub struct LocalSlices(RefCell<BTreeMap<SliceId, Bytes>>);

impl SliceStore for LocalSlices {
    fn put(&self, slice: SliceId, bytes: Bytes) {
        self.0.borrow_mut().insert(slice, bytes);
    }

    fn get(&self, slice: &SliceId) -> Option<Bytes> {
        self.0.borrow().get(slice).cloned()
    }

    fn remove(&self, slice: &SliceId) {
        self.0.borrow_mut().remove(slice);
    }
}

impl LocalSlices {
    /// Number of stored slices.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Set where no slice is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
