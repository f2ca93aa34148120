//! Decides which peers may connect, for both kinds of connection. `limits` bounds their number.

use libp2p::PeerId;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A libp2p connection with control streams, identify, ping, discovery and hole punching.
    Control,
    /// A connection for slices and states.
    Bulk,
}

impl Kind {
    /// The ALPN protocol that connections of this kind negotiate in TLS.
    #[must_use]
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Control => b"libp2p",
            Self::Bulk => b"murmurate-bulk/1",
        }
    }

    /// The kind that negotiated `alpn`.
    #[must_use]
    pub fn of(alpn: &[u8]) -> Option<Self> {
        [Self::Control, Self::Bulk]
            .into_iter()
            .find(|kind| kind.alpn() == alpn)
    }
}

/// Decides whether a peer may hold a connection.
///
/// It is asked for inbound and outbound connections, after the peer has proved its identity and
/// before any of its data is read. It runs inside the endpoint's tasks, so it must not block.
pub trait Admission: Send + Sync + 'static {
    /// Admits or refuses a connection of this kind to `peer`.
    fn admit(&self, peer: &PeerId, kind: Kind) -> bool;
}

impl<F> Admission for F
where
    F: Fn(&PeerId, Kind) -> bool + Send + Sync + 'static,
{
    fn admit(&self, peer: &PeerId, kind: Kind) -> bool {
        self(peer, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_protocol_and_nothing_else_is() {
        for kind in [Kind::Control, Kind::Bulk] {
            assert_eq!(Kind::of(kind.alpn()), Some(kind));
        }
        assert_eq!(Kind::of(b"murmurate-bulk/2"), None);
        assert_eq!(Kind::of(b""), None);
    }
}
