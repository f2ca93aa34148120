//! The codecs of a run: of contributions, one for all fragments or one for each density that fragments have,
//! and of aggregates. Sums over what they decode: shards of an all-reduce, the mix of
//! gossip. Sums run in the order that the peer gives, which is `PeerId` order.
//!
//! The codec of contributions may keep planes and memory between rounds. The Executor owns this state, and the
//! codec sees the part that belongs to one slice.

use super::common::{put_values, take_values};
use super::host::{Host, WorkResult};
use crate::TensorSpec;
use crate::aggregate::{Norm, RMS_MAX, quarantine};
use crate::compress::{Codec, CodecKind, EncodeContext, F32, Matrix, Named, PLANES_MAX, Tiles};
use crate::state::{StateError, StateSink, StateSource};
use bytes::Bytes;
use murmurate_protocol::{
    Digest, Done, FragmentId, Part, PlanHash, Round, SliceId, TrainingRules, WorkError,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The codecs of contributions and of aggregates.
pub(super) struct Codecs {
    /// Seeds of encodings depend on the plan.
    pub(super) plan: PlanHash,
    pub(super) contribution: ByFragment,
    pub(super) aggregate: Box<dyn Codec>,
    /// Set where members decide on the contributions themselves, as they were encoded.
    pub(super) gathered: bool,
}

impl Codecs {
    /// The owner of the run has directed the codec of a round, or its members have chosen it.
    pub(super) fn direct(&mut self, round: Round, rules: &TrainingRules) {
        let codec = Named::by(rules);
        self.contribution.direct(round.0, codec);
        self.aggregate.direct(round.0, codec);
    }

    /// The codec that a slice is encoded by.
    pub(super) fn of(&self, slice: &SliceId) -> &dyn Codec {
        match slice.part {
            Part::Contribution | Part::Basis | Part::Second => self.contribution.of(slice.fragment),
            Part::Aggregate if self.gathered => self.contribution.of(slice.fragment),
            // A bundle's parts are aggregates.
            // Scores are not encoded by a codec.
            Part::Aggregate | Part::Partial | Part::Bundle | Part::Scores => {
                self.aggregate.as_ref()
            }
            Part::RowMean => &F32,
        }
    }

    /// The codec that encodes a fragment: its contributions, or a whole copy of it.
    pub(super) fn of_mut(&mut self, slice: &SliceId) -> &mut dyn Codec {
        match slice.part {
            Part::Aggregate => self.aggregate.as_mut(),
            _ => self.contribution.of_mut(slice.fragment),
        }
    }

    /// Room for the encoding of a slice of this many values.
    pub(super) fn room(&self, slice: &SliceId, len: usize, host: &dyn Host) -> Vec<u8> {
        let bound = self.of(slice).bytes_bound().of(len as u64);
        host.room(usize::try_from(bound).unwrap_or(0))
    }

    /// Encodes values by the codec of aggregates. With `left_out`, adds what the previous encoding
    /// left out and leaves there what this one leaves out.
    pub(super) fn encode_aggregate(
        &mut self,
        slice: &SliceId,
        values: &[f32],
        left_out: Option<&mut [f32]>,
        out: &mut Vec<u8>,
    ) {
        let (seed, shared_seed) = seeds(&self.plan, slice);
        let mut memory = Vec::new();
        let mut context = EncodeContext {
            shared_seed,
            round: slice.round.0,
            ..EncodeContext::seeded(seed, &mut memory)
        };
        let codec = &mut self.aggregate;
        match left_out {
            Some(left_out) => codec.encode_residual(values, left_out, &mut context, out),
            None => codec.encode(values, &mut context, out),
        }
    }

    /// `acc = begin + sum_k (a_k / total) decode(slice_k)`, where `begin(start, run)` writes the initial
    /// values of the sum. The sum is checked once, after the last input: a value that is not finite stays so,
    /// and values that cancel out do no harm. Only a sum that fails is made again, and checked after
    /// every input, to name the bad slice. `acc` is of no use if it fails.
    pub(super) fn sum_all(
        &self,
        acc: &mut [f32],
        inputs: &[(SliceId, f64)],
        total: f64,
        host: &dyn Host,
        begin: impl FnMut(usize, &mut [f32]),
    ) -> WorkResult {
        let mut sum = Sum {
            acc: &mut *acc,
            begin,
            norm: Norm::default(),
        };
        let share = |weight: f64| (weight / total) as f32;
        if self.sum_in_tiles(inputs, share, host, &mut sum) && sum.norm.quarantine(RMS_MAX).is_ok()
        {
            return Ok(());
        }
        let mut begin = sum.begin;
        begin(0, acc);
        for (slice, weight) in inputs {
            self.add(acc, *slice, share(*weight), host)?;
        }
        if quarantine(acc, RMS_MAX).is_ok() {
            return Ok(());
        }
        begin(0, acc);
        for (slice, weight) in inputs {
            self.add_checked(acc, *slice, share(*weight), host)?;
        }
        Ok(())
    }

    /// Sums slices of one codec in one pass. Returns whether it could.
    fn sum_in_tiles<F: FnMut(usize, &mut [f32])>(
        &self,
        inputs: &[(SliceId, f64)],
        share: impl Fn(f64) -> f32,
        host: &dyn Host,
        sum: &mut Sum<'_, F>,
    ) -> bool {
        let Some((first, _)) = inputs.first() else {
            return false;
        };
        let mut held = Vec::with_capacity(inputs.len());
        for (slice, weight) in inputs {
            match host.get(slice) {
                Some(bytes) if (slice.part, slice.fragment) == (first.part, first.fragment) => {
                    held.push((bytes, share(*weight)))
                }
                _ => return false,
            }
        }
        let held: Vec<(&[u8], f32)> = held.iter().map(|(bytes, w)| (bytes.as_ref(), *w)).collect();
        let summed = self.of(first).decode_sum(&held, sum.acc.len(), sum);
        summed.is_ok()
    }

    /// The bytes of these slices, if all are here and decode in small tiles.
    pub(super) fn in_tiles(&self, slices: &[SliceId], host: &dyn Host) -> Option<Vec<Bytes>> {
        let bytes = |slice| host.get(slice).filter(|all| self.of(slice).has_tiles(all));
        slices.iter().map(bytes).collect()
    }

    /// Calls `f(start, values)` for the tiles of a slice of `len` values, each while it is in a cache. It may have
    /// been called for some when this fails.
    pub(super) fn each_tile(
        &self,
        slice: SliceId,
        bytes: &[u8],
        len: usize,
        f: &mut dyn FnMut(usize, &mut [f32]),
    ) -> WorkResult {
        let tile = Vec::new();
        let mut tiles = Passing { tile, f };
        let decoded = self.of(&slice).decode_sum(&[(bytes, 1.0)], len, &mut tiles);
        decoded.map_err(|error| bad_slice(slice, error.to_string()))
    }

    /// Refuses bytes of a slice of `len` values that do not decode to usable ones.
    pub(super) fn check(&self, slice: SliceId, bytes: &[u8], len: usize) -> WorkResult {
        let mut norm = Norm::default();
        self.each_tile(slice, bytes, len, &mut |_, tile| norm.take(tile))?;
        let checked = norm.quarantine(RMS_MAX);
        checked.map_or_else(|error| Err(bad_slice(slice, error.to_string())), |_| Ok(()))
    }

    /// `acc = decode(slice)`, and checks it. `acc` is of no use if it fails.
    pub(super) fn set_checked(
        &self,
        acc: &mut [f32],
        slice: SliceId,
        host: &dyn Host,
    ) -> WorkResult {
        self.sum_all(acc, &[(slice, 1.0)], 1.0, host, |_, run| run.fill(0.0))
    }

    /// `acc += weight decode(slice)`, and checks the sum.
    pub(super) fn add_checked(
        &self,
        acc: &mut [f32],
        slice: SliceId,
        weight: f32,
        host: &dyn Host,
    ) -> WorkResult {
        let bytes = bytes_of(slice, host)?;
        let added = add_decoded(self.of(&slice), &bytes, weight, acc);
        added.map_err(|reason| bad_slice(slice, reason))
    }

    /// `acc += weight decode(slice)`.
    fn add(&self, acc: &mut [f32], slice: SliceId, weight: f32, host: &dyn Host) -> WorkResult {
        let bytes = bytes_of(slice, host)?;
        let added = self.of(&slice).decode_add(&bytes, weight, acc);
        added.map_err(|error| bad_slice(slice, error.to_string()))
    }
}

/// A sum, its initial values, and its norm.
struct Sum<'a, F> {
    acc: &'a mut [f32],
    begin: F,
    norm: Norm,
}

