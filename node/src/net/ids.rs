//! Converts peer ids (32-byte Ed25519 keys) to libp2p's ids and back.

use libp2p::Multiaddr;
use libp2p::identity::{self, PublicKey, ed25519};
use libp2p::multiaddr::Protocol;
use murmurate_protocol::PeerId;

/// Multihash code of the identity function.
const IDENTITY_HASH: u64 = 0;

/// The id of a libp2p peer; `None` if its key is not Ed25519.
pub fn from_libp2p(peer: &identity::PeerId) -> Option<PeerId> {
    let hash = peer.as_ref();
    if hash.code() != IDENTITY_HASH {
        return None;
    }
    let key = PublicKey::try_decode_protobuf(hash.digest()).ok()?;
    Some(PeerId::from_bytes(key.try_into_ed25519().ok()?.to_bytes()))
}

/// libp2p's id of a peer; `None` if the 32 bytes are not a point of the curve.
pub fn to_libp2p(peer: &PeerId) -> Option<identity::PeerId> {
    Some(public_key(peer)?.to_peer_id())
}

/// Appends the peer's id to the address, so that others can join with it.
pub fn address_with_peer(address: Multiaddr, peer: identity::PeerId) -> Multiaddr {
    match address.iter().last() {
        Some(Protocol::P2p(_)) => address,
        _ => address.with(Protocol::P2p(peer)),
    }
}

/// The public key that the id contains.
pub(crate) fn public_key(peer: &PeerId) -> Option<PublicKey> {
    ed25519::PublicKey::try_from_bytes(peer.as_bytes())
        .ok()
        .map(PublicKey::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::identity::Keypair;

    #[test]
    fn an_ed25519_identity_converts_both_ways() {
        let key = Keypair::generate_ed25519().public();
        let theirs = key.to_peer_id();
        let ours = from_libp2p(&theirs).unwrap();
        assert_eq!(*ours.as_bytes(), key.try_into_ed25519().unwrap().to_bytes());
        assert_eq!(to_libp2p(&ours), Some(theirs));
    }

    #[test]
    fn an_identity_of_another_kind_is_refused() {
        // The id contains a hash of the key, as for RSA keys.
        assert_eq!(from_libp2p(&identity::PeerId::random()), None);
        // y = 2 is not the coordinate of any point of the curve.
        let mut bytes = [0u8; 32];
        bytes[0] = 2;
        assert_eq!(to_libp2p(&PeerId::from_bytes(bytes)), None);
    }
}
