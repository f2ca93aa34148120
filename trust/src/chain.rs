//! A chain of certificates, from the run's key to a peer.

use crate::certificate::{Certificate, Holder};
use crate::limits::{CHAIN_BYTES_MAX, CHAIN_MAX, CLOCK_SKEW_S, LIFE_MAX_S, MEMBER_LIFE_S};
use crate::roles::{Role, Roles};
use crate::run::Run;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{decode_value, encode_value};
use serde::{Deserialize, Serialize};

/// Certificates from the run's key to a peer or an invite. Nothing is checked until
/// [`Chain::check`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain(Vec<Certificate>);

/// Why a chain proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Flaw {
    /// It was not made by the run's key, or was changed.
    #[error("it is not a certificate of this run: ask a member for an invite")]
    Foreign,
    /// It is another peer's.
    #[error("the certificate is another peer's: each directory needs an invite of its own")]
    OtherPeer,
    /// An issuer had no right to issue.
    #[error("its issuer may not let others in: ask a member with the role admit for an invite")]
    Unentitled,
    /// It begins in the future.
    #[error(
        "its validity begins only in {ahead_s} s: the clock of this machine is behind, or that of the machine that \
         made it was ahead (compare `date -u`); if the clock here is right, get a new invite and enter with it in \
         a new directory"
    )]
    Early {
        /// Seconds until it is valid.
        ahead_s: u64,
    },
    /// It has ended.
    #[error(
        "it ended {ago_s} s ago: ask a member for a new invite, or set the clock if it is wrong"
    )]
    Expired {
        /// Seconds since its end.
        ago_s: u64,
    },
    /// It is valid for longer than the one who signed it may say.
    #[error(
        "it is valid for longer than a certificate may be (90 days with an invite, else a year): ask a member for a \
         new invite, and enter with it in a new directory"
    )]
    Overlong,
}

impl Flaw {
    /// Flaws of certificates that no honest peer passes on. Clocks differ, and other flaws come
    /// with time.
    pub(crate) const fn is_forged(self) -> bool {
        match self {
            Self::Foreign | Self::OtherPeer | Self::Unentitled | Self::Overlong => true,
            Self::Early { .. } | Self::Expired { .. } => false,
        }
    }
}

impl Chain {
    pub(crate) fn new(certificates: Vec<Certificate>) -> Self {
        Self(certificates)
    }

