//! `murmurate local --demo`: a run of about a minute in which things go wrong, with a sentence for each. It is
//! a set of options and a [`Narrator`].

mod death;
mod joiner;
mod narrator;
mod opening;
mod rift;
mod seen;

pub(super) use narrator::Narrator;
pub use narrator::Told;

use super::options::LocalOptions;
use super::shards::ShardsArg;
use super::{HealAt, KillAt, LateAt, PartitionAt};
use crate::faults::FaultPhase;

/// Daemons of the demo.
const NODES: usize = 4;

/// Rounds of the demo, unless another number is given. What happens keeps its place among them.
const ROUNDS: u64 = 110;

/// Fewer rounds leave too few between one thing that happens and the next.
pub const DEMO_ROUNDS_MIN: u64 = 50;

/// Seconds of training in a round: enough for people to follow, on a machine of any speed.
const ROUND_TIME_S: f64 = 0.35;

/// The same run, with the faults of the demo.
#[must_use]
pub fn demo(options: LocalOptions) -> LocalOptions {
    let sides = vec![vec![0, 1], vec![2, 3]];
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let at = |usual: u64| rounds.saturating_mul(usual) / ROUNDS;
    LocalOptions {
        nodes: NODES,
        rounds: Some(rounds),
        // Without a daemon the others must still see all classes.
        shards: Some(ShardsArg::Iid),
        lates: vec![LateAt {
            node: 3,
            round: at(15),
        }],
        partition: Some(PartitionAt {
            sides,
            round: at(40),
        }),
        heal: Some(HealAt { round: at(55) }),
        kills: vec![KillAt {
            node: 2,
            round: at(90),
            phase: FaultPhase::Exchange,
        }],
        round_time_s: Some(ROUND_TIME_S),
        baseline_s: 0.0,
        narrated: true,
        ..options
    }
}

#[cfg(test)]
mod tests;
