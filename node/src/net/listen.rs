//! Listens on every address that works.

use super::event::Pending;
use super::streams::{Opener, accept_bulk};
use crate::net::behaviour::Behaviour;
use crate::net::paths::Paths;
use crate::net::{ListenFailure, NetError, NetEvent, ways};
use crate::ports::{Ports, socket_of};
use libp2p::Multiaddr;
use libp2p::core::transport::TransportError;
use libp2p::swarm::Swarm;
use murmurate_net::free::probe;
use murmurate_net::quic::Endpoint;
use std::collections::VecDeque;
use std::io::ErrorKind;
use tokio::task::JoinSet;

/// Listens on every address that works, and reports those that do not. An address that leaves the
/// port to the system gets the one that this daemon had before, if it is free.
///
/// # Errors
/// If another process has a port that the configuration names, or if no address works.
pub(super) fn listen(
    swarm: &mut Swarm<Behaviour>,
    addresses: &[Multiaddr],
    ports: &Ports,
) -> Result<VecDeque<Pending>, NetError> {
    refuse_taken(addresses)?;
    let (mut failures, mut events) = (Vec::new(), VecDeque::new());
    for address in addresses {
        if let Some(wish) = ports.wish(address) {
            if free(&wish) && begin(swarm, &wish).is_ok() {
                continue;
            }
            events.push_back(NetEvent::Notice(format!(
                "{wish} is in use by another process; listening on another port"
            )));
        }
        if let Err(reason) = begin(swarm, address) {
            let address = address.clone();
            failures.push(ListenFailure { address, reason });
        }
    }
    if !failures.is_empty() && failures.len() == addresses.len() {
        return Err(NetError::Listen(failures));
    }
    events.extend(failures.into_iter().map(NetEvent::ListenFailed));
    Ok(events.into_iter().map(Pending::Event).collect())
}

/// Refuses ports of other processes, before this process has any.
fn refuse_taken(addresses: &[Multiaddr]) -> Result<(), NetError> {
    for address in addresses {
        let Some((wire, at)) = socket_of(address).filter(|(_, at)| at.port() != 0) else {
            continue;
        };
        if probe(wire, at).is_err_and(|error| error.kind() == ErrorKind::AddrInUse) {
            return Err(NetError::PortTaken {
                address: address.clone(),
                port: at.port(),
            });
        }
    }
    Ok(())
}

fn free(address: &Multiaddr) -> bool {
    socket_of(address).is_some_and(|(wire, at)| probe(wire, at).is_ok())
}

fn begin(swarm: &mut Swarm<Behaviour>, address: &Multiaddr) -> Result<(), String> {
    match swarm.listen_on(address.clone()) {
        Ok(_) => Ok(()),
        // The error's own text says nothing.
        Err(TransportError::Other(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The tasks that accept connections of slices.
pub(super) fn accepting(quic: &Endpoint, paths: &Paths, opener: &Opener) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(accept_bulk(quic.clone(), opener.clone()));
    if let Some(tcp) = paths.tcp() {
        tasks.spawn(ways::accept(tcp.clone(), opener.network.clone()));
    }
    tasks
}
