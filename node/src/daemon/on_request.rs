//! What a daemon does wrong because it was started so.

use crate::faults::Faults;
use crate::lies::Liar;
use murmurate_protocol::Input;

/// Faults and lies that a daemon was started with.
#[derive(Debug)]
pub(super) struct OnRequest {
    /// Faults of its own process.
    pub(super) faults: Faults,
    /// Lies to the others.
    pub(super) liar: Option<Liar>,
}

impl OnRequest {
    /// Whether the peer must not see an input, because it answers a lie.
    pub(super) fn hides(&mut self, input: &Input) -> bool {
        self.liar.as_mut().is_some_and(|liar| liar.hides(input))
    }
}
