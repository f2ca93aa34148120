//! The address of a daemon's HTTP server, which the daemon notes in its directory.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The file with the address.
pub(crate) const ADDRESS_FILE: &str = "http.addr";

/// Why there is no address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotedError {
    /// No daemon has noted one.
    #[error("no daemon runs in {}: start it, or give its directory", dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The file holds something else.
    #[error("{} holds no address: restart the daemon", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
    },
}

/// The address of the daemon of a directory, for use on this machine.
///
/// # Errors
/// If no daemon has noted one. A daemon that has ended may have left its last one.
pub fn noted_address(dir: &Path) -> Result<SocketAddr, NotedError> {
    let file = dir.join(ADDRESS_FILE);
    let Ok(text) = fs::read_to_string(&file) else {
        let dir = dir.to_owned();
        return Err(NotedError::Missing { dir });
    };
    match text.trim().parse() {
        Ok(address) => Ok(own(address)),
        Err(_) => Err(NotedError::Damaged { file }),
    }
}

/// A daemon that listens on all addresses also listens on loopback.
fn own(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_its_absence_explained() {
        let dir = tempfile::tempdir().unwrap();
        let line = noted_address(dir.path()).unwrap_err().to_string();
        assert!(line.starts_with("no daemon runs in "), "{line}");
        let file = dir.path().join(ADDRESS_FILE);
        fs::write(&file, "0.0.0.0:9100\n").unwrap();
        let address = noted_address(dir.path()).unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:9100");
        fs::write(&file, "nowhere\n").unwrap();
        let line = noted_address(dir.path()).unwrap_err().to_string();
        assert!(line.ends_with("http.addr holds no address: restart the daemon"));
    }
}
