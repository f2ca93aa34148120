//! The mixers: one for each family of exchanges.
//!
//! | mixer | exchanges | own stores |
//! |---|---|---|
//! | `agreed` | all-reduce, parameter server in step | reductions of owned shards, what the codec left out of them |
//! | `gathered` | gathered | what the codec keeps in common |
//! | `center` | parameter server without a common round | owned shards, their earlier versions |
//! | `gossip` | none, gossip, push, pull, pairs | which fragments are mixed |
//! | `replicas` | replicas | copies that neighbours hold of each other |
//! | `relayed` | relay | room for the next message |

mod agreed;
mod center;
mod gathered;
mod gossip;
mod mixed;
mod relayed;
mod replicas;
mod rule;
mod squeezed;

pub use center::CenterRule;
pub use replicas::Keeps;

use super::mixer::Mixer;
use super::parts::Mixing;
use super::places::Places;
use crate::compress::{Codec, Reduction};
use crate::correct::Companion;

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
            Box::new(agreed::Agreed::new(rule, squeezes))
        }
        Mixing::Gathered { rule } => {
            let in_common = codec.gathering().is_some();
            Box::new(gathered::Gathered::new(
                rule,
                in_common.then_some(fragments),
            ))
        }
        Mixing::Center { plan, rule } => Box::new(center::Center::new(plan, rule)),
        Mixing::Gossip => Box::new(gossip::Gossip::new(fragments, companion)),
        Mixing::Replicas { rate, keeps } => {
            let flows = companion == Companion::Flows;
            let flowing = places.first_of_companion().filter(|_| flows);
            Box::new(replicas::Replicas::new(fragments, rate, keeps, flowing))
        }
        Mixing::Relayed => Box::new(relayed::Relayed::new(fragments)),
    }
}
