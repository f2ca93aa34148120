//! Checks that the ports of the configuration are free, and that the daemons to join answer. Each address is dialled
//! as a daemon does it, by a stranger of another run, which learns no more than that a daemon is there.

use super::finding::{Code, Finding, State};
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use murmurate_net::free::{Wire, probe};
use murmurate_node::bulk::{BulkLimits, NoStore};
use murmurate_node::config::Config;
use murmurate_node::net::{GateError, Membership, NetConfig, NetEvent, Proxy, from_libp2p, start};
use murmurate_node::ports::socket_of;
use murmurate_protocol::RunId;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a daemon may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(8);

/// How long a lookup, or a TCP connection, may take.
const SHORT_WAIT: Duration = Duration::from_secs(3);

/// Addresses that are tried, all at the same time.
const ADDRESSES_MAX: usize = 32;

/// What came of a dial.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// A daemon answered.
    Daemon,
    /// Something answered that is no daemon of this version.
    Other(String),
    /// A daemon with another id answered.
    OtherId,
    /// No answer, for this reason.
    None(String),
}

/// Tries every address, over TCP through the proxy if there is one.
pub(super) fn reach(
    addresses: &[Multiaddr],
    proxy: Option<&Proxy>,
) -> anyhow::Result<Vec<Finding>> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let found = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for (place, address) in addresses.iter().take(ADDRESSES_MAX).cloned().enumerate() {
            let proxy = proxy.cloned();
            tasks.spawn(async move { (place, one(&address, proxy.as_ref()).await) });
        }
        let mut found = tasks.join_all().await;
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, finding)| finding).collect()
    });
    runtime.shutdown_timeout(SHORT_WAIT);
    Ok(found)
}

async fn one(address: &Multiaddr, proxy: Option<&Proxy>) -> Finding {
    let known = match name_of(address) {
        None => socket_of(address),
        Some((name, wire, port)) => match looked_up(&name).await {
            Ok(ip) => Some((wire, SocketAddr::new(ip, port))),
            Err(reason) => {
                let text = format!("the name {name} cannot be looked up");
                return Finding::failed("join", Code::Name, text)
                    .because(reason)
                    .fix(format!(
                        "correct the name, or write the IP address instead of /dns/{name}"
                    ));
            }
        },
    };
    let mut answer = dial(address, proxy).await;
    let mut tcp = false;
    if let (Answer::None(_), Some((Wire::Udp, at))) = (&answer, known) {
        tcp = dial(&over_tcp(at), proxy).await == Answer::Daemon;
        if !tcp && connects(at).await {
            let port = at.port();
            answer = Answer::None(format!("what listens on TCP {port} there is no daemon"));
        }
    }
    told(address, known.map(|(_, at)| at), &answer, tcp)
}

/// The same place over TCP.
fn over_tcp(at: SocketAddr) -> Multiaddr {
    Multiaddr::from(at.ip()).with(Protocol::Tcp(at.port()))
}

/// The finding for an answer. `tcp`: a daemon answers on the TCP port with the same number.
fn told(address: &Multiaddr, at: Option<SocketAddr>, answer: &Answer, tcp: bool) -> Finding {
    let host = at.map_or_else(|| address.to_string(), |at| at.ip().to_string());
    let port = at.map_or(0, |at| at.port());
    match answer {
        Answer::Daemon => Finding::ok("join", format!("a daemon answers at {address}")),
        Answer::Other(reason) => {
            let text = format!("what answers at {address} is no daemon of this version");
            Finding::failed("join", Code::OtherProgram, text)
                .because(reason.clone())
                .fix("install the same version of murmurate on both machines")
        }
        Answer::OtherId => {
            let text = format!("another daemon than {address} names answers there");
            Finding::failed("join", Code::OtherDaemon, text)
                .because("its directory was replaced, or the address is of another machine now")
                .fix(
                    "use an address that the daemon prints now, or leave out /p2p/ and what \
                     follows it",
                )
        }
        Answer::None(_) if tcp => {
            let text = format!("{host} answers on TCP but not on UDP {port}");
            Finding::failed("join", Code::Udp, text)
                .because("a firewall drops UDP")
                .fix(format!(
                    "open UDP {port} on {host}, and let UDP out here; until then join over TCP: \
                     /tcp/{port} instead of /udp/{port}/quic-v1"
                ))
        }
        Answer::None(reason) => {
            let text = format!("no daemon answers at {address}");
            Finding::failed("join", Code::Unreachable, text)
                .because(reason.clone())
                .fix(format!(
                    "start the daemon there, compare the address with what it prints, and open UDP \
                     and TCP {port} on {host}"
                ))
        }
    }
}

