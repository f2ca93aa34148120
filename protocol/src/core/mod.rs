//! What all parts of a peer work with: its configuration, the clock, the peers it knows, its
//! timers, and the queue of outputs. Nothing here knows an exchange or the [`Peer`](crate::Peer).

pub(crate) mod absence;
pub(crate) mod anchor;
pub(crate) mod context;
mod deadlines;
mod event;
mod held;
mod links;
mod measured_links;
mod notes;
mod output;
mod phase;
pub(crate) mod remote;
pub(crate) mod seats;
pub(crate) mod sends;
mod split;
pub(crate) mod timers;
pub(crate) mod view;

pub use event::{Event, Wait, Waiting};
pub use held::{EVALUATE_NEVER, PeerConfig};
pub use output::{FetchId, Output};
pub use phase::Phase;
pub use remote::Remote;
pub use view::View;
