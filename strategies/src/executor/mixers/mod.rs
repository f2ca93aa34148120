//! The mixers: one for each family of exchanges.
//!
//! | mixer | exchanges | own stores |
//! |---|---|---|
//! | `agreed` | all-reduce, parameter server in step, means over cells | reductions of owned shards, what the codec left out of them |
//! | `gathered` | gathered | room for the move of the anchor |
//! | `center` | parameter server without a common round | owned shards, their earlier versions |
//! | `gossip` | none, gossip, push, pull, pairs | what a rule compares |
//! | `replicas` | replicas | copies that neighbours hold of each other |
//! | `differences` | differences | copies of this peer and of its neighbours |
//! | `mixed::Grouped` | pull, of means of groups | room for the next mean |
//! | `mixed::Relayed` | relay | room for the next message |

mod agreed;
mod center;
mod differences;
mod gathered;
mod gossip;
mod mixed;
mod replicas;

pub use center::CenterRule;
pub use replicas::Keeps;

use super::mixer::Mixer;
use super::places::Places;
use crate::aggregate::Aggregator;
use crate::compress::{Codec, Reduction};
use crate::correct::Companion;
use murmurate_protocol::{CenterPlan, CopyPlan};

/// How an exchange combines contributions: one kind for each family of exchanges. A `rule` of
/// `None` is the weighted mean.
pub enum Mixing {
    /// Owners reduce shards, and the group agrees on the reductions.
    Agreed {
        /// How contributions become one.
        rule: Option<Box<dyn Aggregator>>,
    },
    /// As [`Mixing::Agreed`], of parameters: their mean takes the place of a member's own.
    Means,
    /// Every member gathers all contributions.
    Gathered {
        /// How contributions become one.
        rule: Option<Box<dyn Aggregator>>,
    },
    /// Owners move shards of a center as contributions arrive.
    Center {
        /// Into how many shards a fragment is cut.
        plan: CenterPlan,
        /// How contributions are applied.
        rule: CenterRule,
    },
    /// Parameters are mixed with those of others, or with none.
    Gossip {
        /// How this peer's parameters, which come first, and those of others become one.
        rule: Option<Box<dyn Aggregator>>,
        /// Set where slices are parts of the parameters: what a slice does not have stays.
        parts: bool,
    },
    /// Parameters move towards copies of the neighbours' parameters.
    Replicas {
        /// How far.
        rate: f32,
        /// The vector of each neighbour beside the copies.
        keeps: Keeps,
    },
    /// Copies of this peer and its neighbours are mixed, each moved by the same differences everywhere.
    Differences(CopyPlan),
    /// One member of a group makes the mean of what its members published.
    Grouped,
    /// Means are passed along a tree.
    Relayed,
}

impl Mixing {
    /// Members receive whole values: a center's shards, and the first copies of a
    /// session between neighbours. Everything else may be encoded as a difference.
    pub(super) const fn sends_whole_values(&self) -> bool {
        matches!(
            self,
            Self::Center { .. } | Self::Replicas { .. } | Self::Differences(_)
        )
    }

    /// Returns `true` if the result of training is only encoded: never mixed, and kept for no later round.
    pub(crate) const fn only_encodes(&self) -> bool {
        matches!(self, Self::Agreed { .. } | Self::Gathered { .. })
    }

    /// Every member combines all contributions itself.
    pub(super) const fn gathers(&self) -> bool {
        matches!(self, Self::Gathered { .. })
    }

    /// Contributions are changes of an anchor, and not parameters.
    pub(super) const fn moves_the_anchor(&self) -> bool {
        matches!(
            self,
            Self::Agreed { .. } | Self::Gathered { .. } | Self::Center { .. }
        )
    }
}

/// Set where the codec of an exchange keeps something in common with all members: they contribute twice, or
/// gather all contributions.
pub(super) fn in_common(mixing: &Mixing, codec: &mut dyn Codec) -> bool {
    match mixing {
        Mixing::Agreed { .. } => codec.two_passes().is_some(),
        Mixing::Gathered { .. } => codec.gathering().is_some(),
        _ => false,
    }
}

/// The mixer of a strategy's exchange.
pub(super) fn build(
    mixing: Mixing,
    companion: Companion,
    codec: &mut dyn Codec,
    places: &Places,
) -> Box<dyn Mixer> {
    let fragments = places.count();
    match mixing {
        Mixing::Agreed { rule } => {
            let squeezes = codec.properties().reduction == Reduction::Squeezed;
            Box::new(agreed::Agreed::new(rule, squeezes, false))
        }
        Mixing::Means => Box::new(agreed::Agreed::new(None, false, true)),
        Mixing::Gathered { rule } => Box::new(gathered::Gathered::new(rule)),
        Mixing::Center { plan, rule } => Box::new(center::Center::new(plan, rule)),
        Mixing::Gossip { rule, parts } => {
            Box::new(gossip::Gossip::new(fragments, companion, rule, parts))
        }
        Mixing::Replicas { rate, keeps } => {
            let flows = companion == Companion::Flows;
            let flowing = places.first_of_companion().filter(|_| flows);
            Box::new(replicas::Replicas::new(rate, keeps, flowing))
        }
        Mixing::Differences(plan) => Box::new(differences::Differences::new(plan)),
        Mixing::Grouped => Box::new(mixed::Grouped::default()),
        Mixing::Relayed => Box::new(mixed::Relayed::default()),
    }
}
