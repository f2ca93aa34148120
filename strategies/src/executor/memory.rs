//! What the mix lane keeps in memory, measured.

/// Bytes that the mix lane keeps, by store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last parameters agreed on.
    pub anchor: u64,
    /// The buffer that travels between the lanes.
    pub local: u64,
    /// What the codec left out, kept for the next round (error feedback).
    pub residual: u64,
    /// State of the codec.
    pub codec: u64,
    /// State of the outer and of the shared inner optimizer, and of eager updates.
    pub outer: u64,
    /// A moving average of the anchor.
    pub ema: u64,
    /// Copies that this peer and its neighbours hold of each other.
    pub replicas: u64,
    /// Reductions of owned shards, owned shards of a center, and contributions that a robust rule
    /// has decoded for them.
    pub shards: u64,
}

impl Memory {
    /// The sum of all stores.
    pub const fn total(&self) -> u64 {
        let kept = self.residual + self.codec + self.outer + self.ema + self.replicas;
        self.anchor + self.local + kept + self.shards
    }
}

/// Number of f32 that a mixer keeps, by store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stores {
    /// What the codec keeps in common with all members.
    pub(super) codec: usize,
    pub(super) replicas: usize,
    pub(super) shards: usize,
}
