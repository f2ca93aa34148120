//! The key of a run.

use crate::certificate::{Certificate, Holder};
use crate::chain::Chain;
use crate::limits::MEMBER_LIFE_S;
use crate::roles::{Role, Roles};
use crate::run::{Run, public};
use ed25519_dalek::{SigningKey, VerifyingKey};
use murmurate_protocol::{PeerId, RunId};

/// The key of a run. Anyone who holds it can let machines in.
#[derive(Clone)]
pub struct RunKey {
    name: String,
    seed: [u8; 32],
}

impl core::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "RunKey {{ name: {:?}, public: {} }}",
            self.name,
            self.public()
        )
    }
}

impl Run {
    /// A run without a key of its own: everyone can compute its key from its id, so everyone can
    /// make a certificate for itself.
    pub fn open(id: RunId) -> (Self, RunKey) {
        let seed = blake3::derive_key("murmurate 2026 key of an open run", id.as_bytes());
        let key = RunKey::from_seed(String::new(), seed);
        let run = Self {
            id,
            key: key.public(),
            secret: key.secret(),
            open: true,
        };
        (run, key)
    }
}

/// The secret of the peer with this seed and another one, which both compute and no third: X25519 between their
/// identities, which are Ed25519 keys (RFC 7748, section 6.1; the map between the curves is in section 4.1). `None`
/// where the other's id is no key, or one with which secrets are known to all.
pub fn pair_secret(seed: &[u8; 32], other: PeerId) -> Option<[u8; 32]> {
    let theirs = VerifyingKey::from_bytes(other.as_bytes()).ok()?;
    if theirs.is_weak() {
        return None;
    }
    let mine = SigningKey::from_bytes(seed).to_scalar_bytes();
    let shared = theirs.to_montgomery().mul_clamped(mine);
    let context = "murmurate 2026 secret of two peers";
    Some(blake3::derive_key(context, shared.as_bytes()))
}

impl RunKey {
    /// The key with these 32 secret random bytes, of the run `name`.
    pub fn from_seed(name: String, seed: [u8; 32]) -> Self {
        Self { name, seed }
    }

    /// The 32 secret bytes, for the key's file.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The run's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public half.
    pub fn public(&self) -> PeerId {
        public(&self.seed)
    }

    /// The secret that all members know. It says nothing about the key.
    pub(crate) fn secret(&self) -> [u8; 32] {
        blake3::derive_key("murmurate 2026 secret of a run's members", &self.seed)
    }

    /// The run.
    pub fn run(&self) -> Run {
        Run::closed(&self.name, self.public(), self.secret())
    }

    /// The certificate of the owner's own daemon `peer`, which may admit.
    pub fn certify_self(&self, run: &Run, peer: PeerId, now_s: u64) -> Chain {
        let valid = (now_s, now_s.saturating_add(MEMBER_LIFE_S));
        let holder = Holder::Peer(peer);
        let roles = Roles::of(Role::Admit);
        Chain::new(vec![Certificate::sign(
            &self.seed, run, holder, roles, valid,
        )])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_peers_have_one_secret_and_each_pair_another() {
        let seeds = [[1; 32], [2; 32], [3; 32]];
        let ids = seeds.map(|seed| public(&seed));
        let secret = |a: usize, b: usize| pair_secret(&seeds[a], ids[b]).expect("a key");
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert_eq!(secret(a, b), secret(b, a));
        }
        assert_ne!(secret(0, 1), secret(0, 2));
        assert_ne!(secret(0, 1), secret(1, 2));
    }

    #[test]
    fn an_id_that_is_no_key_has_no_secret() {
        let neutral = core::array::from_fn(|at| u8::from(at == 0));
        // The point of order one, with which every secret would be zero, and no point at all.
        assert_eq!(pair_secret(&[1; 32], PeerId::from_bytes(neutral)), None);
        assert_eq!(pair_secret(&[1; 32], PeerId::from_bytes([2; 32])), None);
    }
}
