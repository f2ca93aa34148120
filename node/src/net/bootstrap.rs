//! Retries of the addresses to join through, which read no clock (callers pass the time), and the lookup of the
//! names in them, with the resolver of the system.
//!
//! A name is looked up before every dial, because the machine behind it may have moved. Everything after the dial
//! then sees an IP address, as it does for all other peers.

use super::bucket::doubled;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout};

/// Attempts on one address before it is given up, which take more than nine minutes.
const ATTEMPTS_MAX: u32 = 60;

/// Pause after the first failed attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(250);

const PAUSE_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Due(Instant),
    /// Its name is looked up.
    Resolving,
    Dialling(ConnectionId),
    Connected,
    GivenUp,
}

#[derive(Clone, Debug)]
struct Join {
    address: Multiaddr,
    stage: Stage,
    attempts: u32,
}

impl Join {
    /// Counts a failed attempt. Returns the pause before the next one, if there is to be one.
    fn fail(&mut self, now: Instant) -> Option<Duration> {
        self.attempts += 1;
        let goes_on = self.attempts < ATTEMPTS_MAX;
        let pause = goes_on.then(|| doubled(PAUSE_MIN, PAUSE_MAX, self.attempts));
        self.stage = pause.map_or(Stage::GivenUp, |pause| Stage::Due(now + pause));
        pause
    }
}

/// The state of every address to join through.
#[derive(Clone, Debug)]
pub(super) struct Bootstrap {
    joins: Vec<Join>,
}

impl Bootstrap {
    /// All addresses are due at once.
    pub(super) fn new(addresses: Vec<Multiaddr>, now: Instant) -> Self {
        let join = |address| Join {
            address,
            stage: Stage::Due(now),
            attempts: 0,
        };
        Self {
            joins: addresses.into_iter().map(join).collect(),
        }
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let due = self.joins.iter().filter_map(|join| match join.stage {
            Stage::Due(at) => Some(at),
            _ => None,
        });
        due.min()
    }

    pub(super) fn due(&self, now: Instant) -> Vec<Multiaddr> {
        let due = |join: &&Join| matches!(join.stage, Stage::Due(at) if at <= now);
        self.joins
            .iter()
            .filter(due)
            .map(|join| join.address.clone())
            .collect()
    }

    /// Records that the name in an address is looked up.
    pub(super) fn resolving(&mut self, address: &Multiaddr) {
        self.set(address, Stage::Resolving);
    }

    /// The address to dial for one that was looked up: another one after each failure.
    pub(super) fn resolved(&self, address: &Multiaddr, found: &[Multiaddr]) -> Option<Multiaddr> {
        let join = self.joins.iter().find(|join| join.address == *address)?;
        let waits = join.stage == Stage::Resolving && !found.is_empty();
        waits.then(|| found[join.attempts as usize % found.len()].clone())
    }

    /// Records a lookup that failed. Returns the pause as [`Bootstrap::failed`] does, or nothing if the
    /// address was not looked up.
    pub(super) fn unresolved(
        &mut self,
        address: &Multiaddr,
        now: Instant,
    ) -> Option<Option<Duration>> {
        let mut joins = self.joins.iter_mut();
        let waits = |join: &&mut Join| join.address == *address && join.stage == Stage::Resolving;
        Some(joins.find(waits)?.fail(now))
    }

    /// Records that a dial of an address has begun.
    pub(super) fn dialling(&mut self, address: &Multiaddr, id: ConnectionId) {
        self.set(address, Stage::Dialling(id));
    }

    pub(super) fn already_connected(&mut self, address: &Multiaddr) {
        self.set(address, Stage::Connected);
    }

    /// Records a dial that succeeded.
    pub(super) fn connected(&mut self, id: ConnectionId) {
        if let Some(join) = self.dialled(id) {
            join.stage = Stage::Connected;
            join.attempts = 0;
        }
    }

    /// Records a dial that failed. Returns the address and the pause before the next attempt, which
    /// is `None` if the address is given up. Returns `None` if the dial was for no address to join.
    pub(super) fn failed(
        &mut self,
        id: ConnectionId,
        now: Instant,
    ) -> Option<(Multiaddr, Option<Duration>)> {
        let join = self.dialled(id)?;
        let pause = join.fail(now);
        Some((join.address.clone(), pause))
    }

