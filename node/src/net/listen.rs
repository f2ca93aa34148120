//! Listens on every address that works.

use crate::net::behaviour::Behaviour;
use crate::net::pending::Pending;
use crate::net::{ListenFailure, NetError, NetEvent};
use libp2p::Multiaddr;
use libp2p::core::transport::TransportError;
use libp2p::swarm::Swarm;
use std::collections::VecDeque;

/// Listens on every address that works, and reports those that do not.
pub(super) fn listen(
    swarm: &mut Swarm<Behaviour>,
    addresses: &[Multiaddr],
) -> Result<VecDeque<Pending>, NetError> {
    let mut failures = Vec::new();
    for address in addresses {
        if let Err(error) = swarm.listen_on(address.clone()) {
            let reason = match error {
                // The error's own text says nothing.
                TransportError::Other(error) => error.to_string(),
                error => error.to_string(),
            };
            let address = address.clone();
            failures.push(ListenFailure { address, reason });
        }
    }
    if !failures.is_empty() && failures.len() == addresses.len() {
        return Err(NetError::Listen { failures });
    }
    Ok(failures
        .into_iter()
        .map(|f| Pending::Event(NetEvent::ListenFailed(f)))
        .collect())
}
