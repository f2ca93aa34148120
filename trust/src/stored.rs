//! A register as bytes, for a file.

use crate::chain::Chain;
use crate::directive::SignedDirective;
use crate::limits::{MEMBERS_MAX, REVOCATIONS_MAX};
use crate::register::Register;
use crate::revocation::Revocation;
use crate::run::Run;
use murmurate_protocol::limits::DIRECTIVES_MAX;
use murmurate_protocol::wire::{decode_value, encode_value};
use murmurate_protocol::{PeerId, Proof};

impl Register {
    /// Its bytes, for a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let used: Vec<&(PeerId, PeerId)> = self.used.keys().collect();
        let members: Vec<&Chain> = self.members.values().collect();
        let revocations: Vec<&Revocation> = self.revocations.values().collect();
        let bans: Vec<&Proof> = self.bans.values().collect();
        let directives: Vec<&SignedDirective> = self.directives.values().collect();
        match directives.is_empty() {
            true => encode_value(&(members, used, revocations, bans)),
            false => encode_value(&(members, used, revocations, bans, directives)),
        }
    }

    /// Reads a register; what is not genuine is left out. `None` if the bytes are not a register.
    pub fn from_bytes(run: Run, bytes: &[u8]) -> Option<Self> {
        type Used = Vec<(PeerId, PeerId)>;
        type Oldest = (Vec<Chain>, Used, Vec<Revocation>);
        type Undirected = (Vec<Chain>, Used, Vec<Revocation>, Vec<Proof>);
        type Stored = (
            Vec<Chain>,
            Used,
            Vec<Revocation>,
            Vec<Proof>,
            Vec<SignedDirective>,
        );
        let stored: Option<Stored> = decode_value(bytes).ok();
        // Without directives none are written.
        let undirected = || {
            let (members, used, revocations, bans): Undirected = decode_value(bytes).ok()?;
            Some((members, used, revocations, bans, Vec::new()))
        };
        // Registers of versions that banned no one.
        let oldest = || {
            let (members, used, revocations): Oldest = decode_value(bytes).ok()?;
            Some((members, used, revocations, Vec::new(), Vec::new()))
        };
        let read = stored.or_else(undirected).or_else(oldest);
        let (members, used, revocations, bans, directives) = read?;
        let mut register = Self::new(run);
        for chain in members.into_iter().take(MEMBERS_MAX) {
            let Some(peer) = chain.peer() else { continue };
            if chain.check_links(&register.run).is_ok() {
                register.members.insert(peer, chain);
            }
        }
        register
            .used
            .extend(used.into_iter().take(MEMBERS_MAX).map(|key| (key, ())));
        for revocation in revocations.into_iter().take(REVOCATIONS_MAX) {
            register.revoke(revocation);
        }
        for proof in bans.into_iter().take(MEMBERS_MAX) {
            register.ban(proof);
        }
        for directive in directives.into_iter().take(DIRECTIVES_MAX) {
            register.direct(directive);
        }
        Some(register)
    }
}