    /// Makes every address due again, because no link is left.
    pub(super) fn alone(&mut self, now: Instant) {
        for join in &mut self.joins {
            if matches!(join.stage, Stage::Connected | Stage::GivenUp) {
                join.stage = Stage::Due(now + PAUSE_MIN);
                join.attempts = 0;
            }
        }
    }

    fn set(&mut self, address: &Multiaddr, stage: Stage) {
        if let Some(join) = self.joins.iter_mut().find(|join| join.address == *address) {
            join.stage = stage;
        }
    }

    fn dialled(&mut self, id: ConnectionId) -> Option<&mut Join> {
        self.joins
            .iter_mut()
            .find(|join| join.stage == Stage::Dialling(id))
    }
}

/// How long a lookup may take.
const LOOKUP_WAIT: Duration = Duration::from_secs(5);

/// Number of addresses of one name that are tried, one at each dial.
const FOUND_MAX: usize = 16;

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
    if found.is_empty() {
        return Err(format!("the name {name} has no address of the wanted kind"));
    }
    Ok(found)
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
    use crate::tests::assert_has;

    #[test]
    fn an_address_is_tried_with_growing_pauses_and_then_given_up() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(vec![address.clone()], now);
        let mut pauses = Vec::new();
        for attempt in 0.. {
            assert!(attempt < ATTEMPTS_MAX);
            let id = ConnectionId::new_unchecked(attempt as usize);
            bootstrap.dialling(&address, id);
            assert_eq!(bootstrap.next_at(), None);
            let (failed, pause) = bootstrap.failed(id, now).unwrap();
            assert_eq!(failed, address);
            let Some(pause) = pause else { break };
            assert_eq!(bootstrap.next_at(), Some(now + pause));
            pauses.push(pause);
        }
        assert_eq!(pauses.len() as u32, ATTEMPTS_MAX - 1);
        assert_eq!(pauses[0], PAUSE_MIN);
        assert_eq!(pauses[1], PAUSE_MIN * 2);
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        assert_eq!(bootstrap.next_at(), None);
        bootstrap.alone(now);
        assert_eq!(bootstrap.next_at(), Some(now + PAUSE_MIN));
    }

    #[test]
    fn a_name_is_looked_up_before_each_dial_and_its_addresses_take_turns() {
        let now = Instant::now();
        let name: Multiaddr = "/dns4/a/tcp/1".parse().unwrap();
        let found: Vec<Multiaddr> = ["/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1"]
            .map(|text| text.parse().unwrap())
            .into();
        let mut bootstrap = Bootstrap::new(vec![name.clone()], now);
        assert_eq!(bootstrap.resolved(&name, &found), None);
        for (attempt, at) in [(0, 0), (1, 1), (2, 0)] {
            bootstrap.resolving(&name);
            assert_eq!(bootstrap.next_at(), None);
            assert_eq!(bootstrap.resolved(&name, &found).as_ref(), found.get(at));
            let id = ConnectionId::new_unchecked(attempt);
            bootstrap.dialling(&name, id);
            assert_eq!(bootstrap.failed(id, now).unwrap().0, name);
        }
        assert_eq!(bootstrap.unresolved(&name, now), None);
        bootstrap.resolving(&name);
        assert_eq!(bootstrap.resolved(&name, &[]), None);
        assert_eq!(bootstrap.unresolved(&name, now), Some(Some(PAUSE_MIN * 8)));
        assert_eq!(bootstrap.next_at(), Some(now + PAUSE_MIN * 8));
    }

    #[test]
    fn a_connected_address_rests_until_the_peer_is_alone() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(vec![address.clone()], now);
        assert_eq!(bootstrap.due(now), std::slice::from_ref(&address));
        bootstrap.dialling(&address, ConnectionId::new_unchecked(1));
        bootstrap.connected(ConnectionId::new_unchecked(1));
        assert_eq!(bootstrap.next_at(), None);
        assert_eq!(bootstrap.failed(ConnectionId::new_unchecked(1), now), None);
        bootstrap.alone(now);
        assert!(bootstrap.next_at().is_some());
    }

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
        assert_has(&reason, "the name no-such-host.invalid ");
    }
}
