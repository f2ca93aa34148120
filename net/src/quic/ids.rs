//! Connection ids: random, all of the same length, and all accepted as ours.
//!
//! quinn's own ids contain a checksum under a key that changes with each start. A restarted daemon
//! would take ids from before for garbage and stay silent. Here it answers them with a stateless
//! reset (`reset`).

use quinn::{ConnectionId, ConnectionIdGenerator};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Bytes of an id. Long enough that ids of one endpoint do not collide.
const LENGTH: usize = 8;

/// A generator seeded with the system's randomness.
pub(super) fn random() -> ChaCha8Rng {
    let keyed = RandomState::new();
    let mut seed = [0; 32];
    for (part, bytes) in seed.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&keyed.hash_one(part).to_le_bytes());
    }
    ChaCha8Rng::from_seed(seed)
}

/// Generates the ids of one socket's connections.
pub(super) struct Ids(ChaCha8Rng);

impl Ids {
    pub(super) fn new() -> Self {
        Self(random())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; LENGTH];
        self.0.fill_bytes(&mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
