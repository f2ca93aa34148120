//! The common state of a codec that gathers contributions, for each fragment, and the vectors that
//! every member holds of the others.
//!
//! All of it depends only on agreed contributions. It changes with the anchor and never without it,
//! it is part of the state that newcomers fetch and of checkpoints, and a void round does not
//! change it.

use crate::compress::Gathering;
use crate::state::{StateError, StateSink, StateSource};
use bytes::Bytes;
use murmurate_protocol::{FragmentId, PeerId, SliceId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rounds without a contribution after which all members drop the vector of a peer.
const SILENCE_MAX: u64 = 64;

/// The vector that every member holds of one peer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    /// The last round that the peer contributed to.
    last: u64,
    values: Vec<f32>,
}

/// The common state of all members.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Common {
    shared: Vec<Vec<f32>>,
    known: BTreeMap<(FragmentId, PeerId), Known>,
}

impl Common {
    pub(super) fn new(fragments: usize) -> Self {
        Self {
            shared: vec![Vec::new(); fragments],
            known: BTreeMap::new(),
        }
    }

    /// What the members keep in common of a fragment.
    pub(super) fn shared(&self, fragment: FragmentId) -> &[f32] {
        &self.shared[usize::from(fragment.0)]
    }

    /// What the members keep in common of a shard, where owners reduce shards; nothing after the fragment
    /// was cut in another way.
    pub(super) fn shared_of(&self, fragment: FragmentId, shard: u16, of: u16) -> &[f32] {
        let Some((cut, mut rest)) = self.shared(fragment).split_first() else {
            return &[];
        };
        if cut.to_bits() != u32::from(of) {
            return &[];
        }
        for at in 0..=shard {
            let Some((len, after)) = rest.split_first() else {
                return &[];
            };
            let len = (len.to_bits() as usize).min(after.len());
            let (own, beyond) = after.split_at(len);
            if at == shard {
                return own;
            }
            rest = beyond;
        }
        &[]
    }

    /// Replaces what the members keep in common of all shards of a fragment: the number of shards, and for
    /// each the number of its values and these. Numbers are the bits of an f32.
    pub(super) fn set_shards(&mut self, fragment: FragmentId, shards: &[Vec<f32>]) {
        let shared = &mut self.shared[usize::from(fragment.0)];
        shared.clear();
        if shards.iter().all(Vec::is_empty) {
            return;
        }
        shared.push(f32::from_bits(shards.len() as u32));
        for shard in shards {
            shared.push(f32::from_bits(shard.len() as u32));
            shared.extend_from_slice(shard);
        }
    }

