//! What a peer of a center keeps from round to round.

use super::round::WorkerFragment;
use super::shard::{Arrival, Reply, Shard};
use super::waiting::Lead;
use crate::core::context::Context;
use crate::exchange::Outcome;
use crate::rendezvous::rendezvous;
use crate::{
    CenterPlan, Contribution, ExchangeKind, FragmentId, OrderId, PeerId, Plan, Round, SliceId,
};
use std::collections::BTreeMap;

/// A shard of a fragment.
pub(super) type ShardKey = (FragmentId, u16);

/// What this exchange is called in errors.
pub(super) const EXCHANGE: &str = "a center";

/// Marks the name of a worker's copy of the center, beside replies of owners.
pub(super) const COPY: u8 = 0x80;

/// No center moves so often. A version above it is invented, and would leave no room for the next.
pub(super) const VERSION_MAX: u64 = 1 << 60;

/// An order whose answer is awaited.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Encode this peer's contribution to a shard.
    Contribution(SliceId),
    /// Encode this peer's shard of the center for the workers that wait for it.
    Reply(SliceId),
    /// Take contributions in.
    Arrive(ShardKey, Vec<Arrival>),
    /// Encode the shard as it was last pulled, for a successor.
    Copy(SliceId, PeerId),
    /// Take over a worker's copy; with the version that the shard returns to when the copy is bad.
    Adopt(SliceId, ShardKey, u64),
    /// Begin from this peer's anchor.
    Seed,
}

/// Versions that a center may have moved while its owner looked away: beyond them a worker's word
/// for a newer one is no word. As many as 64 workers push in 1,024 rounds.
pub(super) const LEAP_MAX: u64 = 1 << 16;

/// The center exchange of one peer: a worker, and perhaps an owner.
pub(crate) struct Center {
    pub(super) plan: CenterPlan,
    /// Whether parameters travel, and a reply is the center before the arrival.
    pub(super) elastic: bool,
    /// The version at which each shard was last pulled.
    pub(super) bases: BTreeMap<ShardKey, u64>,
    pub(super) fragments: Vec<WorkerFragment>,
    pub(super) shards: BTreeMap<ShardKey, Shard>,
    pub(super) replies: BTreeMap<SliceId, Reply>,
    /// Copies on their way to successors, with their bytes once they are encoded.
    pub(super) copies: BTreeMap<SliceId, PeerId>,
    pub(super) tasks: BTreeMap<OrderId, Task>,
    pub(super) lead: Lead,
    pub(super) outcome: Option<Outcome>,
}

impl Center {
    /// The center that a plan asks for; `None` where it asks for another exchange.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let ExchangeKind::Center(center) = plan.exchange else {
            return None;
        };
        Some(Self {
            plan: center,
            elastic: plan.contribution == Contribution::Parameters,
            bases: BTreeMap::new(),
            fragments: Vec::new(),
            shards: BTreeMap::new(),
            replies: BTreeMap::new(),
            copies: BTreeMap::new(),
            tasks: BTreeMap::new(),
            lead: Lead::default(),
            outcome: None,
        })
    }

    /// The version at which a shard was last pulled.
    pub(super) fn base(&self, place: ShardKey) -> u64 {
        self.bases.get(&place).copied().unwrap_or(0)
    }

    /// The number of shards that a fragment is cut into.
    pub(super) fn of(cx: &Context, fragment: FragmentId) -> u16 {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        cx.plan.exchange.parts(len, 1) as u16
    }

    /// The owner of a shard among the live peers, except those in `not`.
    pub(super) fn owner(cx: &Context, shard: u16, not: &[PeerId]) -> Option<PeerId> {
        let live = cx.view.live().map(|(id, _)| id).chain([cx.me()]);
        let left = live.filter(|id| !not.contains(id));
        left.max_by_key(|id| (rendezvous(&cx.plan.run, Round(0), shard as u8, *id), *id))
    }
}
