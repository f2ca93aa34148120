//! State of the codec of contributions: seeds, matrices, planes, memory. The Executor owns it; the
//! codec sees the part that belongs to one slice.

use super::common::{put_values, take_values};
use crate::TensorSpec;
use crate::compress::{EncodeContext, Matrix, PLANES_MAX};
use crate::state::{StateError, StateSink, StateSource};
use murmurate_protocol::{Digest, PlanHash, SliceId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Names a slice's memory: fragment, shard, and into how many shards the fragment was cut.
type Place = (u16, u16, u16);

#[derive(Debug, Default)]
pub(super) struct CodecState {
    /// Where the model's tensors lie; empty where the codec does not look at them.
    tensors: Vec<TensorSpec>,
    planes: [Vec<f32>; PLANES_MAX],
    memory: BTreeMap<Place, Vec<f32>>,
    matrices: Vec<Matrix>,
}

impl CodecState {
    /// For a codec that keeps this many planes of `len` values.
    ///
    /// # Panics
    /// If these are more than [`PLANES_MAX`].
    pub(super) fn new(planes: usize, len: usize, tensors: Vec<TensorSpec>) -> Self {
        assert!(planes <= PLANES_MAX, "a codec with {planes} planes");
        let plane = |at: usize| vec![0.0; if at < planes { len } else { 0 }];
        Self {
            tensors,
            planes: core::array::from_fn(plane),
            ..Self::default()
        }
    }

    /// The state for one slice, which lies at `range` of the flat parameters.
    pub(super) fn context(
        &mut self,
        plan: &PlanHash,
        slice: &SliceId,
        of: u16,
        range: &Range<usize>,
    ) -> EncodeContext<'_> {
        self.matrices.clear();
        self.matrices.extend(matrices(&self.tensors, range));
        let place = (slice.fragment.0, slice.shard, of);
        if !self.memory.contains_key(&place) {
            // The fragment is cut in another way: memory of the old cut does not fit its shards.
            self.memory
                .retain(|(fragment, _, cut), _| *fragment != place.0 || *cut == of);
        }
        let (seed, shared_seed) = seeds(plan, slice);
        EncodeContext {
            seed,
            shared_seed,
            round: slice.round.0,
            matrices: &self.matrices,
            planes: self.planes.each_mut().map(|plane| match plane.is_empty() {
                true => &mut [][..],
                false => &mut plane[range.clone()],
            }),
            memory: self.memory.entry(place).or_default(),
            shared: &[],
            held: &[],
            anchor: &[],
        }
    }

    pub(super) fn clear(&mut self) {
        self.planes.iter_mut().for_each(|plane| plane.fill(0.0));
        self.memory.clear();
    }

    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        let memory = self.memory.values().map(Vec::len).sum::<usize>();
        self.planes.iter().map(Vec::len).sum::<usize>() + memory
    }

    /// Writes `codec.plane-0` and so on, and `codec.memory`.
    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        for (at, plane) in self.planes.iter().enumerate() {
            if !plane.is_empty() {
                sink.tensor(&format!("codec.plane-{at}"), plane)?;
            }
        }
        let kept = self.memory.iter().filter(|(_, values)| !values.is_empty());
        let mut bytes = Vec::new();
        for ((fragment, shard, of), values) in kept {
            for number in [*fragment, *shard, *of] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            put_values(values, &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        sink.bytes(MEMORY, &bytes)
    }

    /// Reads and checks what [`CodecState::save`] wrote, for a codec that keeps the same planes.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<Self, StateError> {
        let malformed = |name: &str, reason: &str| StateError::Malformed {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let mut read = Self {
            tensors: self.tensors.clone(),
            planes: self.planes.each_ref().map(|plane| vec![0.0; plane.len()]),
            ..Self::default()
        };
        for (at, plane) in read.planes.iter_mut().enumerate() {
            let name = format!("codec.plane-{at}");
            if !plane.is_empty() {
                source.tensor(&name, plane)?;
            }
            if plane.iter().any(|value| !value.is_finite()) {
                return Err(malformed(&name, "a value is not finite"));
            }
        }
        if source.contains(MEMORY) {
            let memory = read_memory(&source.bytes(MEMORY)?);
            read.memory =
                memory.ok_or_else(|| malformed(MEMORY, "it ends in the middle of an entry"))?;
            if read.memory.values().flatten().any(|v| !v.is_finite()) {
                return Err(malformed(MEMORY, "a value is not finite"));
            }
        }
        Ok(read)
    }
}

const MEMORY: &str = "codec.memory";

fn read_memory(mut bytes: &[u8]) -> Option<BTreeMap<Place, Vec<f32>>> {
    let mut memory = BTreeMap::new();
    while !bytes.is_empty() {
        let mut number = || {
            let (two, rest) = bytes.split_first_chunk::<2>()?;
            bytes = rest;
            Some(u16::from_le_bytes(*two))
        };
        let place = (number()?, number()?, number()?);
        memory.insert(place, take_values(&mut bytes)?);
    }
    Some(memory)
}

