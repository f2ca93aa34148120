//! Whether the ports that the configuration names are free.

use super::code::Code;
use super::finding::{Finding, State};
use libp2p::Multiaddr;
use murmurate_net::free::{Wire, probe};
use murmurate_node::config::Config;
use murmurate_node::ports::socket_of;
use std::io::ErrorKind;
use std::net::SocketAddr;

/// Probes every port. The daemon must not run, because it has them itself.
pub(super) fn ports(config: &Config) -> Vec<Finding> {
    let mut found: Vec<Finding> = config.network.listen.iter().filter_map(listening).collect();
    if found.iter().all(|finding| finding.state == State::Ok) {
        found = vec![Finding::ok("ports", "all ports to listen on are free")];
    }
    found.extend(http(config.daemon.http));
    found
}

fn listening(address: &Multiaddr) -> Option<Finding> {
    let (wire, at) = socket_of(address).filter(|(_, at)| at.port() != 0)?;
    let error = probe(wire, at).err()?;
    let text = format!("{address} cannot be listened on");
    let finding = Finding::failed("ports", Code::Port, text);
    Some(match error.kind() {
        ErrorKind::AddrInUse => finding
            .because(format!("another process has port {}", at.port()))
            .fix(format!(
                "stop it (`{}` names it), or set another port in `network.listen` (--listen)",
                lister(wire, at.port())
            )),
        _ => finding.because(error.to_string()).fix(
            "set `network.listen` (--listen) to an address of this machine, such as /ip4/0.0.0.0",
        ),
    })
}

fn http(at: SocketAddr) -> Option<Finding> {
    let error = (at.port() != 0)
        .then(|| probe(Wire::Tcp, at).err())
        .flatten()?;
    let text = format!("the pages cannot be served on {at}");
    let finding = Finding::failed("ports", Code::HttpPort, text).because(error.to_string());
    Some(finding.fix(format!(
        "stop what has the port (`{}` names it), or set another one in `daemon.http` (--http); port 0 \
         takes any free one",
        lister(Wire::Tcp, at.port())
    )))
}

/// The command that names the process of a port.
fn lister(wire: Wire, port: u16) -> String {
    let kind = match wire {
        Wire::Tcp => "t",
        Wire::Udp => "u",
    };
    format!("ss -{kind}lnp 'sport = :{port}'")
}
