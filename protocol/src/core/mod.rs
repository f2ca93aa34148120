//! What all parts of a peer work with: its configuration, the clock, the peers it knows, its
//! timers, and the queue of outputs. Nothing here knows an exchange or the [`Peer`](crate::Peer).

pub(crate) mod context;
pub(crate) mod deadlines;
mod event;
mod links;
mod measured_links;
mod notes;
pub(crate) mod split;
pub(crate) mod view;

pub use context::{EVALUATE_NEVER, PeerConfig};
pub use event::{Event, FetchId, Output, Phase, Wait, Waiting};
pub use view::{Remote, View};
