//! The arithmetic of state transfers: manifests, sizes of chunks, and which chunk to request from
//! which donor. It uses no streams and no clocks.

use bytes::Bytes;
use murmurate_protocol::limits::{STATE_BYTES_MAX, STATE_CHUNK_BYTES};
use murmurate_protocol::{Digest, PeerId, SortedMap, SortedSet, StateId};

/// Size of one hash in a manifest, bytes.
const DIGEST_BYTES: usize = 32;

/// One chunk of a state, without a copy; `None` if the index is out of range.
pub fn chunk(state: &Bytes, index: u32) -> Option<Bytes> {
    let start = (index as usize).checked_mul(STATE_CHUNK_BYTES)?;
    let end = start.checked_add(STATE_CHUNK_BYTES)?.min(state.len());
    (start < end).then(|| state.slice(start..end))
}

/// Why bytes are not the manifest of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The state exceeds the largest size that this build accepts.
    #[error("a state of {bytes} bytes is above the limit of {STATE_BYTES_MAX}")]
    State {
        /// Size of the state.
        bytes: u64,
    },
    /// The number of hashes differs from the number of chunks.
    #[error("a manifest of {bytes} bytes, but the state's size requires {wanted}")]
    Length {
        /// Size of the manifest.
        bytes: u64,
        /// The expected size.
        wanted: u64,
    },
    /// The manifest's hash differs from the state's root.
    #[error("the manifest's hash differs from the state's root")]
    Root,
}

/// The verified hashes of a state's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    state: StateId,
    digests: Vec<Digest>,
}

impl Manifest {
    /// Size of the manifest of a state.
    ///
    /// # Errors
    /// `ManifestError::State` if the state is too large.
    pub fn bytes_for(state: &StateId) -> Result<u64, ManifestError> {
        if state.bytes > STATE_BYTES_MAX {
            return Err(ManifestError::State { bytes: state.bytes });
        }
        Ok(state.bytes.div_ceil(STATE_CHUNK_BYTES as u64) * DIGEST_BYTES as u64)
    }

    /// Checks the length of `bytes` and their hash against the state's root.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn verify(state: StateId, bytes: &[u8]) -> Result<Self, ManifestError> {
        let wanted = Self::bytes_for(&state)?;
        if bytes.len() as u64 != wanted {
            return Err(ManifestError::Length {
                bytes: bytes.len() as u64,
                wanted,
            });
        }
        if Digest::of(bytes) != state.root {
            return Err(ManifestError::Root);
        }
        let (hashes, _) = bytes.as_chunks::<DIGEST_BYTES>();
        Ok(Self {
            state,
            digests: hashes.iter().map(|h| Digest::from_bytes(*h)).collect(),
        })
    }

    /// Number of chunks.
    pub fn chunks(&self) -> u32 {
        // At most STATE_BYTES_MAX / STATE_CHUNK_BYTES = 65,536.
        u32::try_from(self.digests.len()).unwrap_or(u32::MAX)
    }

    /// Size of one chunk in bytes; only the last one may be smaller. `None` if the index is out of range.
    pub fn chunk_bytes(&self, index: u32) -> Option<u64> {
        let start = u64::from(index) * STATE_CHUNK_BYTES as u64;
        let left = self.state.bytes.checked_sub(start)?;
        (left > 0).then(|| left.min(STATE_CHUNK_BYTES as u64))
    }

    /// Checks that `bytes` are the chunk with this index.
    pub fn holds(&self, index: u32, bytes: &[u8]) -> bool {
        self.chunk_bytes(index) == Some(bytes.len() as u64)
            && self.digests.get(index as usize) == Some(&Digest::of(bytes))
    }
}

/// Consecutive broken streams after which a donor is not asked any more.
const STRIKES_MAX: u32 = 3;

/// How a request for a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkOutcome {
    Good,
    /// The donor sent wrong bytes or does not have the state. It is not asked again.
    Useless,
    /// The stream broke. The donor is asked again up to [`STRIKES_MAX`] times in a row.
    Broken,
}

