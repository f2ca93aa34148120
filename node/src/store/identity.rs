//! The identity of a daemon: an Ed25519 key in `identity.key`, as 64 hexadecimal digits, readable
//! by its owner only.

use crate::store::StoreError;
use crate::store::files::{check_permissions, create, sync_parent, temporary_beside};
use libp2p::identity::Keypair;
use murmurate_protocol::{Digest, PeerId};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A daemon's key and its peer id.
#[derive(Clone, Debug)]
pub struct Identity {
    keypair: Keypair,
    peer: PeerId,
}

impl Identity {
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join("identity.key")
    }

    /// Reads `identity.key` in `dir`, or creates it.
    ///
    /// # Errors
    /// If the file is not a key, or if others than its owner may read it.
    pub fn load_or_create(dir: &Path) -> Result<Self, StoreError> {
        let path = Self::path(dir);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                check_permissions(&path).map_err(|reason| StoreError::Identity {
                    path: path.clone(),
                    reason,
                })?;
                Self::from_text(&path, &text)
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Self::create(&path),
            Err(e) => Err(StoreError::io("read", &path, e)),
        }
    }

    /// The key in libp2p's form.
    pub fn keypair(&self) -> &Keypair {
        &self.keypair
    }

    /// The secret half of the key.
    pub(crate) fn seed(&self) -> [u8; 32] {
        let mut seed = [0u8; 32];
        // An identity is an Ed25519 key by its making.
        if let Ok(pair) = self.keypair.clone().try_into_ed25519() {
            seed.copy_from_slice(pair.secret().as_ref());
        }
        seed
    }

    /// The peer's id, which is the public key.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    fn create(path: &Path) -> Result<Self, StoreError> {
        let seed = random_bytes();
        // `Digest` parses 32 bytes in hexadecimal, which is also the form of an Ed25519 seed.
        let text = format!("{}\n", Digest::from_bytes(seed).to_hex());
        let temporary = temporary_beside(path);
        let mut file = create(&temporary, 0o600)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&temporary, path))
            .map_err(|e| StoreError::io("write", path, e))?;
        sync_parent(path)?;
        Self::from_text(path, &text)
    }

    fn from_text(path: &Path, text: &str) -> Result<Self, StoreError> {
        let bad = |reason: &str| StoreError::Identity {
            path: path.to_owned(),
            reason: format!("{reason}; restore it, or move it away to become a new peer"),
        };
        let seed = Digest::from_hex(text.trim())
            .ok_or_else(|| bad("it should hold 64 hexadecimal digits"))?;
        let mut bytes = *seed.as_bytes();
        let secret = libp2p::identity::ed25519::SecretKey::try_from_bytes(&mut bytes)
            .map_err(|_| bad("it is not an Ed25519 key"))?;
        Ok(Self::from_pair(secret.into()))
    }

    fn from_pair(pair: libp2p::identity::ed25519::Keypair) -> Self {
        let peer = PeerId::from_bytes(pair.public().to_bytes());
        Self {
            keypair: pair.into(),
            peer,
        }
    }
}

/// 32 secret bytes of the system's generator.
pub(crate) fn random_bytes() -> [u8; 32] {
    // A new Ed25519 seed is just that, and libp2p is here anyway.
    let pair = libp2p::identity::ed25519::Keypair::generate();
    let mut bytes = [0; 32];
    bytes.copy_from_slice(pair.secret().as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_ends;

    #[test]
    fn the_same_directory_is_the_same_peer() {
        let dir = tempfile::tempdir().unwrap();
        let first = Identity::load_or_create(dir.path()).unwrap();
        let again = Identity::load_or_create(dir.path()).unwrap();
        assert_eq!(first.peer(), again.peer());
        let other = tempfile::tempdir().unwrap();
        assert_ne!(
            first.peer(),
            Identity::load_or_create(other.path()).unwrap().peer()
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        Identity::load_or_create(dir.path()).unwrap();
        let path = dir.path().join("identity.key");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let line = Identity::load_or_create(dir.path())
            .unwrap_err()
            .to_string();
        assert_ends(&line, "others may read it (mode 644); run chmod 600 on it");
    }

    #[cfg(unix)]
    #[test]
    fn a_damaged_key_is_refused_and_left_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity.key");
        std::fs::write(&path, "abc\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(
            Identity::load_or_create(dir.path()),
            Err(StoreError::Identity { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc\n");
    }
}
