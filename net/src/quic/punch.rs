//! Hole punching for DCUtR: the listening side opens its NAT for the dialling side.
//!
//! Both sides know when to begin. One side dials. The other side sends packets of random bytes to
//! the dialler's address, so that its own NAT admits the dial, until the dialler has connected.

use crate::quic::error::Error;
use crate::quic::ids::random;
use crate::quic::muxer::Muxer;
use crate::quic::port::Port;
use libp2p::PeerId;
use rand_core::Rng;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

const PACKET: usize = 64;

/// Range of the pause between packets, in milliseconds. Each pause is random, so that the packets
/// of two sides do not keep missing each other.
const PAUSE_MS: std::ops::Range<u64> = 10..200;

pub(super) struct Punches {
    max: usize,
    attempts: Mutex<Vec<Attempt>>,
}

struct Attempt {
    to: SocketAddr,
    peer: PeerId,
    through: oneshot::Sender<Muxer>,
}

impl Punches {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            attempts: Mutex::default(),
        })
    }

    fn attempts(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for `peer` from address `to`.
    pub(super) fn begin(self: &Arc<Self>, to: SocketAddr, peer: PeerId) -> Result<Punch, Error> {
        let mut attempts = self.attempts();
        attempts.retain(|attempt| !attempt.through.is_closed());
        let under_way = attempts.iter().any(|a| a.to == to && a.peer == peer);
        if under_way || attempts.len() >= self.max {
            return Err(Error::PunchBusy(to));
        }
        let (through, arrives) = oneshot::channel();
        attempts.push(Attempt { to, peer, through });
        Ok(Punch { to, peer, arrives })
    }

    /// Passes an inbound connection to the hole punch that it came through, or returns it if there
    /// is none. A NAT may use another port for the peer than expected, so any punch for this peer
    /// will do.
    pub(super) fn deliver(&self, from: SocketAddr, peer: PeerId, muxer: Muxer) -> Option<Muxer> {
        let mut attempts = self.attempts();
        attempts.retain(|attempt| !attempt.through.is_closed());
        let exact = attempts.iter().position(|a| a.peer == peer && a.to == from);
        let at = exact.or_else(|| attempts.iter().position(|a| a.peer == peer));
        let Some(at) = at else {
            return Some(muxer);
        };
        let attempt = attempts.swap_remove(at);
        attempt.through.send(muxer).err()
    }
}

pub(super) struct Punch {
    to: SocketAddr,
    peer: PeerId,
    arrives: oneshot::Receiver<Muxer>,
}

impl Punch {
    /// Keeps the hole open until the peer has connected or the time is up.
    pub(super) async fn keep_open(
        mut self,
        port: Arc<Port>,
        wait: Duration,
    ) -> Result<(PeerId, Muxer), Error> {
        let end = Instant::now() + wait;
        let mut random = random();
        let mut packet = [0; PACKET];
        let late = || Error::PunchTimeout {
            addr: self.to,
            after: wait,
        };
        loop {
            random.fill_bytes(&mut packet);
            port.send_raw(&packet, self.to)
                .map_err(|source| Error::socket(port.local, source))?;
            let span = PAUSE_MS.end - PAUSE_MS.start;
            let pause = Duration::from_millis(PAUSE_MS.start + random.next_u64() % span);
            tokio::select! {
                came = timeout_at(end, &mut self.arrives) => {
                    return match came {
                        Ok(Ok(muxer)) => Ok((self.peer, muxer)),
                        Ok(Err(_)) => Err(Error::Closed),
                        Err(_) => Err(late()),
                    };
                }
                () = sleep(pause) => {}
            }
        }
    }
}
