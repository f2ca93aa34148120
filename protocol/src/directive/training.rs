//! What the owner has changed of the training of a round, and what the members have.

use super::RateFactor;
use serde::{Deserialize, Serialize};

/// What the owner has changed of the training of a round, and the codec that its members have chosen. By default
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingRules {
    /// Inner steps of every round, if they were changed; in balanced rounds, the most.
    pub inner_steps: Option<u32>,
    /// The factor on the learning rate.
    pub rate: RateFactor,
    /// The codec, by the byte that opens its encodings; `None`: that of the configuration.
    pub codec: Option<u8>,
    /// The place of the codec in the plan's ladder, where members choose it; zero is that of the configuration.
    /// A codec of the owner goes before it.
    pub rung: u8,
}
