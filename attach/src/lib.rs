//! A trainer in a process of its own: any framework behind the trait
//! [`Trainer`](murmurate_strategies::Trainer).
//!
//! The daemon listens on a Unix socket. A training loop, usually in Python, attaches to it, describes
//! its tensors and shares its parameters through a memory file. From then on the two take turns: the
//! trainer takes an inner step and says so ([`FromTrainer::Step`]), the daemon lets it continue
//! ([`ToTrainer::Go`]). While the trainer waits for this answer, the daemon may read its parameters,
//! replace them, or ask for an evaluation or for the state of its optimizer. So neither side ever
//! sees parameters in the middle of a change.
//!
//! ```text
//! trainer   Hello        Ready          Step         Step        Cut
//!                \      /     \        /    \       /    \      /
//! daemon          Welcome      Install   Go  ...  Go       Cut    (exchange)  Install  Go
//! ```
//!
//! - `frame` and `message` are the bytes on the socket, `limits` their bounds.
//! - `door` accepts connections; only one trainer is attached at a time.
//! - `memory` holds the parameters that both sides see, in two slots: the trainer writes a cut to the
//!   slot that is not in use, so a trainer that dies in the middle of it spoils nothing.
//! - `named` keeps the named numbers of the last evaluation, for the daemon to show.
//! - `remote` is the trainer as the Executor sees it. It waits for a trainer that is gone, because
//!   an error would make the peer leave the swarm.
//! - `supervisor` starts the training loop, and starts it again when it ends.

mod buffers;
mod claim;
mod door;
mod error;
mod failures;
mod frame;
mod gathering;
mod group;
mod limits;
mod link;
mod memory;
mod message;
mod pace;
mod reader;
mod remote;
mod state;
mod supervisor;
mod terms;

pub use buffers::{Buffer, buffers_of};
pub use error::AttachError;
pub use group::Group;
pub use message::{FromTrainer, Hello, TensorClaim, ToTrainer, Welcome};
pub use remote::{RemoteTrainer, Waiting};
pub use supervisor::{Supervisor, Trouble};
pub use terms::{Mode, Notes, Shard, Terms};
