//! Compares strategies on one task at equal samples, at equal bytes and at equal seconds.
//!
//! All entrants of a trial take the same number of inner steps on the same data, with the real Executor and
//! the task's own trainer. What they exchange and when does not depend on the network where peers agree, so
//! each entrant trains once, on a network without limits, and the seconds of its rounds on each network come
//! from runs of the same strategy without tensors. A run gives a curve of the loss on held-out data over
//! inner steps, which is read where a budget of bytes or seconds ends.
//!
//! - `spec` reads the TOML file, `run` trains and times one entrant, `outcome` is its result.
//! - `once` evaluates equal parameters once. `report` has the rows, `show` writes them for people, and
//!   `penalty` for the planner.

mod once;
mod outcome;
mod penalty;
mod report;
mod run;
mod show;
mod spec;

pub use outcome::{EqualOutcome, EqualPoint, Pace};
pub use penalty::{Penalties, Penalty};
pub use report::{EqualReport, EqualRow, OnNetwork, Spread};
pub use spec::{Entrant, EqualCell, EqualTrial, Size};
