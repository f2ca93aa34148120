//! The emulated link between the ends of a session.

use crate::net::{BenchError, FarTask, Hello, Tuning, Way};
use murmurate_net::emulate::{LinkSpec, NatKind, Relay, Seat};
use std::net::{IpAddr, SocketAddr};

const FAR_PORT: u16 = 4_100;

/// The near end's port in its first transfer. Each transfer uses the next port, because TCP blocks
/// a used pair of ports for a while.
const NEAR_PORT: u16 = 4_200;

/// The two ends, and the link between them.
pub(super) struct Network {
    relay: Relay,
    near: Seat,
    far: Seat,
    next_port: u16,
}

/// Bytes that the near end's UDP sockets sent into the link, and bytes that the link dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) offered: u64,
    pub(super) dropped: u64,
}

impl Network {
    pub(super) fn start(link: LinkSpec) -> Result<Self, BenchError> {
        let mut relay = Relay::start(1)?;
        let near = relay.add(NatKind::None, link)?;
        let far = relay.add(NatKind::None, link)?;
        Ok(Self {
            relay,
            near,
            far,
            next_port: NEAR_PORT,
        })
    }

    pub(super) fn far_task(&self, tuning: &Tuning) -> FarTask {
        FarTask {
            ip: self.far.inner.into(),
            port: FAR_PORT,
            tuning: tuning.clone(),
        }
    }

    /// Makes the far end reachable. Returns its address for the near end.
    pub(super) fn publish(&mut self, hello: &Hello) -> Result<IpAddr, BenchError> {
        for way in Way::ALL {
            let port = hello.port(way);
            match way {
                // These use the port of bulk connections.
                Way::Control => {}
                Way::Tls => {
                    self.relay.publish_tcp(self.far, FAR_PORT + FarTask::TLS)?;
                }
                Way::Quinn | Way::Bulk => {
                    self.relay.publish_udp(self.far, port)?;
                }
                Way::TcpNoise | Way::Tcp => {
                    self.relay.publish_tcp(self.far, port)?;
                }
            }
        }
        Ok(self.far.public.into())
    }

    /// The address that the near end must bind for its next transfer.
    pub(super) fn near_address(&mut self) -> SocketAddr {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(NEAR_PORT);
        self.relay.dials_from(self.near, port);
        SocketAddr::new(self.near.inner.into(), port)
    }

    /// Traffic from the near to the far end so far.
    pub(super) fn passed(&self) -> Passed {
        let (up, down) = (
            self.relay.counters(self.near).up,
            self.relay.counters(self.far).down,
        );
        let dropped = [
            up.dropped_queue,
            up.dropped_loss,
            up.dropped_size,
            down.dropped_queue,
            down.dropped_loss,
            down.dropped_size,
        ];
        Passed {
            offered: up.offered.bytes,
            dropped: dropped.iter().map(|tally| tally.bytes).sum(),
        }
    }

    /// Packets that the kernel dropped before the emulator read them.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.relay.kernel_drops().relay
    }
}