/// The name at the beginning of an address, with transport and port.
fn name_of(address: &Multiaddr) -> Option<(String, Wire, u16)> {
    let mut parts = address.iter();
    let name = match parts.next()? {
        Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name) => name.into_owned(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some((name, Wire::Tcp, port)),
        Protocol::Udp(port) => Some((name, Wire::Udp, port)),
        _ => None,
    }
}

async fn looked_up(name: &str) -> Result<IpAddr, String> {
    match timeout(SHORT_WAIT, lookup_host((name, 0))).await {
        Ok(Ok(mut found)) => {
            let first = found.next().map(|at| at.ip());
            first.ok_or_else(|| "it has no address".to_owned())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the name server does not answer".to_owned()),
    }
}

async fn connects(at: SocketAddr) -> bool {
    matches!(timeout(SHORT_WAIT, TcpStream::connect(at)).await, Ok(Ok(_)))
}

/// Dials an address with a new identity, as a member of a run that no other daemon is in.
async fn dial(address: &Multiaddr, proxy: Option<&Proxy>) -> Answer {
    let identity = Keypair::generate_ed25519();
    let me = identity.public().to_peer_id();
    let Some(me) = from_libp2p(&me) else {
        return Answer::None("no identity could be made".to_owned());
    };
    let run = RunId::from_bytes(*me.as_bytes());
    let mut config = NetConfig::new(identity, Arc::new(Membership::open(run, me)));
    config.join = vec![address.clone()];
    config.proxy = proxy.cloned();
    let (net, mut events) = match start(config, Arc::new(NoStore), BulkLimits::default()) {
        Ok(started) => started,
        Err(error) => return Answer::None(error.to_string()),
    };
    let deadline = Instant::now() + ANSWER_WAIT;
    let mut last = Answer::None(format!("no answer within {} s", ANSWER_WAIT.as_secs()));
    while let Ok(Some(event)) = timeout_at(deadline, events.recv()).await {
        match event {
            NetEvent::LinkUp(_) => {
                last = Answer::Daemon;
                break;
            }
            NetEvent::TurnedAway { error, .. } => {
                last = turned_away(error);
                break;
            }
            NetEvent::BootstrapFailed { reason, .. } => {
                last = failed(reason);
                break;
            }
            _ => {}
        }
    }
    net.shutdown(std::time::Instant::now() + Duration::from_secs(1))
        .await;
    last
}

/// A daemon of another run turns this stranger away, which shows that it is there.
fn turned_away(error: GateError) -> Answer {
    match error {
        GateError::NoGate => Answer::Other(error.to_string()),
        _ => Answer::Daemon,
    }
}

fn failed(reason: String) -> Answer {
    // The words of QUIC and of libp2p for an id that is not the one of the address.
    if reason.contains(" was expected") || reason.contains("peer ID") {
        Answer::OtherId
    } else {
        Answer::None(reason)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::State;

    #[test]
    fn every_answer_has_its_code() {
        let address: Multiaddr = "/ip4/192.0.2.1/udp/4001/quic-v1".parse().unwrap();
        let of = |answer: &Answer, tcp| {
            told(&address, socket_of(&address).map(|(_, at)| at), answer, tcp)
        };
        let silent = Answer::None("no answer".to_owned());
        assert_eq!(of(&Answer::Daemon, false).state, State::Ok);
        assert_eq!(turned_away(GateError::OtherRun), Answer::Daemon);
        let cases = [
            (turned_away(GateError::NoGate), false, "M024"),
            (failed("Unexpected peer ID 12D3".to_owned()), false, "M023"),
            (
                failed("a answers where b was expected".to_owned()),
                false,
                "M023",
            ),
            (silent.clone(), true, "M021"),
            (silent, false, "M022"),
        ];
        for (answer, tcp, code) in cases {
            let finding = of(&answer, tcp);
            assert_eq!(finding.code.as_deref(), Some(code), "{finding}");
            assert!(
                finding.cause.is_some() && finding.fix.is_some(),
                "{finding}"
            );
        }
    }
}
