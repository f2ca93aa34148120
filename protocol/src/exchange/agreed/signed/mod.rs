//! Agreement in groups that survive liars: what one member knows, and how it follows `rule`.
//!
//! `vote` votes, locks and decides; `promise` answers coordinators; `lead` coordinates; `witness` finds
//! members that contradict themselves. The rest of
//! a fragment's round, such as contributions, aggregates and fetches, is as in other groups.

mod lead;
mod promise;
mod state;
mod vote;
mod witness;

pub(super) use state::Testimony;
