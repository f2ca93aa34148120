//! The sans-IO peer of Murmurate: ids, wire, membership, exchanges, and the [`Peer`] itself.
//!
//! Pure: no sockets, threads, clocks or tensors. `node` feeds it from sockets and threads, `sim`
//! from a heap in virtual time.

pub mod limits;
pub mod peer;
pub mod wire;

mod count;
mod exchange;
mod id;
mod order;
mod plan;
mod slice;
mod time;
mod topology;

pub use count::{FragmentId, InnerStep, OrderId, Round};
pub use id::{Digest, LayoutHash, PeerId, PlanHash, RunId};
pub use order::{
    Done, Evaluation, Lane, Order, StateId, StepBudget, StoreId, TrainSummary, WorkError,
};
pub use peer::{
    Event, FetchId, Input, Output, Peer, PeerConfig, PeerError, Phase, Remote, Snapshot, View, Wait,
};
pub use plan::{
    BytesBound, Contribution, DeadlinePlan, ExchangeKind, FragmentPlan, Plan, PlanError,
};
pub use slice::{Part, PushOutcome, Settlement, SliceId, SliceMeta};
pub use time::Time;
pub use topology::{Partners, Topology};
