//! An invite: one line of text that lets a machine in.

use crate::certificate::{Certificate, Holder};
use crate::chain::{Chain, Flaw};
use crate::issuer::Issuer;
use crate::limits::{
    CLOCK_SKEW_S, INVITE_ADDRESS_BYTES_MAX, INVITE_ADDRESSES_MAX, INVITE_LIFE_S, INVITE_LINE_MAX,
    MEMBER_LIFE_S, NAME_MAX,
};
use crate::roles::{Role, Roles};
use crate::run::{Run, public};
use data_encoding::BASE64URL_NOPAD;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{decode_value, encode_value};
use serde::{Deserialize, Serialize};

/// Some editors write it at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How every invite begins.
const PREFIX: &str = "murmurate-invite-1.";

/// Bytes of the checksum at its end.
const CHECKSUM: usize = 4;

/// The terms of an invite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The role of the invited.
    pub role: Role,
    /// How many peers may use it.
    pub uses: u32,
    /// For how many seconds it is valid.
    pub life_s: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            role: Role::Train,
            uses: 1,
            life_s: INVITE_LIFE_S,
        }
    }
}

/// A ticket that lets a machine into a run: the run, the addresses of members, and a key that may sign the
/// machine's own certificate. Anyone who reads it can use it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    name: String,
    key: PeerId,
    secret: [u8; 32],
    chain: Chain,
    /// The secret key of the invite; `None` if it is for one certain peer.
    seed: Option<[u8; 32]>,
    addresses: Vec<Vec<u8>>,
}

impl core::fmt::Debug for Invite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Invite {{ name: {:?}, key: {} }}", self.name, self.key)
    }
}

/// Why an invite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// It does not begin as invites do.
    #[error(
        "this is not an invite: it should begin with {PREFIX}, or be the path of a file with such a line"
    )]
    NotOne,
    /// Some of it is missing or changed.
    #[error("the invite is damaged: copy the whole line once more")]
    Damaged,
    /// It is of another version of this program.
    #[error(
        "the invite is of another version of murmurate: install the same version on both machines"
    )]
    Version,
    /// It lets no one in.
    #[error("the invite cannot be used: {0}")]
    Flaw(#[from] Flaw),
}

impl Invite {
    /// An invite under these terms. `seed` are 32 secret random bytes.
    pub fn new(
        (run, name): (&Run, &str),
        issuer: &Issuer,
        terms: Terms,
        now_s: u64,
        seed: [u8; 32],
    ) -> Self {
        let holder = Holder::Invite {
            key: public(&seed),
            uses: terms.uses,
        };
        let roles = Roles::of(terms.role);
        let chain = issuer.certify(run, holder, roles, now_s, terms.life_s);
        Self::of(run, name, chain, Some(seed))
    }

    /// An invite that only `peer` can use.
    pub fn personal(
        (run, name): (&Run, &str),
        issuer: &Issuer,
        peer: PeerId,
        role: Role,
        now_s: u64,
    ) -> Self {
        let roles = Roles::of(role);
        let chain = issuer.certify(run, Holder::Peer(peer), roles, now_s, MEMBER_LIFE_S);
        Self::of(run, name, chain, None)
    }

    fn of(run: &Run, name: &str, chain: Chain, seed: Option<[u8; 32]>) -> Self {
        Self {
            name: name.to_owned(),
            key: run.key,
            secret: *run.secret(),
            chain,
            seed,
            addresses: Vec::new(),
        }
    }

    /// Adds addresses of members, in their binary form; those beyond the bound are left out.
    #[must_use]
    pub fn with_addresses(mut self, addresses: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let fit = addresses.into_iter();
        let fit = fit.filter(|address| address.len() <= INVITE_ADDRESS_BYTES_MAX);
        self.addresses = fit.take(INVITE_ADDRESSES_MAX).collect();
        self
    }

    /// Addresses of members.
    pub fn addresses(&self) -> &[Vec<u8>] {
        &self.addresses
    }

    /// The run's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run.
    pub fn run(&self) -> Run {
        Run::closed(&self.name, self.key, self.secret)
    }

    /// The key to revoke if the invite must no longer be used: of a personal one, the peer's.
    pub fn revocable(&self) -> Option<PeerId> {
        self.chain.keys().last()
    }

    /// How many peers can use it; `None` if it is for a certain one.
    pub fn uses(&self) -> Option<u32> {
        match self.chain.certificates().last()?.holder {
            Holder::Invite { uses, .. } => Some(uses),
            Holder::Peer(_) => None,
        }
    }

    /// Until when it can be used, in seconds since 1970.
    pub fn until_s(&self) -> u64 {
        self.chain.until_s()
    }

    /// The certificates with which `peer` enters. An invite for anybody signs them now.
    ///
    /// # Errors
    /// If the invite has ended, or is another peer's.
    pub fn accept(&self, peer: PeerId, now_s: u64) -> Result<Chain, InviteError> {
        let run = self.run();
        let Some(seed) = &self.seed else {
            self.chain.check(&run, &peer, now_s)?;
            return Ok(self.chain.clone());
        };
        let roles = self.chain.check_links(&run)?;
        self.chain.check_time(now_s)?;
        let early = self
            .chain
            .certificates()
            .last()
            .map_or(0, |last| last.from_s);
        // A certificate from before the invite would not be believed.
        if now_s.saturating_add(CLOCK_SKEW_S) < early {
            let ahead_s = early - now_s;
            return Err(Flaw::Early { ahead_s }.into());
        }
        let valid = (now_s, now_s.saturating_add(MEMBER_LIFE_S));
        let own = Certificate::sign(seed, &run, Holder::Peer(peer), roles, valid);
        Ok(self.chain.with(own))
    }

    /// The line of text.
    pub fn to_line(&self) -> String {
        let mut bytes = encode_value(self);
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(&sum.as_bytes()[..CHECKSUM]);
        format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
    }

    /// Reads a line. White space inside is left out, because mail programs break lines.
    ///
    /// # Errors
    /// If it is not an invite, or a part is missing.
    pub fn from_line(line: &str) -> Result<Self, InviteError> {
        let text: String = line
            .chars()
            .filter(|c| !c.is_whitespace() && *c != BYTE_ORDER_MARK)
            .take(INVITE_LINE_MAX + 1)
            .collect();
        let Some(body) = text.strip_prefix(PREFIX) else {
            let other = text.starts_with("murmurate-invite-") && text.contains('.');
            return Err(if other {
                InviteError::Version
            } else {
                InviteError::NotOne
            });
        };
        if text.len() > INVITE_LINE_MAX {
            return Err(InviteError::Damaged);
        }
        let bytes = BASE64URL_NOPAD
            .decode(body.as_bytes())
            .map_err(|_| InviteError::Damaged)?;
        let at = bytes
            .len()
            .checked_sub(CHECKSUM)
            .ok_or(InviteError::Damaged)?;
        let (bytes, sum) = bytes.split_at(at);
        if blake3::hash(bytes).as_bytes()[..CHECKSUM] != *sum {
            return Err(InviteError::Damaged);
        }
        let invite: Self = decode_value(bytes).map_err(|_| InviteError::Damaged)?;
        let fits = invite.name.chars().count() <= NAME_MAX
            && !invite.name.contains(char::is_control)
            && invite.addresses.len() <= INVITE_ADDRESSES_MAX
            && invite
                .addresses
                .iter()
                .all(|a| a.len() <= INVITE_ADDRESS_BYTES_MAX);
        fits.then_some(invite).ok_or(InviteError::Damaged)
    }
}
