//! State of a peer of a center: as a worker its waits for shards and for peers that are too far behind,
//! as an owner the arrivals for each shard and its replies.

use super::bound::Paces;
use crate::core::context::Context;
use crate::exchange::Outcome;
use crate::id::rendezvous;
use crate::limits::VIEW_PEERS_MAX;
use crate::sorted::SortedMap;
use crate::{
    Attempt, CenterPlan, Contribution, Ending, ExchangeKind, FragmentId, OrderId, PeerId, Plan,
    Round, SliceId, Time,
};
use core::time::Duration;

pub(super) type ShardKey = (FragmentId, u16);

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
    /// Parameters travel, and a reply is the center before the arrival.
    pub(super) elastic: bool,
    /// The version at which each shard was last pulled.
    pub(super) bases: SortedMap<ShardKey, u64>,
    pub(super) fragments: Vec<WorkerFragment>,
    pub(super) shards: SortedMap<ShardKey, Shard>,
    pub(super) replies: SortedMap<SliceId, Reply>,
    /// Copies on their way to successors, with their bytes once they are encoded.
    pub(super) copies: SortedMap<SliceId, PeerId>,
    pub(super) tasks: SortedMap<OrderId, Task>,
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
            bases: SortedMap::new(),
            fragments: Vec::new(),
            shards: SortedMap::new(),
            replies: SortedMap::new(),
            copies: SortedMap::new(),
            tasks: SortedMap::new(),
            lead: Lead::default(),
            outcome: None,
        })
    }

    /// The version at which a shard was last pulled.
    pub(super) fn base(&self, place: ShardKey) -> u64 {
        self.bases.get(&place).copied().unwrap_or(0)
    }

    pub(super) fn of(cx: &Context, fragment: FragmentId) -> u16 {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        cx.plan.exchange.parts(len, 1) as u16
    }

    /// The owner of a shard among the live peers, except those in `not`.
    pub(super) fn owner(cx: &Context, shard: u16, not: &[PeerId]) -> Option<PeerId> {
        let live = cx.view.live().map(|(id, _)| id).chain([cx.me()]);
        let left = live.filter(|id| !not.contains(id));
        // By the run and not by the round, so that an owner stays while it lives.
        left.max_by_key(|id| (rendezvous(&cx.plan.run, Round(0), shard as u8, *id), *id))
    }
}

/// A worker's wait for one shard.
#[derive(Debug)]
pub(super) struct WantedShard {
    pub(super) owner: Option<PeerId>,
    /// Peers that said that they are not the owner.
    pub(super) refused: Vec<PeerId>,
    /// Encoded bytes of the contribution; zero until it is encoded.
    pub(super) bytes: u64,
    pub(super) tries: u8,
    /// The shard that came back, and its version.
    pub(super) got: Option<(SliceId, u64)>,
    /// No owner answers.
    pub(super) given_up: bool,
}

/// One fragment in one round.
#[derive(Debug)]
pub(super) struct WorkerFragment {
    pub(super) fragment: FragmentId,
    pub(super) shards: Vec<WantedShard>,
    pub(super) since: Time,
    pub(super) deadline: Time,
    pub(super) ending: Option<Ending>,
    pub(super) told: bool,
    pub(super) closed: bool,
}

impl WorkerFragment {
    pub(super) fn open(&self) -> impl Iterator<Item = u16> {
        let open = |w: &WantedShard| w.got.is_none() && !w.given_up;
        let all = (0u16..).zip(&self.shards);
        all.filter(move |(_, w)| open(w)).map(|(shard, _)| shard)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) from: PeerId,
    pub(super) slice: SliceId,
    /// The version of the center that its sender had pulled.
    pub(super) base: u64,
    pub(super) round: Round,
}

/// A shard of the center that this peer owns, or owned.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Raised with every move.
    pub(super) version: u64,
    /// Contributions that wait until enough are here to be taken in at once.
    pub(super) buffer: Vec<Arrival>,
    /// Contributions whose sender has pulled a newer version.
    pub(super) ahead: Vec<Arrival>,
    /// The peer that was asked for a newer copy, and the end of the wait for it.
    pub(super) asked: Option<(PeerId, Time)>,
    /// The last contribution of each sender that was taken in: its life and round.
    pub(super) taken: SortedMap<PeerId, (Attempt, Round)>,
}

impl Shard {
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len() + self.ahead.len()
    }

    pub(super) fn waiting_of(&self, peer: PeerId) -> usize {
        let all = self.buffer.iter().chain(&self.ahead);
        all.filter(|a| a.from == peer).count()
    }

    /// It, or a later one of its sender, was taken in: it is pushed again for want of an answer.
    pub(super) fn is_old(&self, arrival: &Arrival) -> bool {
        let last = self.taken.get(&arrival.from);
        last.is_some_and(|(life, round)| {
            // A peer that restarted counts its rounds again, so another life is never old.
            *life == arrival.slice.attempt && arrival.slice.round <= *round
        })
    }

    pub(super) fn note_taken(&mut self, arrival: &Arrival, known: impl Fn(&PeerId) -> bool) {
        // Only past the bound: one that is away for a moment may push again what was taken in.
        if self.taken.len() > VIEW_PEERS_MAX {
            self.taken.retain(|peer, _| known(peer));
        }
        let name = (arrival.slice.attempt, arrival.slice.round);
        self.taken.insert(arrival.from, name);
    }

    pub(super) fn asked_until(&self) -> Option<Time> {
        self.asked.map(|(_, until)| until)
    }
}

/// One version of a shard, encoded for the workers that wait for it.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Zero until it is encoded.
    pub(super) bytes: u64,
    /// Workers that get it: for which of their rounds, and how often it was pushed again.
    pub(super) to: SortedMap<PeerId, (Round, u8)>,
    /// Pushes under way.
    pub(super) open: u32,
    /// This peer's own round reads it.
    pub(super) mine: bool,
}

/// The wait for peers that are too far behind.
#[derive(Debug, Default)]
pub(super) struct Lead {
    pub(super) since: Option<Time>,
    /// The round's end was told.
    pub(super) over: bool,
    pub(super) until: Option<Time>,
    /// A wait under a smaller lead has missed its deadline in this round.
    pub(super) widest: bool,
    /// Begin of this peer's round.
    pub(super) began: Option<Time>,
    /// Length of the round here, without this wait.
    pub(super) took: Option<Duration>,
    pub(super) paces: Paces,
}
