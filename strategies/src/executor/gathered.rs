//! Contributions that every member holds, for codecs that make more of them than their mean: what is kept
//! in common, fragment by fragment, and what every member holds of each other.
//!
//! All of it is a function of what was agreed on. It moves with the anchor and never without it, goes with
//! the state that newcomers fetch and into checkpoints, and a round that came to nothing leaves it alone.

use super::host::Host;
use super::mix_lane::MixLane;
use crate::aggregate::{RMS_MAX, quarantine};
use crate::compress::gathering::{Agreed, Bad, Contributed, Gathering};
use crate::state::{StateError, StateSink, StateSource};
use bytes::Bytes;
use murmurate_protocol::{FragmentId, PeerId, Round, SliceId, WorkError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rounds without a word after which what is held of a peer is dropped, at all members alike.
const SILENCE_MAX: u64 = 64;

/// What is held of one peer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    /// The last round that it contributed to.
    last: u64,
    values: Vec<f32>,
}

/// What all members keep in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Common {
    shared: Vec<Vec<f32>>,
    held: BTreeMap<(FragmentId, PeerId), Held>,
}

impl Common {
    pub(super) fn new(fragments: usize) -> Self {
        Self {
            shared: vec![Vec::new(); fragments],
            held: BTreeMap::new(),
        }
    }

    /// What is kept in common of a fragment.
    pub(super) fn shared(&self, fragment: FragmentId) -> &[f32] {
        &self.shared[usize::from(fragment.0)]
    }

    /// What is held of a peer.
    pub(super) fn held(&self, fragment: FragmentId, peer: PeerId) -> &[f32] {
        let held = self.held.get(&(fragment, peer));
        held.map_or(&[], |held| &held.values)
    }

    /// f32 that are kept.
    pub(super) fn len(&self) -> usize {
        let held = self.held.values().map(|held| held.values.len());
        held.sum::<usize>() + self.shared.iter().map(Vec::len).sum::<usize>()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.shared.iter_mut().for_each(Vec::clear);
        self.held.clear();
    }

    /// Appends all of it: of every fragment how many values there are (u64), then these; how many peers
    /// are known (u64), then of each fragment (u16), peer, last round and number of values (u64), values.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for shared in &self.shared {
            out.extend_from_slice(&(shared.len() as u64).to_le_bytes());
            out.extend(shared.iter().flat_map(|v| v.to_le_bytes()));
        }
        out.extend_from_slice(&(self.held.len() as u64).to_le_bytes());
        for ((fragment, peer), held) in &self.held {
            out.extend_from_slice(&fragment.0.to_le_bytes());
            out.extend_from_slice(peer.as_bytes());
            out.extend_from_slice(&held.last.to_le_bytes());
            out.extend_from_slice(&(held.values.len() as u64).to_le_bytes());
            out.extend(held.values.iter().flat_map(|v| v.to_le_bytes()));
        }
    }

    /// What [`Common::write`] wrote, of fragments that lie here; `None` where the bytes are something
    /// else, or a value is not finite.
    pub(super) fn read(mut bytes: &[u8], fragments: &[Range<usize>]) -> Option<Self> {
        let mut read = Self::new(fragments.len());
        for shared in &mut read.shared {
            *shared = take_values(&mut bytes)?;
        }
        for _ in 0..take_number(&mut bytes)? {
            let (two, rest) = bytes.split_first_chunk::<2>()?;
            let (name, rest) = rest.split_first_chunk::<32>()?;
            bytes = rest;
            let fragment = u16::from_le_bytes(*two);
            let held = Held {
                last: take_number(&mut bytes)?,
                values: take_values(&mut bytes)?,
            };
            if held.values.len() != fragments.get(usize::from(fragment))?.len() {
                return None;
            }
            let peer = PeerId::from_bytes(*name);
            read.held.insert((FragmentId(fragment), peer), held);
        }
        bytes.is_empty().then_some(read)
    }

    /// Writes `codec.common`.
    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        sink.bytes(COMMON, &bytes)
    }

    /// What [`Common::save`] wrote.
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

    /// Puts the fragment's next state in force.
    fn advance(
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
            let held = self.held.entry((fragment, slice.origin)).or_default();
            held.values.resize(len, 0.0);
            held.last = round;
            let learned = codec.hold(bytes, &mut held.values);
            debug_assert!(
                learned.is_ok(),
                "what was gathered is read again: {learned:?}"
            );
        }
        self.held
            .retain(|(of, _), held| *of != fragment || held.last + SILENCE_MAX > round);
    }
}

const COMMON: &str = "codec.common";

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (eight, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*eight))
}

