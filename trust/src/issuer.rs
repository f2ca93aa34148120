//! Who lets machines in, and revokes.

use crate::certificate::{Certificate, Holder};
use crate::chain::Chain;
use crate::key::RunKey;
use crate::limits::LIFE_MAX_S;
use crate::revocation::Revocation;
use crate::roles::Roles;
use crate::run::Run;
use murmurate_protocol::PeerId;

/// The holder of a right to let machines in.
#[derive(Clone)]
pub enum Issuer {
    /// The owner, who may do everything.
    Owner(RunKey),
    /// A member with the role `admit`.
    Member {
        /// The secret half of the member's id.
        secret: [u8; 32],
        /// The member's certificates.
        chain: Chain,
    },
}

impl core::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Owner(key) => write!(f, "Owner({key:?})"),
            Self::Member { chain, .. } => write!(f, "Member({:?})", chain.peer()),
        }
    }
}

impl Issuer {
    /// Certificates for `holder`, valid from `now_s` for `life_s`, at most a year.
    pub fn certify(
        &self,
        run: &Run,
        holder: Holder,
        roles: Roles,
        now_s: u64,
        life_s: u64,
    ) -> Chain {
        let valid = (now_s, now_s.saturating_add(life_s.min(LIFE_MAX_S)));
        let sign = |secret| Certificate::sign(secret, run, holder, roles, valid);
        match self {
            Self::Owner(key) => Chain::new(vec![sign(key.seed())]),
            Self::Member { secret, chain } => chain.with(sign(secret)),
        }
    }

    /// Revokes a peer or an invite. A member's revocation counts for those that it let in.
    pub fn revoke(&self, run: &Run, key: PeerId, now_s: u64) -> Revocation {
        match self {
            Self::Owner(owner) => Revocation::sign(owner.seed(), None, run, key, now_s),
            Self::Member { secret, chain } => {
                Revocation::sign(secret, Some(chain.clone()), run, key, now_s)
            }
        }
    }
}
