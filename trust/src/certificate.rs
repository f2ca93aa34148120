//! One certificate: a key says what another key may do, and for how long.

use crate::roles::Roles;
use crate::run::{Run, holds, sign};
use murmurate_protocol::PeerId;
use serde::{Deserialize, Serialize};

/// The domain of a certificate's signature, so that it can stand for nothing else.
const WHAT: &str = "murmurate certificate 1";

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// A peer's.
    Peer(PeerId),
    /// The key of an invite, which may sign certificates for this number of peers.
    Invite {
        /// The invite's public key.
        key: PeerId,
        /// How many peers may use it.
        uses: u32,
    },
}

impl Holder {
    /// The holder's public key.
    pub const fn key(&self) -> PeerId {
        match self {
            Self::Peer(key) | Self::Invite { key, .. } => *key,
        }
    }
}

/// One certificate. Its issuer is the holder of the one before it in the [`Chain`](crate::Chain),
/// or the run's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Whose it is.
    pub holder: Holder,
    /// The holder's roles.
    pub roles: Roles,
    /// When it was made, in seconds since 1970.
    pub from_s: u64,
    /// When it ends.
    pub until_s: u64,
    /// By the issuer, over all of the above and the run.
    signature: Vec<u8>,
}

impl Certificate {
    /// Signs a certificate with the issuer's secret key.
    pub(crate) fn sign(
        secret: &[u8; 32],
        run: &Run,
        holder: Holder,
        roles: Roles,
        (from_s, until_s): (u64, u64),
    ) -> Self {
        let signed = (&run.id, &holder, roles, from_s, until_s);
        Self {
            holder,
            roles,
            from_s,
            until_s,
            signature: sign(secret, WHAT, &signed),
        }
    }

    /// `issuer` signed it for this run.
    pub(crate) fn is_by(&self, issuer: &PeerId, run: &Run) -> bool {
        let signed = (&run.id, &self.holder, self.roles, self.from_s, self.until_s);
        holds(issuer, WHAT, &signed, &self.signature)
    }
}
