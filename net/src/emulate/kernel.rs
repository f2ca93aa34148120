//! Datagrams that the kernel dropped because a socket's buffer was full. The emulator's own
//! counters cannot see these.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Drops of all UDP sockets of this machine by local address; empty where the kernel does not tell.
pub(super) fn drops() -> BTreeMap<Ipv4Addr, u64> {
    std::fs::read_to_string("/proc/net/udp").map_or_else(|_| BTreeMap::new(), |text| parse(&text))
}

/// Parses lines of `/proc/net/udp`. The second column is the address in hexadecimal, in the
/// machine's byte order; the last column is the number of drops.
fn parse(text: &str) -> BTreeMap<Ipv4Addr, u64> {
    let mut drops = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut columns = line.split_whitespace();
        let address = columns.nth(1).and_then(|local| local.split_once(':'));
        let address = address.and_then(|(ip, _)| u32::from_str_radix(ip, 16).ok());
        let count = columns.last().and_then(|drops| drops.parse::<u64>().ok());
        if let (Some(address), Some(count)) = (address, count) {
            *drops
                .entry(Ipv4Addr::from(address.to_ne_bytes()))
                .or_default() += count;
        }
    }
    drops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_is_read() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout \
                    inode ref pointer drops\n\
                    1: 0201407F:0FA1 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 3\n\
                    2: 0201407F:0FA2 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 4\n\
                    broken\n";
        assert_eq!(
            parse(text),
            BTreeMap::from([(Ipv4Addr::new(127, 64, 1, 2), 7)])
        );
    }
}