    /// The certificates, the one by the run's key first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.0
    }

    pub(crate) fn with(&self, certificate: Certificate) -> Self {
        let mut all = self.0.clone();
        all.push(certificate);
        Self(all)
    }

    /// Its bytes in messages and files.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// Reads a chain. It still needs [`Chain::check`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let chain: Self = (bytes.len() <= CHAIN_BYTES_MAX).then(|| decode_value(bytes).ok())??;
        (1..=CHAIN_MAX).contains(&chain.0.len()).then_some(chain)
    }

    fn last(&self) -> Option<&Certificate> {
        self.0.last()
    }

    /// The peer that it ends with, if it ends with a peer.
    pub fn peer(&self) -> Option<PeerId> {
        match self.last()?.holder {
            Holder::Peer(peer) => Some(peer),
            Holder::Invite { .. } => None,
        }
    }

    /// The roles of its holder.
    pub fn roles(&self) -> Option<Roles> {
        Some(self.last()?.roles)
    }

    /// When it ends, in seconds since 1970.
    pub fn until_s(&self) -> u64 {
        self.last().map_or(0, |last| last.until_s)
    }

    /// The invite that the peer used, with the number of peers that may use it and its end.
    pub fn invite(&self) -> Option<(PeerId, u32, u64)> {
        let before = self.0.len().checked_sub(2)?;
        let issuer = self.0.get(before)?;
        match issuer.holder {
            Holder::Invite { key, uses } => Some((key, uses, issuer.until_s)),
            Holder::Peer(_) => None,
        }
    }

    /// The key that signed its last certificate.
    pub(crate) fn issuer(&self, run: &Run) -> PeerId {
        let before = self.0.len().checked_sub(2).and_then(|at| self.0.get(at));
        before.map_or(run.key, |issuer| issuer.holder.key())
    }

    /// The first member in it: the one that answers to the owner for all that follow.
    pub(crate) fn branch(&self) -> Option<PeerId> {
        self.0
            .iter()
            .find_map(|certificate| match certificate.holder {
                Holder::Peer(peer) => Some(peer),
                Holder::Invite { .. } => None,
            })
    }

    /// Its place among those who used the same invite: when its last certificate was made, and what tells
    /// equal times apart.
    pub(crate) fn turn(&self) -> (u64, Vec<u8>) {
        (self.last().map_or(0, |last| last.from_s), self.to_bytes())
    }

    /// Of two chains that give one seat, this one stays, everywhere: of those that an invite signed
    /// the first, which says when the invite was used, and of others the one that ends last.
    pub(crate) fn supersedes(&self, known: &Self) -> bool {
        match self.invite() {
            Some(_) => self.turn() < known.turn(),
            None => (self.until_s(), self.turn()) > (known.until_s(), known.turn()),
        }
    }

    /// The keys that it names, the first issuer's first. A revoked key among them voids it.
    pub fn keys(&self) -> impl Iterator<Item = PeerId> {
        self.0.iter().map(|certificate| certificate.holder.key())
    }

    /// Checks that it lets `peer` into `run` at this time. Revocations and uses of invites are the
    /// [`Register`](crate::Register)'s.
    ///
    /// # Errors
    /// The first flaw.
    pub fn check(&self, run: &Run, peer: &PeerId, now_s: u64) -> Result<Roles, Flaw> {
        let roles = self.check_links(run)?;
        match self.peer() {
            Some(named) if named == *peer => {}
            _ => return Err(Flaw::OtherPeer),
        }
        self.check_time(now_s)?;
        Ok(roles)
    }

    /// Checks every signature and right, whenever it is valid.
    pub(crate) fn check_links(&self, run: &Run) -> Result<Roles, Flaw> {
        if !(1..=CHAIN_MAX).contains(&self.0.len()) {
            return Err(Flaw::Foreign);
        }
        let mut issuer = run.key;
        let mut above: Option<&Certificate> = None;
        for certificate in &self.0 {
            if !certificate.is_by(&issuer, run) {
                return Err(Flaw::Foreign);
            }
            let entitled = above.is_none_or(|above| may_issue(above, certificate));
            if !certificate.roles.known() || !entitled {
                return Err(Flaw::Unentitled);
            }
            // With an invite its holder signs for itself, and does not choose for how long.
            let by_invite =
                above.is_some_and(|above| matches!(above.holder, Holder::Invite { .. }));
            let life_max = if by_invite { MEMBER_LIFE_S } else { LIFE_MAX_S };
            if certificate.until_s.saturating_sub(certificate.from_s) > life_max {
                return Err(Flaw::Overlong);
            }
            issuer = certificate.holder.key();
            above = Some(certificate);
        }
        above.map(|last| last.roles).ok_or(Flaw::Foreign)
    }

    /// Checks that its last certificate is valid at this time.
    pub(crate) fn check_time(&self, now_s: u64) -> Result<(), Flaw> {
        let Some(last) = self.last() else {
            return Err(Flaw::Foreign);
        };
        let ahead_s = last.from_s.saturating_sub(now_s);
        if ahead_s > CLOCK_SKEW_S {
            return Err(Flaw::Early { ahead_s });
        }
        if now_s >= last.until_s {
            let ago_s = now_s - last.until_s;
            return Err(Flaw::Expired { ago_s });
        }
        Ok(())
    }
}

/// The holder of `above` may have issued `below`: at that time, and with these roles.
fn may_issue(above: &Certificate, below: &Certificate) -> bool {
    let entitled = match (above.holder, below.holder) {
        (Holder::Invite { .. }, Holder::Peer(_)) => true,
        (Holder::Peer(_), _) => above.roles.has(Role::Admit),
        (Holder::Invite { .. }, Holder::Invite { .. }) => false,
    };
    // The clocks of both may differ.
    let begun = below.from_s.saturating_add(CLOCK_SKEW_S) >= above.from_s;
    let ended = below.from_s >= above.until_s.saturating_add(CLOCK_SKEW_S);
    entitled && below.roles.within(above.roles) && begun && !ended
}
