//! Looks up the names in addresses to join, with the resolver of the system. A name is looked up before
//! every dial, because the machine behind it may have moved. Everything after the dial then sees an IP
//! address, as it does for all other peers.

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// How long a lookup may take.
const LOOKUP_WAIT: Duration = Duration::from_secs(5);

/// Number of addresses of one name that are tried, one at each dial.
const FOUND_MAX: usize = 16;

/// The name at the beginning of an address, if there is one.
pub(super) fn name_of(address: &Multiaddr) -> Option<String> {
    match address.iter().next()? {
        Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name) => {
            Some(name.into_owned())
        }
        _ => None,
    }
}

/// The address with each of the IP addresses behind its name, or why there is none.
pub(super) async fn resolve(address: &Multiaddr) -> Result<Vec<Multiaddr>, String> {
    let Some(name) = name_of(address) else {
        return Ok(vec![address.clone()]);
    };
    let found = match timeout(LOOKUP_WAIT, lookup_host((name.as_str(), 0))).await {
        Ok(Ok(found)) => fitting(address, found),
        Ok(Err(error)) => {
            return Err(format!("the name {name} cannot be looked up: {error}"));
        }
        Err(_) => {
            let seconds = LOOKUP_WAIT.as_secs();
            return Err(format!(
                "the lookup of the name {name} took more than {seconds} s"
            ));
        }
    };
    match found.is_empty() {
        true => Err(format!("the name {name} has no address of the wanted kind")),
        false => Ok(found),
    }
}

/// The address with each IP address of its family.
fn fitting(address: &Multiaddr, found: impl Iterator<Item = SocketAddr>) -> Vec<Multiaddr> {
    let wanted = |ip: &IpAddr| match address.iter().next() {
        Some(Protocol::Dns4(_)) => ip.is_ipv4(),
        Some(Protocol::Dns6(_)) => ip.is_ipv6(),
        _ => true,
    };
    let ips = found.map(|socket| socket.ip()).filter(wanted);
    let with = |ip: IpAddr| std::iter::once(Protocol::from(ip)).chain(address.iter().skip(1));
    ips.take(FOUND_MAX).map(|ip| with(ip).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_family_is_respected_and_the_rest_kept() {
        let sockets: [SocketAddr; 2] = ["10.0.0.7:0".parse().unwrap(), "[::1]:0".parse().unwrap()];
        let of = |text: &str| fitting(&address(text), sockets.into_iter());
        let four = address("/ip4/10.0.0.7/udp/4001/quic-v1");
        let six = address("/ip6/::1/udp/4001/quic-v1");
        assert_eq!(of("/dns/a/udp/4001/quic-v1"), [four.clone(), six.clone()]);
        assert_eq!(of("/dns4/a/udp/4001/quic-v1"), [four]);
        assert_eq!(of("/dns6/a/udp/4001/quic-v1"), [six]);
    }

    #[tokio::test]
    async fn names_are_looked_up_and_ip_addresses_are_not() {
        let plain = address("/ip4/10.0.0.7/tcp/9");
        assert_eq!(resolve(&plain).await, Ok(vec![plain]));
        let local = resolve(&address("/dns4/localhost/tcp/9")).await;
        assert_eq!(local, Ok(vec![address("/ip4/127.0.0.1/tcp/9")]));
        let none = resolve(&address("/dns4/no-such-host.invalid/tcp/9")).await;
        let reason = none.unwrap_err();
        assert!(
            reason.contains("the name no-such-host.invalid "),
            "{reason}"
        );
    }
}
