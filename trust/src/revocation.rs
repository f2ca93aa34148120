//! A revocation: the holder of a key is no longer a member, and neither is anyone who it let in.

use crate::chain::Chain;
use crate::limits::LIFE_MAX_S;
use crate::roles::Role;
use crate::run::{Run, holds, sign};
use murmurate_protocol::PeerId;
use serde::{Deserialize, Serialize};

const WHAT: &str = "murmurate revocation 1";

/// A signed revocation of a peer or an invite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// The key that is revoked: a peer's id or an invite's key.
    pub key: PeerId,
    /// When it was revoked, in seconds since 1970.
    pub at_s: u64,
    /// The issuer's certificates; `None` for the run's own key.
    issuer: Option<Chain>,
    signature: Vec<u8>,
}

impl Revocation {
    /// Signs a revocation with the issuer's secret key.
    pub(crate) fn sign(
        secret: &[u8; 32],
        issuer: Option<Chain>,
        run: &Run,
        key: PeerId,
        at_s: u64,
    ) -> Self {
        Self {
            key,
            at_s,
            issuer,
            signature: sign(secret, WHAT, &(&run.id, &key, at_s)),
        }
    }

    /// When it can be forgotten: no certificate that was there when it was made is valid then.
    pub fn until_s(&self) -> u64 {
        self.at_s.saturating_add(LIFE_MAX_S)
    }

    /// The member that made it; `None` is the run's key.
    pub fn by(&self) -> Option<PeerId> {
        self.issuer.as_ref().and_then(Chain::peer)
    }

    /// The member that answers to the owner for its issuer; `None` if that is the owner.
    pub(crate) fn branch(&self) -> Option<PeerId> {
        self.issuer.as_ref().and_then(Chain::branch)
    }

    /// Its issuer signed it and may revoke.
    pub fn is_genuine(&self, run: &Run) -> bool {
        let issuer = match &self.issuer {
            None => run.key,
            Some(chain) => {
                let entitled = chain.check_links(run).is_ok_and(|r| r.has(Role::Admit));
                match chain.peer().filter(|_| entitled) {
                    Some(peer) => peer,
                    None => return false,
                }
            }
        };
        let signed = (&run.id, &self.key, self.at_s);
        holds(&issuer, WHAT, &signed, &self.signature)
    }

    /// It takes away what `chain` gives: the revoked key is in the chain, and its issuer is
    /// the run's key or stands above it.
    pub fn voids(&self, chain: &Chain) -> bool {
        let Some(place) = chain.keys().position(|key| key == self.key) else {
            return false;
        };
        match self.by() {
            None => true,
            Some(by) => chain.keys().take(place).any(|key| key == by) || by == self.key,
        }
    }
}
