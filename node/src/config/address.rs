//! Multiaddresses of the configuration. One with a missing part would fail only when it is dialled, and
//! then say little, so it is refused here, with the address that was probably meant.

use super::error::Wrong;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Join,
    Listen,
    /// To tell others.
    Announce,
}

pub(super) fn addresses(
    key: &'static str,
    usage: Use,
    texts: &[String],
) -> Result<Vec<Multiaddr>, Wrong> {
    let each = texts.iter().map(|text| {
        let read = address(usage, text);
        read.map_err(|message| Wrong::new(key, message))
    });
    each.collect()
}

fn address(usage: Use, text: &str) -> Result<Multiaddr, String> {
    let address: Multiaddr = text.parse().map_err(|e| {
        let example = meant(text).unwrap_or_else(|| "/ip4/10.0.0.1/udp/4001/quic-v1".to_owned());
        format!(
            "`{text}` is not a multiaddress ({e}); write it as a daemon prints its own, such as \
             {example}"
        )
    })?;
    match problem(usage, &address) {
        None => Ok(address),
        Some(problem) => Err(format!("`{text}` {problem}")),
    }
}

/// `HOST:PORT` as a multiaddress.
fn meant(text: &str) -> Option<String> {
    if let Ok(at) = text.parse::<SocketAddr>() {
        let family = if at.is_ipv4() { "ip4" } else { "ip6" };
        return Some(format!("/{family}/{}/udp/{}/quic-v1", at.ip(), at.port()));
    }
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then(|| format!("/dns/{host}/udp/{port}/quic-v1"))
}

/// Why an address cannot be used, and what to write instead.
fn problem(usage: Use, address: &Multiaddr) -> Option<String> {
    let parts: Vec<Protocol<'_>> = address.iter().collect();
    let host = match parts.first() {
        Some(Protocol::Ip4(ip)) => of_ip(usage, (*ip).into()),
        Some(Protocol::Ip6(ip)) => of_ip(usage, (*ip).into()),
        Some(Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_)) => of_name(usage),
        _ => Some("does not begin with a host: /ip4/, /ip6/ or, for a name, /dns/".to_owned()),
    };
    let with = |at: usize, replaced: usize, part| {
        let (before, after) = (&parts[..at], &parts[at + replaced..]);
        let all = before.iter().cloned().chain([part]);
        all.chain(after.iter().cloned()).collect::<Multiaddr>()
    };
    host.or_else(|| match (parts.get(1), parts.get(2)) {
        (Some(Protocol::Udp(0) | Protocol::Tcp(0)), _) if usage != Use::Listen => Some(
            "has port 0, which means any port; write the one that the daemon prints".to_owned(),
        ),
        (Some(Protocol::Tcp(_)), _) | (Some(Protocol::Udp(_)), Some(Protocol::QuicV1)) => None,
        (Some(Protocol::Udp(_)), Some(Protocol::Quic)) => {
            let meant = with(2, 1, Protocol::QuicV1);
            Some(format!("names an old version of QUIC; write {meant}"))
        }
        (Some(Protocol::Udp(_)), _) => {
            let meant = with(2, 0, Protocol::QuicV1);
            Some(format!("lacks /quic-v1 after the port; write {meant}"))
        }
        _ => Some("has no port: write /udp/PORT/quic-v1 or /tcp/PORT after the host".to_owned()),
    })
}

fn of_ip(usage: Use, ip: IpAddr) -> Option<String> {
    (usage != Use::Listen && ip.is_unspecified()).then(|| {
        "stands for all addresses of this machine, which others cannot dial; write the address of \
         the daemon's machine"
            .to_owned()
    })
}

fn of_name(usage: Use) -> Option<String> {
    let meant = match usage {
        // A name is looked up whenever it is dialled.
        Use::Join => return None,
        Use::Listen => "/ip4/0.0.0.0 or an address of this machine",
        Use::Announce => {
            "the IP address behind it, because peers dial no names that others tell them"
        }
    };
    Some(format!("begins with a name; write {meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "12D3KooWReruQARxe83UwjG2A8xQ3Bfv8hDqBT3CdxZbp9rBZ2z2";

    #[test]
    fn addresses_as_daemons_print_them_are_taken() {
        for text in [
            "/ip4/10.0.0.1/udp/4001/quic-v1".to_owned(),
            format!("/ip4/10.0.0.1/udp/4001/quic-v1/p2p/{ID}"),
            format!("/ip6/fe80::1/tcp/4001/p2p/{ID}"),
            format!("/dns4/gpu1.lan/udp/4001/quic-v1/p2p/{ID}/p2p-circuit/p2p/{ID}"),
            "/dns/node-0.murmurate/tcp/4001".to_owned(),
        ] {
            assert_eq!(address(Use::Join, &text).unwrap().to_string(), text);
        }
        for text in ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip6/::/tcp/0"] {
            assert!(address(Use::Listen, text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_lacks_a_part_is_refused_with_what_was_meant() {
        let quic = format!("write /ip4/10.0.0.1/udp/4001/quic-v1/p2p/{ID}");
        let cases = [
            ("10.0.0.1:4001", "such as /ip4/10.0.0.1/udp/4001/quic-v1"),
            ("[fe80::1]:9", "such as /ip6/fe80::1/udp/9/quic-v1"),
            ("gpu1.lan:4001", "such as /dns/gpu1.lan/udp/4001/quic-v1"),
            ("gpu1", "such as /ip4/10.0.0.1/udp/4001/quic-v1"),
            (&format!("/ip4/10.0.0.1/udp/4001/p2p/{ID}"), &quic),
            (&format!("/ip4/10.0.0.1/udp/4001/quic/p2p/{ID}"), &quic),
            ("/ip4/10.0.0.1", "has no port: write /udp/PORT/quic-v1"),
            ("/ip4/10.0.0.1/tcp/0", "has port 0, which means any port"),
            ("/ip4/0.0.0.0/tcp/4001", "stands for all addresses"),
            (&format!("/p2p/{ID}"), "does not begin with a host"),
            ("/dnsaddr/a.example", "does not begin with a host"),
        ];
        for (text, part) in cases {
            let message = address(Use::Join, text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        let name = "/dns4/a.example/udp/4001/quic-v1";
        let message = address(Use::Listen, name).unwrap_err();
        assert!(
            message.ends_with("write /ip4/0.0.0.0 or an address of this machine"),
            "{message}"
        );
        assert!(
            address(Use::Announce, name)
                .unwrap_err()
                .contains("the IP address")
        );
    }
}
