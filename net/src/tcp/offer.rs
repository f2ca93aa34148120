//! The offer of TCP that one end of a bulk connection makes the other.

use crate::quic::{BulkConnection, RecvStream};
use std::time::Duration;
use tokio::time::timeout;

/// How long an offer may take on its way.
const OFFER_WAIT: Duration = Duration::from_secs(5);

/// Bytes of an encoded offer.
pub const OFFER_BYTES: usize = 35;

const VERSION: u8 = 1;

pub(super) const TOKEN_BYTES: usize = 32;

/// A token, which only its owner and the end that gave it know.
pub(super) type Token = [u8; TOKEN_BYTES];

/// An offer: the port of TCP at the address of the QUIC connection, and a token to show there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub(super) port: u16,
    pub(super) token: Token,
}

impl Offer {
    /// Sends the offer on a bulk connection. Returns whether that worked.
    pub async fn send(self, to: &BulkConnection) -> bool {
        let sending = async {
            let mut stream = to.open_uni().await.ok()?;
            stream.write_all(&self.encode()).await.ok()?;
            stream.finish().ok()
        };
        matches!(timeout(OFFER_WAIT, sending).await, Ok(Some(())))
    }

    /// Reads an offer from the stream on which the remote sends it. `None` if it is none, or does
    /// not arrive.
    pub async fn receive(mut stream: RecvStream) -> Option<Self> {
        let read = timeout(OFFER_WAIT, stream.read_to_end(OFFER_BYTES)).await;
        Self::decode(&read.ok()?.ok()?.try_into().ok()?)
    }

    /// Version, port (little-endian), token.
    #[must_use]
    pub fn encode(&self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        let port = self.port.to_le_bytes();
        let all = [VERSION].into_iter().chain(port).chain(self.token);
        for (to, from) in bytes.iter_mut().zip(all) {
            *to = from;
        }
        bytes
    }

    /// Reads an offer. `None` if it is of another version, or names no port.
    #[must_use]
    pub fn decode(bytes: &[u8; OFFER_BYTES]) -> Option<Self> {
        let [version, low, high, token @ ..] = *bytes;
        let port = u16::from_le_bytes([low, high]);
        (version == VERSION && port > 0).then_some(Self { port, token })
    }
}

impl std::fmt::Debug for Offer {
    /// The token stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_has_these_bytes_and_hides_its_token() {
        let offer = Offer {
            port: 0x1234,
            token: [7; TOKEN_BYTES],
        };
        let bytes = offer.encode();
        assert_eq!(bytes[..4], [1, 0x34, 0x12, 7]);
        assert_eq!(Offer::decode(&bytes), Some(offer));
        assert!(!format!("{offer:?}").contains('7'));
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(Offer::decode(&other), None);
        other = bytes;
        (other[1], other[2]) = (0, 0);
        assert_eq!(Offer::decode(&other), None);
    }
}
