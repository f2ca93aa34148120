//! The streams of vitals: one in each direction of a link, with length-prefixed messages.

use super::board::{Queue, VitalsBoard};
use crate::net::NetEvent;
use crate::net::control::{LinkEnd, read_prefixed};
use crate::net::streams::Kind;
use futures::io::AsyncWriteExt;
use libp2p::Stream;
use murmurate_protocol::PeerId;
use murmurate_protocol::limits::VITALS_MESSAGE_BYTES_MAX;
use murmurate_protocol::vitals::VitalsMessage;
use murmurate_protocol::wire::WireError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// How long the other end may take with one message.
const MESSAGE_WAIT: Duration = Duration::from_secs(10);

/// Pause before a broken stream is opened again.
const OPEN_PAUSE: Duration = Duration::from_secs(5);

/// Streams of one peer that are read at the same time: the current one and one that it replaces.
const READERS_MAX: usize = 2;

/// What a list costs more than its bytes, because the answer is longer.
const LIST_COST: f64 = 24_576.0;

/// What vitals cost more than their bytes: their signature may be checked.
const VITALS_COST: f64 = 512.0;

#[derive(Debug, Default)]
pub(in crate::net) struct VitalsStreams {
    /// Tells the writer that another connection carries the link.
    moved: Arc<Notify>,
    writer: Option<AbortHandle>,
    readers: Vec<AbortHandle>,
}

impl VitalsStreams {
    pub(in crate::net) fn moved(&self) -> Arc<Notify> {
        Arc::clone(&self.moved)
    }

    pub(in crate::net) fn writes(&mut self, writer: AbortHandle) {
        if let Some(before) = self.writer.replace(writer) {
            before.abort();
        }
    }

    pub(in crate::net) fn reads(&mut self, reader: AbortHandle) {
        self.readers.retain(|task| !task.is_finished());
        if self.readers.len() >= READERS_MAX {
            self.readers.remove(0).abort();
        }
        self.readers.push(reader);
    }

    /// Another connection carries the link from now on.
    pub(in crate::net) fn move_on(&self) {
        self.moved.notify_one();
    }
}

impl Drop for VitalsStreams {
    fn drop(&mut self) {
        self.writer
            .iter()
            .chain(&self.readers)
            .for_each(AbortHandle::abort);
    }
}

/// Writes the queued messages to a peer until the queue is closed. A peer that does not speak the protocol
/// is left alone.
pub(in crate::net) async fn write(
    end: LinkEnd,
    mut queue: Queue,
    board: VitalsBoard,
    moved: Arc<Notify>,
) {
    loop {
        // A stream is opened only for something to say.
        let Some(first) = queue.recv().await else {
            return;
        };
        let written = match end.opener.open(end.theirs, Kind::Vitals).await {
            Ok(mut stream) => write_all(&mut stream, first, &mut queue, &board, &moved).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
            Err(error) => {
                tracing::debug!(peer = %end.peer, %error, "a stream of vitals broke");
                sleep(OPEN_PAUSE).await;
            }
        }
    }
}

/// Writes until the queue is closed or the link moves to another connection.
async fn write_all(
    stream: &mut Stream,
    first: Arc<[u8]>,
    queue: &mut Queue,
    board: &VitalsBoard,
    moved: &Notify,
) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(message) = next {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        timeout(MESSAGE_WAIT, async {
            stream.write_all(&length.to_le_bytes()).await?;
            stream.write_all(&message).await?;
            stream.flush().await
        })
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        board.sent(4 + message.len());
        next = tokio::select! {
            message = queue.recv() => message,
            () = moved.notified() => None,
        };
    }
    let _ = timeout(MESSAGE_WAIT, stream.close()).await;
    Ok(())
}

/// Reads messages from a stream that the peer opened, until it ends or breaks a rule.
pub(in crate::net) async fn read(
    from: PeerId,
    mut stream: Stream,
    board: VitalsBoard,
    events: mpsc::Sender<NetEvent>,
) {
    loop {
        let taken = match read_prefixed(&mut stream, VITALS_MESSAGE_BYTES_MAX).await {
            Ok(Some(bytes)) => take(from, &bytes, &board).await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            // The receiver is dropped only when the network has ended.
            let _ = events.send(NetEvent::Malformed { from, error }).await;
            return;
        }
    }
}

async fn take(from: PeerId, bytes: &[u8], board: &VitalsBoard) -> Result<(), WireError> {
    board.received(4 + bytes.len());
    let message = VitalsMessage::decode(bytes)?;
    let cost = bytes.len() as f64 + cost(&message);
    board.budget().spend(from, cost).await;
    board.take(from, message)
}

fn cost(message: &VitalsMessage) -> f64 {
    match message {
        VitalsMessage::Vitals(all) => VITALS_COST * all.len() as f64,
        VitalsMessage::Known(_) | VitalsMessage::Wanted(_) => LIST_COST,
    }
}
