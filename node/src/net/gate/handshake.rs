//! The two ends of the handshake at the gate. Each runs in a task of its own, and says how far its connection
//! is, or why it did not pass.

use super::membership::Membership;
use super::news::{read, write};
use super::step::{GateError, Passed, Step};
use crate::net::streams::Internal;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use libp2p::Stream;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::wire::{WireVersion, WireVersions};
use murmurate_protocol::{Digest, PeerId};
use murmurate_trust::Chain;
use murmurate_trust::gate::{Message, answer, ask, same};
use murmurate_trust::limits::GATE_MESSAGE_MAX;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a connection may take to pass the gate.
pub(super) const GATE_WAIT: Duration = Duration::from_secs(5);

/// How long the other end may take to read why it is refused.
const VERDICT_WAIT: Duration = Duration::from_secs(1);

/// Bytes of the first message.
const ASK_MAX: usize = 64;

pub(in crate::net) struct End {
    pub(super) membership: Arc<Membership>,
    /// The versions of the wire that this end speaks.
    pub(super) wire: WireVersions,
    pub(super) network: mpsc::Sender<Internal>,
    pub(super) connection: ConnectionId,
    pub(super) peer: PeerId,
}

impl End {
    /// Runs the end that dialled, on a stream that is being opened.
    pub(super) async fn dial(self, opened: oneshot::Receiver<io::Result<Stream>>) {
        let passed = timeout(GATE_WAIT, self.asks(opened)).await;
        self.report(passed.unwrap_or(Err(GateError::Broken))).await;
    }

    /// Runs the end that was dialled.
    pub(super) async fn listen(self, stream: Stream) {
        let passed = timeout(GATE_WAIT, self.answers(stream)).await;
        self.report(passed.unwrap_or(Err(GateError::Broken))).await;
    }

    async fn asks(&self, opened: oneshot::Receiver<io::Result<Stream>>) -> Result<(), GateError> {
        let broken = |_| GateError::Broken;
        let opened = opened.await.map_err(|_| GateError::Broken)?;
        let mut stream = opened.map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => GateError::NoGate,
            _ => GateError::Broken,
        })?;
        let (membership, run) = (&self.membership, self.membership.run());
        let me = membership.me();
        let tag = ask(run, &me, &self.peer);
        write(&mut stream, &Message::Ask { tag })
            .await
            .map_err(broken)?;
        let (chain, theirs, wire) =
            match read(&mut stream, GATE_MESSAGE_MAX).await.map_err(broken)? {
                Message::Answer { tag, .. } if !same(tag, answer(run, &me, &self.peer)) => {
                    return Err(GateError::Stranger);
                }
                Message::Answer {
                    chain,
                    register,
                    wire,
                    ..
                } => (chain, register, wire),
                Message::Unknown => return Err(GateError::OtherRun),
                _ => return Err(GateError::Stranger),
            };
        let (_, fresh) = membership
            .admit(&chain, &self.peer)
            .map_err(GateError::Refuses)?;
        let wire = match self.shared(wire) {
            Ok(wire) => wire,
            // The other end finds the same, once it knows what this end speaks.
            Err(error) => return Err(refuse(&mut stream, self.proof(), error).await),
        };
        write(&mut stream, &self.proof()).await.map_err(broken)?;
        match read(&mut stream, GATE_MESSAGE_MAX).await.map_err(broken)? {
            Message::Verdict(Ok(())) => {}
            Message::Verdict(Err(refusal)) => return Err(GateError::Refused(refusal)),
            _ => return Err(GateError::Stranger),
        }
        self.admitted(chain, wire, (fresh, theirs)).await?;
        write(&mut stream, &Message::Ready).await.map_err(broken)?;
        self.tell(Step::Ready).await;
        // The other end has read everything, or is gone.
        let _ = stream.close().await;
        Ok(())
    }

    async fn answers(&self, mut stream: Stream) -> Result<(), GateError> {
        let broken = |_| GateError::Broken;
        let (membership, run) = (&self.membership, self.membership.run());
        let me = membership.me();
        let Message::Ask { tag } = read(&mut stream, ASK_MAX).await.map_err(broken)? else {
            return Err(GateError::Stranger);
        };
        if !same(tag, ask(run, &self.peer, &me)) {
            return Err(refuse(&mut stream, Message::Unknown, GateError::Stranger).await);
        }
        let own = Message::Answer {
            tag: answer(run, &self.peer, &me),
            chain: membership.chain().clone(),
            register: membership.register().digest(),
            wire: self.wire,
        };
        write(&mut stream, &own).await.map_err(broken)?;
        let proof = read(&mut stream, GATE_MESSAGE_MAX).await.map_err(broken)?;
        let Message::Proof {
            chain,
            register,
            wire,
        } = proof
        else {
            return Err(GateError::Stranger);
        };
        let fresh = match membership.admit(&chain, &self.peer) {
            Ok((_, fresh)) => fresh,
            Err(refusal) => {
                let verdict = Message::Verdict(Err(refusal));
                return Err(refuse(&mut stream, verdict, GateError::Refuses(refusal)).await);
            }
        };
        let wire = self.shared(wire)?;
        self.admitted(chain, wire, (fresh, register)).await?;
        write(&mut stream, &Message::Verdict(Ok(())))
            .await
            .map_err(broken)?;
        match read(&mut stream, GATE_MESSAGE_MAX).await.map_err(broken)? {
            Message::Ready => self.tell(Step::Ready).await,
            _ => return Err(GateError::Stranger),
        }
        Ok(())
    }

    fn proof(&self) -> Message {
        Message::Proof {
            chain: self.membership.chain().clone(),
            register: self.membership.register().digest(),
            wire: self.wire,
        }
    }

    /// The version of the wire to use with an end that speaks these.
    fn shared(&self, theirs: WireVersions) -> Result<WireVersion, GateError> {
        let ours = self.wire;
        let shared = ours.newest_shared(&theirs);
        shared.ok_or(GateError::OtherVersion { ours, theirs })
    }

    /// Waits until this end accepts the other's streams.
    async fn admitted(
        &self,
        chain: Chain,
        wire: WireVersion,
        (fresh, theirs): (bool, Digest),
    ) -> Result<(), GateError> {
        let differs = self.membership.register().digest() != theirs;
        let (one, first) = oneshot::channel();
        let (two, second) = oneshot::channel();
        self.tell(Step::Admitted {
            chain,
            wire,
            fresh,
            differs,
            heard: [one, two],
        })
        .await;
        let both = first.await.is_ok() && second.await.is_ok();
        both.then_some(()).ok_or(GateError::Broken)
    }

    async fn report(self, passed: Result<(), GateError>) {
        if let Err(error) = passed {
            self.tell(Step::Failed(error)).await;
        }
    }

    async fn tell(&self, step: Step) {
        let passed = Passed {
            connection: self.connection,
            step,
        };
        // The receiver is dropped only when the network has ended.
        let _ = self.network.send(Internal::Gate(passed)).await;
    }
}

/// Says why, and waits until the other end has read it.
async fn refuse(stream: &mut Stream, why: Message, error: GateError) -> GateError {
    let mut rest = [0u8; 1];
    let told = async {
        write(stream, &why).await?;
        stream.close().await?;
        stream.read(&mut rest).await
    };
    // Whether the other end has read it changes nothing here.
    let _ = timeout(VERDICT_WAIT, told).await;
    error
}
