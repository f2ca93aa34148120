//! What a daemon does wrong because it was started so.

use crate::faults::Faults;
use crate::lies::Liar;
use crate::splits::Splits;
use murmurate_protocol::{Input, Peer};

/// Faults, splits and lies that a daemon was started with.
#[derive(Debug)]
pub(super) struct OnRequest {
    /// Faults of its own process.
    pub(super) faults: Faults,
    /// Splits from others.
    pub(super) splits: Splits,
    /// Lies to the others.
    pub(super) liar: Option<Liar>,
}

impl OnRequest {
    /// What the peer sees of an input; `None` for one that answers a lie.
    pub(super) fn input(&mut self, input: Input, peer: &Peer) -> Option<Input> {
        match &mut self.liar {
            Some(liar) => liar.input(input, peer),
            None => Some(input),
        }
    }
}
