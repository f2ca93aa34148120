//! Input of a codec beside the values: seeds, the round, matrices, and its own state. The Executor
//! makes one for every slice. It is never sent.

use std::ops::Range;

/// The most values for each parameter that a codec may keep.
pub const PLANES_MAX: usize = 2;

/// A row-major matrix that is completely inside a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Where it begins in the slice.
    pub offset: usize,
    /// Rows. Where a slice ends inside a tensor, only the tensor's whole rows are here.
    pub rows: usize,
    /// Values in a row: the product of all dimensions but the first.
    pub columns: usize,
}

impl Matrix {
    /// Its place in the slice.
    pub const fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.columns
    }
}

/// What a codec may use and keep for the slice that it encodes.
#[derive(Debug)]
pub struct EncodeContext<'a> {
    /// Different for every slice: a hash of run, round, fragment, shard, direction, origin and attempt.
    pub seed: u64,
    /// The same at all peers for a slice of a round: a hash of run, round, fragment, shard and
    /// direction. Decoders read it from the header of the encoding.
    pub shared_seed: u64,
    /// The round, from zero: for schedules such as a warm-up.
    pub round: u64,
    /// The slice's matrices, ascending; empty unless the codec asks for them.
    pub matrices: &'a [Matrix],
    /// As many runs as the codec asks for, each with one f32 for every value of the slice; the
    /// others are empty. They begin as zeros, follow the parameters when groups and shards change,
    /// and are part of checkpoints, not of state transfers.
    pub planes: [&'a mut [f32]; PLANES_MAX],
    /// State of any length for this slice, empty at first and again when shards change; part of
    /// checkpoints. A codec replaces contents of the wrong length.
    pub memory: &'a mut Vec<f32>,
    /// The common state of all members for this slice, the same bits at each:
    /// [`Gathering`](super::Gathering). Empty at first, and for all other codecs.
    pub shared: &'a [f32],
    /// The vector that every member holds of this peer:
    /// [`Gathering::hold`](super::Gathering::hold). Empty for zeros.
    pub held: &'a [f32],
    /// The anchor, from which this peer's contribution started: one value for each of the slice. Empty
    /// where the caller has none.
    pub anchor: &'a [f32],
}

impl<'a> EncodeContext<'a> {
    /// A context with a seed and nothing else.
    pub fn seeded(seed: u64, memory: &'a mut Vec<f32>) -> Self {
        Self {
            seed,
            shared_seed: seed,
            round: 0,
            matrices: &[],
            planes: [&mut [], &mut []],
            memory,
            shared: &[],
            held: &[],
            anchor: &[],
        }
    }
}
