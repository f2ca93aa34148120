//! Networks that the peers of a swarm do not have, as models with names of their own: switches that
//! sum, networks built for a job, jobs that take turns on a link, and RDMA. Nothing here can be
//! chosen in a run.
//!
//! A [`Figure`] holds what a model predicts beside what its paper states.

mod figure;
mod jobs;
mod published;
mod switch;
mod topology;
mod transport;

pub use figure::{Figure, Published};
pub use jobs::{JOBS_MAX, Job, MLTCP, Sharing, compatibility, mean_iterations};
pub use switch::{FixedPoint, Switch};
pub use topology::{RailOnly, Rings};
pub use transport::Transport;

pub(crate) use published::figures;
