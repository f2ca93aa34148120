//! Draws of one random scenario.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// Parameters of the model.
pub(super) const PARAMETERS: u64 = 48;

/// Random choices of one scenario.
pub(super) struct Draw(pub(super) ChaCha8Rng);

impl Draw {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    pub(super) fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}
