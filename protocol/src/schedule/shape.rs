//! What every schedule states about itself: its trees, or each rank's part, and its cost.

/// What one fragment's all-reduce costs, without agreement (that is n - 1 short messages a member
/// and one from each owner to all others). A push carries one of the fragment's shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleCost {
    /// Pieces that the fragment is cut into.
    pub shards: u64,
    /// Pushes that depend on one another: the latency is this many times that of a link.
    pub hops: u64,
    /// Pushes of all members together.
    pub pushes: u64,
    /// Pushes of the member that sends most.
    pub busiest: u64,
}

impl ScheduleCost {
    /// Bytes that the busiest member sends for a fragment of `bytes`, to within one byte a push.
    pub const fn busiest_bytes(&self, bytes: u64) -> u64 {
        bytes * self.busiest / self.shards
    }
}

/// A schedule whose partial sums climb a tree for every shard. Ranks are indices in `PeerId` order.
pub(super) trait Trees {
    /// The rank that gets a rank's partial sum of a shard; none where the sum ends.
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize>;
    /// The rank that sends a shard's aggregate to a rank; none where the sum ended.
    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize>;
    /// What it costs, by the formula of the file's head.
    fn cost(&self, n: usize) -> ScheduleCost;
}

/// One rank's part in one shard, before the parts of the others are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    /// The receiver of the stage's value, and the senders of the values that it adds.
    pub(super) stages: Vec<(Option<usize>, Vec<usize>)>,
    pub(super) ends: bool,
    pub(super) serves: Vec<usize>,
    pub(super) server: Option<usize>,
}