#[derive(Clone, Debug, Default)]
struct Donor {
    asked: usize,
    strikes: u32,
    useless: bool,
    /// Its last chunk came quickly, so it may owe several.
    quick: bool,
    /// It owed a chunk for so long that another donor was asked for it.
    slow: bool,
}

/// Tracks which chunks are missing, requested and present, and chooses the next request.
///
/// Chunks are requested in ascending order, one at a time, from the donor with the fewest open
/// requests: several from a donor whose last one came quickly, else one. A chunk that one donor failed to send is requested from another donor if there is one. So is
/// one that a donor owes for too long, once nothing else is left to request; that donor comes last then.
#[derive(Debug)]
pub(crate) struct ChunkBook {
    missing: SortedSet<u32>,
    /// The donors that were asked for a chunk that is on its way.
    asked: SortedMap<u32, SortedSet<PeerId>>,
    failed: SortedSet<(u32, PeerId)>,
    donors: SortedMap<PeerId, Donor>,
    per_donor: usize,
}

impl ChunkBook {
    /// A book in which only the chunks that are not yet stored are missing.
    pub(crate) fn new(
        missing: impl IntoIterator<Item = u32>,
        donors: impl IntoIterator<Item = PeerId>,
        per_donor: usize,
    ) -> Self {
        Self {
            missing: missing.into_iter().collect(),
            asked: SortedMap::new(),
            failed: SortedSet::new(),
            donors: donors.into_iter().map(|d| (d, Donor::default())).collect(),
            per_donor: per_donor.max(1),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.asked.is_empty()
    }

    /// The next chunk to request and its donor; `None` if no request is possible now.
    pub(crate) fn next(&mut self) -> Option<(PeerId, u32)> {
        let free = self.free(self.per_donor);
        let fresh = |peer: &PeerId| {
            let mut missing = self.missing.iter().copied();
            missing.find(|index| !self.failed.contains(&(*index, *peer)))
        };
        let (peer, index) = free
            .iter()
            .find_map(|peer| Some((*peer, fresh(peer)?)))
            .or_else(|| Some((*free.first()?, *self.missing.first()?)))?;
        self.missing.remove(&index);
        self.ask(peer, index)
    }

    /// Donors with fewer open requests than this: the slow ones last, then by their number.
    fn free(&self, requests: usize) -> Vec<PeerId> {
        let free = self.donors.iter();
        let most = |d: &Donor| if d.quick { requests } else { 1 };
        let free = free.filter(|(_, d)| !d.useless && d.asked < most(d));
        let mut free: Vec<_> = free.map(|(peer, d)| (d.slow, d.asked, *peer)).collect();
        free.sort_unstable();
        free.into_iter().map(|(.., peer)| peer).collect()
    }

    fn ask(&mut self, peer: PeerId, index: u32) -> Option<(PeerId, u32)> {
        self.asked.entry(index).or_default().insert(peer);
        self.donors.get_mut(&peer)?.asked += 1;
        Some((peer, index))
    }

    /// A chunk that one donor owes for too long, and another donor that has nothing to do; `None` while there
    /// are chunks that no one was asked for.
    pub(crate) fn help(&mut self, is_overdue: impl Fn(u32) -> bool) -> Option<(PeerId, u32)> {
        let idle = self.missing.is_empty().then(|| self.free(1));
        let idle = idle.unwrap_or_default();
        let mut owed = self.asked.iter().filter(|(index, from)| {
            let once = from.len() == 1;
            once && is_overdue(**index)
        });
        let (peer, index, debtor) = owed.find_map(|(index, from)| {
            let debtor = *from.first()?;
            let other =
                |peer: &&PeerId| **peer != debtor && !self.failed.contains(&(*index, **peer));
            Some((*idle.iter().find(other)?, *index, debtor))
        })?;
        self.donors.get_mut(&debtor)?.slow = true;
        self.ask(peer, index)
    }

    /// A donor has sent a chunk, quickly or not.
    pub(crate) fn sent(&mut self, peer: PeerId, quick: bool) {
        if let Some(donor) = self.donors.get_mut(&peer) {
            donor.quick = quick;
        }
    }

    pub(crate) fn ended(&mut self, peer: PeerId, index: u32, outcome: ChunkOutcome) {
        let from = self.asked.get_mut(&index);
        let Some(from) = from.filter(|from| from.contains(&peer)) else {
            return;
        };
        from.remove(&peer);
        let others = std::mem::take(from);
        let Some(donor) = self.donors.get_mut(&peer) else {
            return;
        };
        donor.asked = donor.asked.saturating_sub(1);
        match outcome {
            ChunkOutcome::Good => {
                (donor.strikes, donor.slow) = (0, false);
                self.asked.remove(&index);
                // The rest of what others send is not waited for.
                for other in others {
                    if let Some(other) = self.donors.get_mut(&other) {
                        other.asked = other.asked.saturating_sub(1);
                    }
                }
                return;
            }
            ChunkOutcome::Useless => donor.useless = true,
            ChunkOutcome::Broken => {
                donor.strikes += 1;
                donor.useless |= donor.strikes >= STRIKES_MAX;
            }
        }
        self.failed.insert((index, peer));
        if others.is_empty() {
            self.asked.remove(&index);
            self.missing.insert(index);
        } else {
            drop(self.asked.insert(index, others))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::Round;
    use murmurate_strategies::executor::state_in_memory;

    fn peer(n: u8) -> PeerId {
        PeerId::from_bytes([n; 32])
    }

    fn state(bytes: usize) -> (Bytes, Bytes, StateId) {
        let state: Bytes = (0..bytes)
            .map(|i| (i % 251) as u8)
            .collect::<Vec<u8>>()
            .into();
        let written = state_in_memory(Round(4), &mut |out| out.write_all(&state));
        let (id, manifest, _) = written.unwrap();
        (state, manifest, id)
    }

    #[test]
    fn every_chunk_of_a_state_verifies_and_no_other_bytes_do() {
        let (bytes, manifest, id) = state(2 * STATE_CHUNK_BYTES + 17);
        let verified = Manifest::verify(id, &manifest).unwrap();
        assert_eq!(verified.chunks(), 3);
        for index in 0..3 {
            let piece = chunk(&bytes, index).unwrap();
            assert!(verified.holds(index, &piece));
            assert!(!verified.holds(index, &piece[1..]));
        }
        assert!(!verified.holds(0, &chunk(&bytes, 1).unwrap()));
        assert_eq!(verified.chunk_bytes(2), Some(17));
        assert_eq!(verified.chunk_bytes(3), None);
        assert_eq!(chunk(&bytes, 3), None);
        assert!(!verified.holds(3, &[]));
    }

    #[test]
    fn a_manifest_of_another_length_or_hash_is_refused() {
        let (_, manifest, id) = state(STATE_CHUNK_BYTES + 1);
        assert_eq!(
            Manifest::verify(id, &manifest[..32]),
            Err(ManifestError::Length {
                bytes: 32,
                wanted: 64
            })
        );
        let mut wrong = manifest.to_vec();
        wrong[40] ^= 1;
        assert_eq!(Manifest::verify(id, &wrong), Err(ManifestError::Root));
        let huge = StateId {
            bytes: u64::MAX,
            ..id
        };
        assert_eq!(
            Manifest::bytes_for(&huge),
            Err(ManifestError::State { bytes: u64::MAX })
        );
    }

    #[test]
    fn an_empty_state_has_no_chunks() {
        let (_, manifest, id) = state(0);
        assert_eq!(Manifest::verify(id, &manifest).unwrap().chunks(), 0);
        assert!(ChunkBook::new(0..0, [peer(1)], 2).is_complete());
    }

    #[test]
    fn chunks_are_spread_over_donors_and_bounded_per_donor() {
        let mut book = ChunkBook::new(0..10, [peer(1), peer(2)], 2);
        (1..3).for_each(|n| book.sent(peer(n), true));
        let asked: Vec<_> = std::iter::from_fn(|| book.next()).collect();
        assert_eq!(
            asked,
            [(peer(1), 0), (peer(2), 1), (peer(1), 2), (peer(2), 3)]
        );
        book.ended(peer(1), 0, ChunkOutcome::Good);
        assert_eq!(book.next(), Some((peer(1), 4)));
        assert_eq!(book.next(), None);
    }

    /// Three at a time from a slow one would share its rate, and none would come in time.
    #[test]
    fn a_donor_owes_one_chunk_until_one_came_quickly() {
        let mut book = ChunkBook::new(0..10, [peer(1)], 3);
        let mut asked = |quick| {
            let all = std::iter::from_fn(|| book.next()).collect::<Vec<_>>();
            for (peer, index) in &all {
                book.sent(*peer, quick);
                book.ended(*peer, *index, ChunkOutcome::Good);
            }
            all.len()
        };
        let counts = [false, true, true, false, false].map(&mut asked);
        assert_eq!(counts, [1, 1, 3, 3, 1]);
    }

    #[test]
    fn what_one_donor_lied_about_another_gives() {
        let mut book = ChunkBook::new(0..2, [peer(1), peer(2)], 1);
        assert_eq!(book.next(), Some((peer(1), 0)));
        assert_eq!(book.next(), Some((peer(2), 1)));
        book.ended(peer(1), 0, ChunkOutcome::Useless);
        assert_eq!(
            book.next(),
            None,
            "the liar is asked no more, the other is busy"
        );
        book.ended(peer(2), 1, ChunkOutcome::Good);
        assert_eq!(book.next(), Some((peer(2), 0)));
        book.ended(peer(2), 0, ChunkOutcome::Good);
        assert!(book.is_complete());
    }

    #[test]
    fn a_donor_whose_streams_break_is_given_up_after_three() {
        let mut book = ChunkBook::new(0..1, [peer(1)], 4);
        for _ in 0..STRIKES_MAX {
            assert_eq!(book.next(), Some((peer(1), 0)));
            book.ended(peer(1), 0, ChunkOutcome::Broken);
        }
        assert_eq!(book.next(), None);
        assert!(!book.is_complete());
    }

    #[test]
    fn what_one_donor_owes_for_too_long_another_is_asked_for_once_nothing_else_is_left() {
        let mut book = ChunkBook::new(0..3, [peer(1), peer(2)], 1);
        assert_eq!(book.next(), Some((peer(1), 0)));
        assert_eq!(book.next(), Some((peer(2), 1)));
        book.ended(peer(2), 1, ChunkOutcome::Good);
        assert_eq!(book.help(|_| true), None, "chunk 2 is no one's yet");
        assert_eq!(book.next(), Some((peer(2), 2)));
        book.ended(peer(2), 2, ChunkOutcome::Good);
        assert_eq!(book.help(|_| false), None, "it is on its way");
        assert_eq!(book.help(|_| true), Some((peer(2), 0)));
        assert_eq!(book.help(|_| true), None, "two are asked already");
        book.ended(peer(2), 0, ChunkOutcome::Good);
        assert!(book.is_complete(), "the slow one is not waited for");
        book.ended(peer(1), 0, ChunkOutcome::Good);
        assert!(book.is_complete());
    }

    #[test]
    fn a_slow_donor_is_asked_last_until_it_sends_a_chunk() {
        let mut book = ChunkBook::new(0..2, [peer(1), peer(2)], 2);
        assert_eq!(book.next(), Some((peer(1), 0)));
        assert_eq!(book.next(), Some((peer(2), 1)));
        book.ended(peer(2), 1, ChunkOutcome::Good);
        assert_eq!(book.help(|_| true), Some((peer(2), 0)));
        // Neither has sent it, and both may be asked again: the one that was in time first.
        book.ended(peer(2), 0, ChunkOutcome::Broken);
        assert_eq!(book.next(), None, "the slow one still may send it");
        book.ended(peer(1), 0, ChunkOutcome::Broken);
        assert_eq!(book.next(), Some((peer(2), 0)));
        book.ended(peer(2), 0, ChunkOutcome::Good);
        assert!(book.is_complete());
    }

    #[test]
    fn an_answer_that_is_not_awaited_changes_nothing() {
        let mut book = ChunkBook::new(0..1, [peer(1), peer(2)], 1);
        assert_eq!(book.next(), Some((peer(1), 0)));
        book.ended(peer(2), 0, ChunkOutcome::Good);
        assert!(!book.is_complete());
    }
}