impl<F: FnMut(usize, &mut [f32])> Tiles for Sum<'_, F> {
    fn begin(&mut self, tile: Range<usize>) -> &mut [f32] {
        let place = &mut self.acc[tile.clone()];
        (self.begin)(tile.start, place);
        place
    }

    fn end(&mut self, tile: Range<usize>) {
        self.norm.take(&self.acc[tile]);
    }
}

/// Tiles that are passed on, and kept nowhere.
struct Passing<'a> {
    tile: Vec<f32>,
    f: &'a mut dyn FnMut(usize, &mut [f32]),
}

impl Tiles for Passing<'_> {
    fn begin(&mut self, tile: Range<usize>) -> &mut [f32] {
        self.tile.clear();
        self.tile.resize(tile.len(), 0.0);
        &mut self.tile
    }

    fn end(&mut self, tile: Range<usize>) {
        (self.f)(tile.start, &mut self.tile);
    }
}

/// `acc += weight decode(bytes)`, and checks the sum.
pub(super) fn add_decoded(
    codec: &dyn Codec,
    bytes: &[u8],
    weight: f32,
    acc: &mut [f32],
) -> Result<(), String> {
    let added = codec.decode_add(bytes, weight, acc);
    added.map_err(|error| error.to_string())?;
    let checked = quarantine(acc, RMS_MAX);
    checked.map(|_| ()).map_err(|error| error.to_string())
}

