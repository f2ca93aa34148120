//! The tokens that were given out and not yet used.

use crate::tcp::offer::{TOKEN_BYTES, Token};
use libp2p::PeerId;
use rustls::crypto::SecureRandom;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a token is good. A dial that fails asks for another one by a new QUIC connection.
const GOOD_FOR: Duration = Duration::from_secs(3600);

/// Tokens that may be out: one for each peer.
const TOKENS_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<PeerId, (Token, Instant)>);

impl Tokens {
    /// A token for a peer, in place of an earlier one. `None` if the system has no random bytes or
    /// too many tokens are out.
    pub(super) fn give(
        &mut self,
        peer: PeerId,
        now: Instant,
        random: &dyn SecureRandom,
    ) -> Option<Token> {
        self.0.retain(|_, (_, until)| *until > now);
        if self.0.len() >= TOKENS_MAX && !self.0.contains_key(&peer) {
            return None;
        }
        let mut token = [0; TOKEN_BYTES];
        random.fill(&mut token).ok()?;
        self.0.insert(peer, (token, now + GOOD_FOR));
        Some(token)
    }

    /// Accepts the token of a peer. It may do so again, to dial after a connection broke.
    pub(super) fn allows(&self, peer: &PeerId, token: &Token, now: Instant) -> bool {
        let Some((ours, until)) = self.0.get(peer) else {
            return false;
        };
        // Compares all bytes, so that the time does not tell how many are right.
        let differ = ours.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
        differ == 0 && *until > now
    }

    /// A peer's token is worth nothing from now on.
    pub(super) fn revoke(&mut self, peer: &PeerId) {
        self.0.remove(peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring::default_provider;

    #[test]
    fn a_token_is_for_one_peer_and_for_a_time() {
        let random = default_provider().secure_random;
        let (one, two) = (PeerId::random(), PeerId::random());
        let (mut tokens, now) = (Tokens::default(), Instant::now());
        let first = tokens.give(one, now, random).unwrap();
        assert!(tokens.allows(&one, &first, now) && !tokens.allows(&two, &first, now));
        let second = tokens.give(one, now, random).unwrap();
        assert!(!tokens.allows(&one, &first, now) && tokens.allows(&one, &second, now));
        assert!(!tokens.allows(&one, &second, now + GOOD_FOR));
        tokens.revoke(&one);
        assert!(!tokens.allows(&one, &second, now));
    }

    #[test]
    fn tokens_are_bounded() {
        let random = default_provider().secure_random;
        let (mut tokens, now) = (Tokens::default(), Instant::now());
        for _ in 0..TOKENS_MAX {
            assert!(tokens.give(PeerId::random(), now, random).is_some());
        }
        assert!(tokens.give(PeerId::random(), now, random).is_none());
        assert!(
            tokens
                .give(PeerId::random(), now + GOOD_FOR, random)
                .is_some()
        );
    }
}
