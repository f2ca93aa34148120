//! Compares the cost of the bulk plane with alternatives: the same bytes between two processes, in several ways.
//!
//! The two ends run in processes of their own, so that their CPU times are separate. A [`Session`] controls them and
//! combines their results. The *far* end listens for every [`Way`] and discards the bytes ([`Far`]). The *near* end is
//! started again for each transfer; it dials, sends, and prints its [`Figures`] ([`send`]). All ways use two channels
//! of one connection. Small messages go back and forth on one channel all the time, first alone, and then while the
//! bytes are sent on the other. The far end answers on the second channel when it has all bytes.
//!
//! A session starts its ends with a command that its caller provides ([`Session::run`]): the same program with a
//! [`Task`] to [`perform`]. The command line and the table are not part of this module.

mod channel;
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

pub use far::Far;
pub use figures::{Figures, PathFigures};
pub use near::send;
pub use process::perform;
pub use report::{NetReport, Run, WayReport};
pub use session::{Plan, Session};
pub use task::{FarTask, Hello, NearTask, SPREAD_MAX, Task, Tuning};
pub use way::{UnknownWay, Way};

use crate::BenchError;

/// Bytes of one write, as many as the exchange encodes at a time.
const CHUNK: usize = 256 << 10;
