//! Mappings and filters of each kind of router, with a table of ports instead of sockets.

use super::*;
use std::collections::BTreeSet;

const T0: Duration = Duration::ZERO;

#[derive(Default)]
struct Table(BTreeSet<SocketAddrV4>);

impl Ports for Table {
    fn open(&mut self, address: SocketAddrV4) -> bool {
        self.0.insert(address)
    }
    fn close(&mut self, address: SocketAddrV4) {
        assert!(self.0.remove(&address), "{address} was not open");
    }
}

fn at(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}

fn nat(kind: NatKind) -> (Nat, Table) {
    (
        Nat::new(kind, Ipv4Addr::new(127, 9, 9, 1), 5),
        Table::default(),
    )
}

#[test]
fn kinds_are_read_and_written() {
    for (name, kind) in NatKind::NAMES {
        assert_eq!(
            (name.parse::<NatKind>().unwrap(), kind.to_string().as_str()),
            (kind, name)
        );
    }
    let said = "cone".parse::<NatKind>().unwrap_err().to_string();
    assert!(said.starts_with("NAT: `cone` is no kind of NAT; there are none, full-cone"));
}

/// RFC 4787, sections 4.1 and 5: mapping by destination, and which remotes are admitted.
#[test]
fn the_table_of_mappings_and_filters() {
    let (inner, a, b) = (at("127.1.0.1:7"), at("127.9.9.2:1"), at("127.9.9.3:1"));
    let a_other_port = at("127.9.9.2:2");
    // (kind, one outer port for all destinations, other port of a contacted address, unknown
    // sender)
    let (open, shut) = (Ok(inner), Err(Refusal::Filtered));
    for (kind, independent, other_port, stranger) in [
        (NatKind::None, true, open, open),
        (NatKind::FullCone, true, open, open),
        (NatKind::PortRestricted, true, shut, shut),
        (NatKind::Symmetric, false, shut, shut),
    ] {
        let (mut nat, mut ports) = nat(kind);
        assert_eq!(nat.inbound(T0, 7, a), Err(Refusal::NoMapping), "{kind}");
        let to_a = nat.outbound(T0, inner, a, &mut ports).unwrap();
        assert_eq!(to_a.port() == inner.port(), kind == NatKind::None, "{kind}");
        assert_eq!(nat.inbound(T0, to_a.port(), a), Ok(inner), "{kind}");
        assert_eq!(
            nat.inbound(T0, to_a.port(), a_other_port),
            other_port,
            "{kind}"
        );
        assert_eq!(nat.inbound(T0, to_a.port(), b), stranger, "{kind}");
        let to_b = nat.outbound(T0, inner, b, &mut ports).unwrap();
        assert_eq!(to_a == to_b, independent, "{kind}");
        assert_eq!(nat.inbound(T0, to_b.port(), b), Ok(inner), "{kind}");
        assert_eq!(nat.outbound(T0, inner, a, &mut ports), Some(to_a), "{kind}");
    }
}

#[test]
fn published_ports_let_every_sender_in_for_ever() {
    let (mut nat, mut ports) = nat(NatKind::PortRestricted);
    let (inner, remote) = (at("127.1.0.1:7"), at("127.9.9.2:1"));
    let outer = nat.publish(inner, &mut ports).unwrap();
    assert_eq!(outer, at("127.9.9.1:7"));
    let late = 9 * MAPPING_LIFETIME;
    assert_eq!(nat.inbound(late, 7, remote), Ok(inner));
    assert_eq!(nat.outbound(late, inner, remote, &mut ports), Some(outer));
    assert_eq!(nat.publish(inner, &mut ports), None);
}

#[test]
fn mappings_and_permissions_expire_unless_something_goes_out() {
    let (mut nat, mut ports) = nat(NatKind::PortRestricted);
    let (inner, a, b) = (at("127.1.0.1:7"), at("127.9.9.2:1"), at("127.9.9.3:1"));
    let outer = nat.outbound(T0, inner, a, &mut ports).unwrap();
    let half = MAPPING_LIFETIME / 2;
    assert_eq!(nat.outbound(half, inner, b, &mut ports), Some(outer));
    // The mapping is kept alive by b, but a's permission has expired.
    let later = MAPPING_LIFETIME + half / 2;
    assert_eq!(nat.inbound(later, outer.port(), a), Err(Refusal::Filtered));
    assert_eq!(nat.inbound(later, outer.port(), b), Ok(inner));
    let end = half + MAPPING_LIFETIME;
    assert_eq!(nat.inbound(end, outer.port(), b), Err(Refusal::NoMapping));
    let again = nat.outbound(end, inner, b, &mut ports).unwrap();
    assert_ne!(again, outer);
    assert_eq!(ports.0.into_iter().collect::<Vec<_>>(), [again]);
}

#[test]
fn what_a_router_holds_is_bounded() {
    let (mut nat, mut ports) = nat(NatKind::Symmetric);
    let inner = at("127.1.0.1:7");
    for port in 1..=(MAPPINGS_MAX as u16 + 50) {
        let remote = SocketAddrV4::new(Ipv4Addr::new(127, 9, 9, 2), port);
        let now = Duration::from_micros(u64::from(port));
        assert!(nat.outbound(now, inner, remote, &mut ports).is_some());
    }
    assert_eq!(
        (nat.mappings.len(), nat.by_port.len()),
        (MAPPINGS_MAX, MAPPINGS_MAX)
    );
    assert_eq!(ports.0.len(), MAPPINGS_MAX);
}

#[test]
fn no_free_port_is_no_mapping() {
    struct Taken;
    impl Ports for Taken {
        fn open(&mut self, _: SocketAddrV4) -> bool {
            false
        }
        fn close(&mut self, _: SocketAddrV4) {}
    }
    let (mut nat, _) = nat(NatKind::None);
    let (inner, remote) = (at("127.1.0.1:7"), at("127.9.9.2:1"));
    assert_eq!(nat.outbound(T0, inner, remote, &mut Taken), None);
    assert_eq!(nat.publish(inner, &mut Taken), None);
}
