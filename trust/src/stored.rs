//! A register as bytes, for a file: a mark, the version of the format, a checksum, and the entries.

use crate::chain::Chain;
use crate::directive::SignedDirective;
use crate::limits::{MEMBERS_MAX, REGISTER_BYTES_MAX, REVOCATIONS_MAX};
use crate::register::Register;
use crate::revocation::Revocation;
use crate::run::Run;
use crate::seats::Seats;
use murmurate_protocol::limits::DIRECTIVES_MAX;
use murmurate_protocol::wire::{decode_limited, encode_value};
use murmurate_protocol::{Digest, Proof};

/// How the bytes begin.
const MARK: &[u8] = b"murmurate register\n";

const VERSION: u8 = 1;

/// Bytes of the checksum.
const SUM: usize = 32;

/// Why bytes are not a register, in words that follow the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Some of them are missing or changed, or they are of a version of this program before there was a
    /// checksum.
    #[error("is damaged, or of a version of murmurate before registers had a checksum")]
    Damaged,
    /// There are more of them than any register has.
    #[error("has {bytes} bytes, and no register has more than {REGISTER_BYTES_MAX}")]
    TooLong {
        /// How many there are.
        bytes: u64,
    },
    /// A newer version of this program has written them.
    #[error("is of a newer version of murmurate")]
    Newer,
}

type Stored<M, R, B, D> = (Vec<M>, Vec<R>, Vec<B>, Vec<D>);

impl Register {
    /// Its bytes, for a file: at most [`REGISTER_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = encode_value(&self.parts(|_| true));
        let sum = Digest::of(&body);
        [MARK, &[VERSION], sum.as_bytes(), &body].concat()
    }

    /// Registers that say the same have equal digests, whatever they still hold of revoked members.
    pub fn digest(&self) -> Digest {
        Digest::of(&encode_value(&self.parts(|chain| !self.is_void(chain))))
    }

    fn parts(
        &self,
        member: impl Fn(&Chain) -> bool,
    ) -> Stored<&Chain, &Revocation, &Proof, &SignedDirective> {
        (
            self.seats.chains().filter(|chain| member(chain)).collect(),
            self.revocations.values().collect(),
            self.bans.values().collect(),
            self.directives.values().collect(),
        )
    }

    /// Reads a register; entries that are not genuine are left out.
    ///
    /// # Errors
    /// Why the bytes are not a register.
    pub fn from_bytes(run: Run, bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() > REGISTER_BYTES_MAX {
            let bytes = bytes.len() as u64;
            return Err(Unreadable::TooLong { bytes });
        }
        let rest = bytes.strip_prefix(MARK).ok_or(Unreadable::Damaged)?;
        let (version, rest) = rest.split_first().ok_or(Unreadable::Damaged)?;
        match *version {
            VERSION => {}
            newer if newer > VERSION => return Err(Unreadable::Newer),
            _ => return Err(Unreadable::Damaged),
        }
        let (sum, body) = rest.split_at_checked(SUM).ok_or(Unreadable::Damaged)?;
        if Digest::of(body).as_bytes() != sum {
            return Err(Unreadable::Damaged);
        }
        type Owned = Stored<Chain, Revocation, Proof, SignedDirective>;
        let read = decode_limited::<Owned, REGISTER_BYTES_MAX>(body);
        let (members, revocations, bans, directives) = read.map_err(|_| Unreadable::Damaged)?;
        let mut register = Self::new(run);
        for chain in members.into_iter().take(MEMBERS_MAX) {
            let seat = Seats::seat_of(&chain, &register.run);
            if let Some(seat) = seat.filter(|_| chain.check_links(&register.run).is_ok()) {
                register.seats.insert(seat, chain);
            }
        }
        for revocation in revocations.into_iter().take(REVOCATIONS_MAX) {
            register.revoke(revocation);
        }
        // A banned member whose certificates have gone stays banned.
        let bans = bans.into_iter().take(MEMBERS_MAX);
        let held = bans.filter(|proof| register.run.proves(proof));
        register.bans = held.map(|proof| (proof.by(), proof)).collect();
        for directive in directives.into_iter().take(DIRECTIVES_MAX) {
            register.direct(directive);
        }
        Ok(register)
    }
}