/// Encodes values as they are.
pub(super) fn encode_plain(values: &[f32], out: &mut Vec<u8>) {
    let mut memory = Vec::new();
    F32.encode(values, &mut EncodeContext::seeded(0, &mut memory), out);
}

/// Keeps an encoded slice, and answers the order to encode it. What members vote for has its hash with it.
pub(super) fn encoded(slice: SliceId, out: Vec<u8>, host: &dyn Host) -> Done {
    let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&out));
    let bytes = out.len() as u64;
    host.put(slice, host.keep(out));
    Done::Encoded { bytes, digest }
}

/// A slice that does not decode to usable values.
pub(super) const fn bad_slice(slice: SliceId, reason: String) -> WorkError {
    WorkError::BadSlice {
        slice,
        origin: slice.origin,
        reason,
    }
}

/// The bytes of a slice, which may have gone from the host's store.
pub(super) fn bytes_of(slice: SliceId, host: &dyn Host) -> WorkResult<Bytes> {
    let bytes = host.get(&slice);
    bytes.ok_or_else(|| bad_slice(slice, "its bytes are gone".to_owned()))
}

/// Which codec encodes the contributions to a fragment.
pub struct ByFragment {
    codecs: Vec<Box<dyn Codec>>,
    /// The place of each fragment's codec; empty where all fragments have the first.
    places: Vec<u16>,
}

impl From<Box<dyn Codec>> for ByFragment {
    fn from(codec: Box<dyn Codec>) -> Self {
        Self {
            codecs: vec![codec],
            places: Vec::new(),
        }
    }
}

impl ByFragment {
    /// A codec for each fragment, in order. Fragments of the same kind share one, and its scratch memory.
    ///
    /// # Panics
    /// Without fragments.
    pub fn each(kinds: &[CodecKind]) -> Self {
        assert!(!kinds.is_empty(), "a plan has a fragment");
        let mut different: Vec<CodecKind> = Vec::new();
        let mut places = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let known = different.iter().position(|other| other == kind);
            let place = known.unwrap_or(different.len());
            if known.is_none() {
                different.push(*kind);
            }
            places.push(place as u16);
        }
        Self {
            codecs: different.iter().map(CodecKind::build).collect(),
            places,
        }
    }

    fn place(&self, fragment: FragmentId) -> usize {
        let place = self.places.get(usize::from(fragment.0));
        place.map_or(0, |place| usize::from(*place))
    }

    /// The codec of a fragment.
    pub(super) fn of(&self, fragment: FragmentId) -> &dyn Codec {
        self.codecs[self.place(fragment)].as_ref()
    }

    /// The codec of a fragment.
    pub(super) fn of_mut(&mut self, fragment: FragmentId) -> &mut dyn Codec {
        let place = self.place(fragment);
        self.codecs[place].as_mut()
    }

    /// A codec that has what all of them have in common: they differ in their density alone.
    pub(super) fn any(&mut self) -> &mut dyn Codec {
        self.codecs[0].as_mut()
    }

    /// The owner of the run has directed the codec of a round, or its members have chosen it.
    pub(super) fn direct(&mut self, round: u64, codec: Option<Named>) {
        self.codecs
            .iter_mut()
            .for_each(|own| own.direct(round, codec));
    }
}

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
