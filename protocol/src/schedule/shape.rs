//! What every schedule states about itself: its trees, or each rank's part, and its cost. Bounds of schedules that
//! are found for measured links, beside those of [`crate::limits`].

/// Bytes of a push that measures a link; a smaller one measures the round trip. As many may be under way at
/// the same time while links are measured.
pub(crate) const MEASURED_BYTES_MIN: u64 = 64 * 1024;

/// Last pushes to a peer of which the fastest counts. Others may share the receiver's line with a push, so
/// the fastest of some says more of the link than their mean.
pub(crate) const PUSHES_MEASURED: usize = 4;

/// Percent of the present time of a fragment that new trees take at most. A rate is told in steps of 9 %, so
/// one that lies at the border of two steps changes nothing.
pub(crate) const RESYNTHESIS_PERCENT: u64 = 80;

/// Percent of the butterfly's time that trees take at most: they round sums once more.
pub(super) const TREES_PERCENT: u64 = 90;

/// Decisions that the search for an order of sends makes. It is complete for a handful of members with few
/// shards; beyond that it improves the best of some lists.
pub(super) const SENDS_SEARCHED_MAX: usize = 1_000;

/// How often a packing is disturbed while a run is under way: its members wait for it.
pub(super) const RESYNTHESIS_KICKS: usize = 1;

/// Sends of one peer that wait for their turn. Each is of a shard of an open fragment, or of one that was
/// decided a moment ago; more than these are handed to the network at once.
pub(crate) const SENDS_WAITING_MAX: usize = 4_096;

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

/// A schedule whose partial sums climb a tree for every shard. Ranks are indices in `PeerId` order.
pub(super) trait Trees {
    /// The rank that gets a rank's partial sum of a shard; none where the sum ends.
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize>;
    /// The rank that sends a shard's aggregate to a rank; none where the sum ended. Often the tree of the sums, in
    /// the other direction.
    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        self.up(n, shard, rank)
    }
    /// Its cost, by the formula in its documentation.
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
