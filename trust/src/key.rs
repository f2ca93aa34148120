//! The key of a run.

use crate::certificate::{Certificate, Holder};
use crate::chain::Chain;
use crate::limits::MEMBER_LIFE_S;
use crate::roles::{Role, Roles};
use crate::run::{Run, public};
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
