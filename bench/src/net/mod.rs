//! What the bulk plane costs beside its alternatives: the same bytes between two processes, several
//! ways.
//!
//! Two ends, in processes of their own so that their CPU time is told apart, and a [`Session`] that
//! sets them to work and sums up. The *far* end listens for every [`Way`] and swallows what comes
//! ([`Far`]); the *near* end is started again for each transfer, dials, sends, and prints its
//! [`Figures`] ([`send`]). All ways do the same on two channels of one connection: small messages
//! go back and forth on one all the time, first alone and then while the bytes go on the other;
//! when it has them all, the far end says so on theirs.
//!
//! A session starts its ends by a command of its caller's ([`Session::run`]), which is this very
//! program with a [`Task`] to [`perform`]. Not here: the command line, the table, and deltas
//! (`node`).

mod channel;
mod cpu;
mod error;
mod far;
mod figures;
mod line;
mod muxed;
mod near;
mod network;
mod order;
mod pings;
mod process;
mod report;
mod session;
mod task;
mod way;

pub use error::BenchError;
pub use far::Far;
pub use figures::{Figures, PathFigures};
pub use near::send;
pub use process::perform;
pub use report::{NetReport, Run, WayReport};
pub use session::{Plan, Session};
pub use task::{FarTask, Hello, NearTask, SPREAD_MAX, Task, Tuning};
pub use way::{UnknownWay, Way};

/// Bytes of one write: what the exchange encodes at a time.
const CHUNK: usize = 256 << 10;