/// A seed that only this slice has, and one that is the same at all peers.
pub(super) fn seeds(plan: &PlanHash, slice: &SliceId) -> (u64, u64) {
    let mut name = Vec::with_capacity(96);
    name.extend_from_slice(plan.as_bytes());
    name.extend_from_slice(&slice.round.0.to_le_bytes());
    name.extend_from_slice(&slice.fragment.0.to_le_bytes());
    name.extend_from_slice(&slice.shard.to_le_bytes());
    name.push(slice.part as u8);
    let shared = first_eight(&Digest::of(&name));
    name.extend_from_slice(slice.origin.as_bytes());
    name.push(slice.attempt.0);
    (first_eight(&Digest::of(&name)), shared)
}

fn first_eight(digest: &Digest) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(eight)
}

/// The whole rows, inside `range`, of the tensors of two dimensions or more.
fn matrices(tensors: &[TensorSpec], range: &Range<usize>) -> impl Iterator<Item = Matrix> {
    tensors.iter().filter_map(move |tensor| {
        let columns = tensor.shape.get(1..)?.iter().product::<u64>() as usize;
        if columns == 0 || tensor.shape.len() < 2 {
            return None;
        }
        let tensor = tensor.range();
        let first = range.start.max(tensor.start) - tensor.start;
        let last = range.end.min(tensor.end).checked_sub(tensor.start)?;
        let (first, last) = (first.div_ceil(columns), last / columns);
        (first < last).then(|| Matrix {
            offset: tensor.start + first * columns - range.start,
            rows: last - first,
            columns,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use crate::state::MemoryState;
    use murmurate_protocol::{FragmentId, Part, PeerId, Round};

    fn slice(shard: u16, origin: u8) -> SliceId {
        SliceId {
            round: Round(3),
            fragment: FragmentId(0),
            shard,
            part: Part::Contribution,
            origin: PeerId::from_bytes([origin; 32]),
            attempt: murmurate_protocol::Attempt(0),
        }
    }

    #[test]
    fn a_slice_sees_the_whole_rows_that_lie_in_it() {
        let shapes = [("a", vec![3, 4]), ("b", vec![5]), ("c", vec![2, 2, 3])];
        let layout = Layout::new(shapes);
        let of = |range: Range<usize>| matrices(layout.tensors(), &range).collect::<Vec<_>>();
        let matrix = |offset, rows, columns| Matrix {
            offset,
            rows,
            columns,
        };
        assert_eq!(of(0..29), [matrix(0, 3, 4), matrix(17, 2, 6)]);
        assert_eq!(of(1..23), [matrix(3, 2, 4), matrix(16, 1, 6)]);
        assert_eq!(of(5..8), []);
        assert_eq!(of(12..17), []);
    }

    #[test]
    fn seeds_are_shared_by_peers_and_differ_between_slices() {
        let plan = PlanHash::from_bytes([9; 32]);
        let (mine, shared) = seeds(&plan, &slice(0, 1));
        let (theirs, same) = seeds(&plan, &slice(0, 2));
        assert_eq!(shared, same);
        assert_ne!(mine, theirs);
        assert_ne!(seeds(&plan, &slice(1, 1)).1, shared);
        assert_ne!(
            seeds(&PlanHash::from_bytes([8; 32]), &slice(0, 1)).1,
            shared
        );
    }

    #[test]
    fn state_survives_a_checkpoint_and_memory_goes_with_its_cut() {
        let plan = PlanHash::from_bytes([9; 32]);
        let mut state = CodecState::new(1, 10, Vec::new());
        let context = state.context(&plan, &slice(1, 1), 2, &(5..10));
        assert_eq!((context.planes[0].len(), context.planes[1].len()), (5, 0));
        context.planes[0].fill(2.0);
        context.memory.extend([1.0, 2.0]);
        let mut saved = MemoryState::default();
        state.save(&mut saved).unwrap();

        let fresh = CodecState::new(1, 10, Vec::new());
        let mut again = fresh.read(&saved).unwrap();
        assert_eq!(again.planes[0][4..6], [0.0, 2.0]);
        let context = again.context(&plan, &slice(1, 1), 2, &(5..10));
        assert_eq!(*context.memory, [1.0, 2.0]);
        assert!(
            again
                .context(&plan, &slice(1, 1), 3, &(3..6))
                .memory
                .is_empty()
        );
        assert_eq!(again.len(), 10, "the memory of the old cut is gone");
        StateSink::bytes(&mut saved, MEMORY, &[1, 2, 3]).unwrap();
        assert!(again.read(&saved).is_err());
    }
}