    /// What every member knows of a peer.
    pub(super) fn known_of(&self, fragment: FragmentId, peer: PeerId) -> &[f32] {
        let known = self.known.get(&(fragment, peer));
        known.map_or(&[], |known| &known.values)
    }

    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        let known = self.known.values().map(|known| known.values.len());
        known.sum::<usize>() + self.shared.iter().map(Vec::len).sum::<usize>()
    }

    pub(super) fn clear(&mut self) {
        self.shared.iter_mut().for_each(Vec::clear);
        self.known.clear();
    }

    /// Appends all of it. For every fragment: number of values (u64), values. Then the number of
    /// known peers (u64) and for each: fragment (u16), peer, last round (u64), number of values
    /// (u64), values.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for shared in &self.shared {
            put_values(shared, out);
        }
        out.extend_from_slice(&(self.known.len() as u64).to_le_bytes());
        for ((fragment, peer), known) in &self.known {
            out.extend_from_slice(&fragment.0.to_le_bytes());
            out.extend_from_slice(peer.as_bytes());
            out.extend_from_slice(&known.last.to_le_bytes());
            put_values(&known.values, out);
        }
    }

    /// Reads what [`Common::write`] wrote for fragments of these ranges; `None` where the bytes are
    /// something else, or a value is not finite.
    pub(super) fn read(mut bytes: &[u8], fragments: &[Range<usize>]) -> Option<Self> {
        let mut read = Self::new(fragments.len());
        for shared in &mut read.shared {
            *shared = take_finite(&mut bytes)?;
        }
        for _ in 0..take_number(&mut bytes)? {
            let (two, rest) = bytes.split_first_chunk::<2>()?;
            let (name, rest) = rest.split_first_chunk::<32>()?;
            bytes = rest;
            let fragment = u16::from_le_bytes(*two);
            let known = Known {
                last: take_number(&mut bytes)?,
                values: take_finite(&mut bytes)?,
            };
            if known.values.len() != fragments.get(usize::from(fragment))?.len() {
                return None;
            }
            let peer = PeerId::from_bytes(*name);
            read.known.insert((FragmentId(fragment), peer), known);
        }
        bytes.is_empty().then_some(read)
    }

    /// Writes `codec.common`.
    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        sink.bytes(COMMON, &bytes)
    }

    pub(super) fn load(
        source: &dyn StateSource,
        fragments: &[Range<usize>],
    ) -> Result<Self, StateError> {
        let read = Self::read(&source.bytes(COMMON)?, fragments);
        read.ok_or_else(|| StateError::Malformed {
            name: COMMON.to_owned(),
            reason: "it is not what a codec keeps in common of these fragments".to_owned(),
        })
    }

    /// Replaces the fragment's state by the next one, after its contributions were agreed on.
    pub(super) fn advance(
        &mut self,
        codec: &dyn Gathering,
        inputs: &[(SliceId, f64)],
        bytes: &[Bytes],
        shared: Vec<f32>,
        len: usize,
    ) {
        let Some((first, _)) = inputs.first() else {
            return;
        };
        let (fragment, round) = (first.fragment, first.round.0);
        self.shared[usize::from(fragment.0)] = shared;
        if !codec.holds() {
            return;
        }
        for ((slice, _), bytes) in inputs.iter().zip(bytes) {
            let known = self.known.entry((fragment, slice.origin)).or_default();
            known.values.resize(len, 0.0);
            known.last = round;
            let learned = codec.hold(bytes, &mut known.values);
            debug_assert!(
                learned.is_ok(),
                "what was gathered is read again: {learned:?}"
            );
        }
        self.known
            .retain(|(of, _), known| *of != fragment || known.last + SILENCE_MAX > round);
    }
}

const COMMON: &str = "codec.common";

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (eight, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*eight))
}

fn take_finite(bytes: &mut &[u8]) -> Option<Vec<f32>> {
    take_values(bytes).filter(|values| values.iter().all(|v| v.is_finite()))
}

/// Appends the number of values (u64) and these, little-endian.
pub(super) fn put_values(values: &[f32], out: &mut Vec<u8>) {
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

/// Reads what [`put_values`] wrote.
pub(super) fn take_values(bytes: &mut &[u8]) -> Option<Vec<f32>> {
    let len = usize::try_from(take_number(bytes)?).ok()?;
    let (own, rest) = bytes.split_at_checked(len.checked_mul(4)?)?;
    *bytes = rest;
    let values = own.as_chunks::<4>().0.iter();
    Some(values.map(|four| f32::from_le_bytes(*four)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let fragments = [0..3, 3..5];
        let mut common = Common::new(2);
        common.shared[1] = vec![1.0, 2.0];
        let peer = |n: u8| PeerId::from_bytes([n; 32]);
        let known = |last, values: &[f32]| Known {
            last,
            values: values.to_vec(),
        };
        common
            .known
            .insert((FragmentId(0), peer(2)), known(7, &[1.0, 2.0, 3.0]));
        common
            .known
            .insert((FragmentId(1), peer(1)), known(9, &[4.0, 5.0]));
        let mut bytes = Vec::new();
        common.write(&mut bytes);
        assert_eq!(Common::read(&bytes, &fragments), Some(common.clone()));
        for len in 0..bytes.len() {
            assert_eq!(Common::read(&bytes[..len], &fragments), None, "{len} bytes");
        }
        assert_eq!(Common::read(&[&bytes[..], &[0]].concat(), &fragments), None);
        let mut bad = bytes.clone();
        bad[16..20].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(Common::read(&bad, &fragments), None);
        assert_eq!(Common::read(&bytes, &[0..2, 2..4]), None);
        assert_eq!(common.len(), 7);
    }
}
