//! Loopback addresses of an emulated network: a block that no other network on this machine uses.

use super::error::RelayError;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// The most daemons on one emulated network.
pub(super) const SEATS_MAX: usize = 64;

/// Binding this port of a block claims the block.
const CLAIM_PORT: u16 = 40_404;

/// Blocks are 127.64.0.0/24 to 127.127.255.0/24, which are loopback but rarely used.
const BLOCKS: u32 = 64 * 256;

const TRIES: u32 = 256;

/// Number of networks that this process has started. Each tries other blocks first, because sockets
/// of an ended network may stay open until the runtime has dropped their readers.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// A /24 block of 127.0.0.0/8. A bound port claims it, and the system releases the port when the
/// process ends.
#[derive(Debug)]
pub(super) struct Block {
    base: [u8; 3],
    _claim: UdpSocket,
}

impl Block {
    /// Claims a free block. The search begins at a place that differs between processes.
    pub(super) fn claim() -> Result<Self, RelayError> {
        let begun = BEGUN.fetch_add(1, Ordering::Relaxed);
        let first = std::process::id()
            .wrapping_mul(0x9E37_79B1)
            .wrapping_add(begun.wrapping_mul(TRIES));
        let mut failed = (Ipv4Addr::LOCALHOST, String::new());
        for offset in 0..TRIES {
            let number = first.wrapping_add(offset) % BLOCKS;
            let base = [127, 64 + (number >> 8) as u8, (number & 0xFF) as u8];
            let claim = Ipv4Addr::new(base[0], base[1], base[2], 254);
            match UdpSocket::bind(SocketAddrV4::new(claim, CLAIM_PORT)) {
                Ok(claim) => {
                    return Ok(Self {
                        base,
                        _claim: claim,
                    });
                }
                Err(error) => failed = (claim, error.to_string()),
            }
        }
        let (last, reason) = failed;
        Err(RelayError::Addresses { last, reason })
    }

    /// The inner and the public address of daemon `index`.
    pub(super) fn addresses(&self, index: usize) -> Result<(Ipv4Addr, Ipv4Addr), RelayError> {
        if index >= SEATS_MAX {
            return Err(RelayError::Seats {
                seats: index + 1,
                most: SEATS_MAX,
            });
        }
        let [a, b, c] = self.base;
        let at = |host: usize| Ipv4Addr::new(a, b, c, host as u8);
        Ok((at(129 + index), at(1 + index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_and_addresses_are_told_apart() {
        let blocks = [Block::claim().unwrap(), Block::claim().unwrap()];
        let mut seen = BTreeSet::new();
        for block in &blocks {
            for index in 0..SEATS_MAX {
                let (inner, public) = block.addresses(index).unwrap();
                assert!(inner.is_loopback() && seen.insert(inner) && seen.insert(public));
            }
            assert!(block.addresses(SEATS_MAX).is_err());
        }
    }
}