fn take_values(bytes: &mut &[u8]) -> Option<Vec<f32>> {
    let len = usize::try_from(take_number(bytes)?).ok()?;
    let (own, rest) = bytes.split_at_checked(len.checked_mul(4)?)?;
    *bytes = rest;
    let values = own.as_chunks::<4>().0.iter();
    let values: Vec<f32> = values.map(|four| f32::from_le_bytes(*four)).collect();
    values.iter().all(|v| v.is_finite()).then_some(values)
}

impl MixLane {
    /// What the codec makes of a fragment's contributions becomes the move of the anchor, and what is
    /// kept of them in common moves with it. Nothing has changed when it fails.
    pub(super) fn gather_in_common(
        &mut self,
        common: &mut Common,
        round: Round,
        fragment: FragmentId,
        inputs: &[(SliceId, f64)],
        keep_local: bool,
        host: &dyn Host,
    ) -> Result<(), WorkError> {
        let range = self.range(fragment);
        let total: f64 = inputs.iter().map(|(_, weight)| weight).sum();
        let bytes = inputs.iter().map(|(slice, _)| {
            let bytes = host.get(slice);
            bytes.ok_or_else(|| bad(*slice, "its bytes are gone"))
        });
        let bytes = bytes.collect::<Result<Vec<Bytes>, _>>()?;
        let given = inputs.iter().zip(&bytes);
        let contributions: Vec<Contributed<'_>> = given
            .map(|((slice, weight), bytes)| Contributed {
                bytes,
                share: (weight / total) as f32,
                held: common.held(fragment, slice.origin),
            })
            .collect();
        let shared_seed = inputs.first().map_or(0, |(slice, _)| {
            super::codec_state::seeds(&self.plan, slice).1
        });
        let own = inputs
            .iter()
            .position(|(s, _)| self.encoded.contains_key(s));
        let agreed = Agreed {
            contributions: &contributions,
            own,
            round: round.0,
            shared_seed,
            shared: common.shared(fragment),
        };
        let mut moved = std::mem::take(&mut self.spare);
        let mut next = Vec::new();
        let put = self.settle_common(&agreed, &range, inputs, &mut moved, &mut next);
        if put.is_ok() {
            drop(contributions);
            let codec = self.codec.gathering();
            if let Some(codec) = codec {
                common.advance(codec, inputs, &bytes, next, range.len());
            }
            self.put_in_force(round, fragment, &mut moved, keep_local);
        }
        self.spare = moved;
        put
    }

    /// Gathers, looks at the move, and settles.
    fn settle_common(
        &mut self,
        agreed: &Agreed<'_>,
        range: &Range<usize>,
        inputs: &[(SliceId, f64)],
        moved: &mut Vec<f32>,
        next: &mut Vec<f32>,
    ) -> Result<(), WorkError> {
        let Some(codec) = self.codec.gathering() else {
            return Ok(());
        };
        let of = |at: usize| inputs[at.min(inputs.len() - 1)].0;
        gather(codec, agreed, range.len(), moved).map_err(|(at, reason)| bad(of(at), &reason))?;
        if let Err(error) = quarantine(moved, RMS_MAX) {
            // Who spoils the move alone; the last one where nobody does.
            let alone = (0..inputs.len()).find(|at| {
                let one = [Contributed {
                    share: 1.0,
                    ..agreed.contributions[*at]
                }];
                let one = Agreed {
                    contributions: &one,
                    own: None,
                    ..*agreed
                };
                gather(codec, &one, range.len(), moved).is_err()
                    || quarantine(moved, RMS_MAX).is_err()
            });
            return Err(bad(of(alone.unwrap_or(usize::MAX)), &error.to_string()));
        }
        let residual = self.residual.as_mut();
        let residual = residual.map(|residual| &mut residual[range.clone()]);
        codec.settle(agreed, moved, residual, next);
        Ok(())
    }
}

fn gather(
    codec: &mut dyn Gathering,
    agreed: &Agreed<'_>,
    len: usize,
    moved: &mut Vec<f32>,
) -> Result<(), (usize, String)> {
    moved.clear();
    moved.resize(len, 0.0);
    let gathered = codec.gather(agreed, moved);
    gathered.map_err(|Bad { at, error }| (at, error.to_string()))
}

fn bad(slice: SliceId, reason: &str) -> WorkError {
    WorkError::BadSlice {
        slice,
        origin: slice.origin,
        reason: reason.to_owned(),
    }
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
        let held = |last, values: &[f32]| Held {
            last,
            values: values.to_vec(),
        };
        common
            .held
            .insert((FragmentId(0), peer(2)), held(7, &[1.0, 2.0, 3.0]));
        common
            .held
            .insert((FragmentId(1), peer(1)), held(9, &[4.0, 5.0]));
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
