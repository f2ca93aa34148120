//! What peers tell each other of the rates of their links.

use crate::limits::VIEW_PEERS_MAX;
use crate::wire::WireError;
use crate::wire::check::ok;
use crate::{Digest, PeerId};
use serde::{Deserialize, Serialize};

/// The rates of the sender's links, in a run whose topology chooses by them or whose schedule goes by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The number of the epoch that the sender has entered.
    pub epoch: u64,
    /// The class of its link to each peer that it has measured, in `PeerId` order:
    /// [`LinkRates`](crate::LinkRates) says what a class is. Where the schedule goes by them, it is a code of
    /// eight to the octave.
    pub rates: Vec<(PeerId, u8)>,
    /// Hash of what all peers, itself included, told on entering an earlier epoch, as far as it has
    /// heard it.
    pub heard: Digest,
}

impl Rates {
    /// Checks every count and range.
    pub(super) fn check(&self) -> Result<(), WireError> {
        ok(self.rates.len() <= VIEW_PEERS_MAX, "rates")?;
        ok(self.rates.is_sorted_by(|a, b| a.0 < b.0), "rates")?;
        ok(self.rates.iter().all(|(_, class)| *class > 0), "class")
    }
}
