//! The sans-IO peer of Murmurate: ids, wire, membership, exchanges, and the [`Peer`] itself.
//!
//! Pure: no sockets, threads, clocks or tensors. `node` feeds it from sockets and threads, `sim`
//! from a heap in virtual time.
//!
//! Two peers by hand, through a round of all-reduce that trains nothing: the driver carries what
//! comes out of one to the other, and answers orders as an Executor would.
//!
//! ```
//! use murmurate_protocol::*;
//! use std::collections::VecDeque;
//! # let bound = BytesBound { fixed: 8, per_1024: 4096 };
//! # let plan = Plan {
//! #     run: RunId::from_bytes([1; 32]), layout: LayoutHash::from_bytes([2; 32]),
//! #     recipe: Digest::from_bytes([3; 32]), exchange: ExchangeKind::AllReduce,
//! #     schedule: Schedule::Butterfly,
//! #     contribution: Contribution::Delta, budget: StepBudget::Steps(1), rounds: 0,
//! #     fragments: vec![FragmentPlan { len: 10, contribution: bound, aggregate: bound }],
//! #     synchronization: Default::default(), overlap: OverlapPlan::NONE,
//! #     deadlines: DeadlinePlan::default(), state_bytes: 0, agreement: Default::default(),
//! # };
//! # let config = |me| PeerConfig {
//! #     me, seed: 1, start_with: 2, companions: 0,
//! #     start_wait: core::time::Duration::from_secs(30), join: false,
//! #     save_every: None, evaluate_every: 0, evaluate_percent: 0, leave_when_finished: false, pool: None, masked: None,
//! # };
//! let ids = [PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32])];
//! let mut peers = ids.map(|me| Peer::new(config(me), plan.clone(), None));
//! let digest = Digest::of(b"the same bits on both");
//! let mut inputs = VecDeque::new();
//! for to in [0, 1] {
//!     inputs.push_back((to, Input::Start { snapshot: None, digests: vec![digest], opened: vec![] }));
//!     inputs.push_back((to, Input::LinkUp(ids[1 - to])));
//! }
//! while peers.iter().any(|peer| peer.round() == Round(0)) {
//!     let (at, input) = inputs.pop_front().expect("there is always something to do");
//!     peers[at].handle(Time::ZERO, input)?;
//!     let (from, to) = (ids[at], 1 - at);
//!     while let Some(output) = peers[at].poll_output() {
//!         match output {
//!             Output::Send { message, .. } => inputs.push_back((to, Input::Received { from, message })),
//!             Output::Push { slice, meta, .. } => {
//!                 let digest = (slice.part == Part::Aggregate).then_some(digest);
//!                 inputs.push_back((to, Input::Arrived { from, slice, meta, digest }));
//!                 let outcome = PushOutcome::Delivered;
//!                 inputs.push_back((at, Input::Pushed { to: ids[to], slice, outcome }));
//!             }
//!             Output::Order { id: order, order: what } => {
//!                 let done = match what {
//!                     Order::Train { .. } => {
//!                         Done::Trained(TrainSummary { steps: 1, samples: 8, ..Default::default() })
//!                     }
//!                     Order::Encode { .. } => Done::Encoded { bytes: 48, digest: Some(digest) },
//!                     Order::Combine { .. } => Done::Combined,
//!                     Order::Apply { .. } => Done::Applied { digest, note: Vec::new() },
//!                     _ => continue, // Settle and Release are not answered.
//!                 };
//!                 inputs.push_back((at, Input::Done { order, done }));
//!             }
//!             _ => {} // Nothing is fetched, dialled or closed when all goes well.
//!         }
//!     }
//! }
//! assert_eq!(peers[0].digest(), peers[1].digest());
//! # Ok::<(), PeerError>(())
//! ```

pub mod limits;
pub mod peer;
pub mod record;
pub mod vitals;
pub mod wire;

mod branch;
mod core;
mod data;
mod directive;
mod exchange;
mod id;
mod kind;
mod ladder;
mod locality;
mod loss;
mod order;
mod overlap;
mod plan;
mod roll;
mod schedule;
mod score;
#[cfg(test)]
mod seeds;
mod signature;
mod slice;
mod sorted;
mod synchronization;
mod topology;

pub use self::core::{
    EVALUATE_NEVER, Event, FetchId, Output, PeerConfig, Phase, Remote, View, Wait, Waiting,
};
pub use branch::{Base, Branch, KeptSplit};
pub use data::{Blocks, Ledger, Pool, Run, Taken, TallyEntry};
pub use directive::{Change, Directive, Directives, InForce, RateFactor, TrainingRules};
pub use exchange::Standing;
pub use id::{
    Digest, FragmentId, GroupTag, InnerStep, LayoutHash, Members, OrderId, PeerId, PlanHash, Round,
    RunId, Time,
};
pub use kind::{
    CenterPlan, CopyPlan, ExchangeFacts, ExchangeKind, KindError, LeadPlan, PullAnswers, PullPlan,
    ServerPlan,
};
pub use ladder::{Chosen, Ladder, Recoding, Rung};
pub use locality::{Locality, RateClass, Site, SiteFinder};
pub use loss::{Loss, Losses, NoLoss};
pub use order::{
    Combination, Done, Ending, Evaluation, Lane, Order, Participants, Piece, Route, Source,
    StateId, StepBudget, StoreId, TrainSummary, Unneeded, WorkError,
};
pub use overlap::{Layers, OverlapError, OverlapPlan};
pub use peer::{Input, Peer, SNAPSHOT_VERSION, Snapshot};
pub use plan::{
    AgreementPlan, BytesBound, Contribution, DeadlinePlan, FragmentPlan, Grouping, Passes, Plan,
    PlanError, Weighing,
};
pub use roll::{
    Axes, Dealing, FoundingBallot, FoundingMessage, Grid, Roll, RollChange, RollName, RollSeat,
    SharedRolls,
};
pub use schedule::{
    AgreedLinks, Certificate, LinkCodes, LinkPlan, LinkTable, LinkTableError, Packing,
    PackingCertificate, PackingError, Schedule, ScheduleCost,
};
pub use score::{NoScore, Ratings, Score, Scores, Scoring};
pub use signature::{Proof, Saying, SealMemory, Signature, Signed};
pub use slice::{Attempt, JoinedGroups, Part, PushOutcome, Settlement, SliceId, SliceMeta, Tag};
pub use sorted::{Iter as SortedIter, SortedMap, SortedSet};
pub use synchronization::{Grace, Pace, Quorum, Sampling, Synchronization};
pub use topology::{LinkRates, Partners, SpanningTree, Topology};
pub(crate) use wire::check::Checked;
pub use wire::check::PeerError;
