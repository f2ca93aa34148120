//! Settings that peers need not agree on.

use crate::{PeerId, Pool};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The value of [`PeerConfig::evaluate_every`] of a peer that has nothing to evaluate with.
pub const EVALUATE_NEVER: u64 = u64::MAX;

/// Settings of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerConfig {
    /// Who this peer is.
    pub me: PeerId,
    /// Seed of its only source of randomness.
    pub seed: u64,
    /// How many peers, itself included, a fresh run waits for before its first round.
    pub start_with: usize,
    /// How many others it trained with at the end of its earlier life: a peer with a checkpoint waits
    /// for them where no run is under way.
    pub companions: usize,
    /// How long it waits for them, or, when it joins, for a peer that has a state.
    pub start_wait: Duration,
    /// Whether it joins a run that others began: it trains nothing before it has their state.
    pub join: bool,
    /// How often it writes a checkpoint; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Rounds between evaluations on held-out data; zero for only at the end, [`EVALUATE_NEVER`] for none.
    pub evaluate_every: u64,
    /// The most of the time, in percent, that these evaluations may take: then some of them are left out. Zero for
    /// no bound.
    pub evaluate_percent: u8,
    /// Whether it leaves by itself when the plan's rounds are done.
    pub leave_when_finished: bool,
    /// The data set that it shares with others, if it does.
    pub pool: Option<Pool>,
}
