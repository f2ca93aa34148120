//! News of members, revocations and directives between members, on streams of their own.

use super::membership::Membership;
use crate::net::bucket::Budget;
use crate::net::streams::{Internal, Kind, Opener};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{Stream, identity};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::WireVersion;
use murmurate_trust::News;
use murmurate_trust::gate::Message;
use murmurate_trust::limits::{MEMBERS_MAX, NEWS_BYTES_MAX, NEWS_ITEMS_MAX, REVOCATIONS_MAX};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Messages on one stream: a whole register.
const MESSAGES_MAX: usize = (2 * MEMBERS_MAX + REVOCATIONS_MAX) / NEWS_ITEMS_MAX + 4;

/// How long the other end may take with one message.
const MESSAGE_WAIT: Duration = Duration::from_secs(10);

/// Bytes of news that one peer may send in a burst, and per second after that: each certificate
/// costs a check of signatures.
const BURST_BYTES: u32 = 1 << 20;
const BYTES_PER_SECOND: u32 = 128 << 10;

/// Cost of a message in addition to its bytes, so that empty ones are also limited.
const MESSAGE_COST: f64 = 512.0;

pub(super) fn budget() -> Budget {
    Budget::new(BURST_BYTES, BYTES_PER_SECOND)
}

/// Sends news to a linked peer, as far as it can read them. The next register that differs contains lost ones.
pub(super) async fn send(
    opener: Opener,
    (to, wire): (identity::PeerId, WireVersion),
    news: Vec<News>,
) {
    let Ok(mut stream) = opener.open(to, Kind::Gate).await else {
        return;
    };
    let news = news.into_iter().map(|news| news.within(wire));
    for message in news.flat_map(News::messages) {
        match timeout(MESSAGE_WAIT, write(&mut stream, &message)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
    let _ = timeout(MESSAGE_WAIT, stream.close()).await;
}

/// Reads the news that a member sends, and passes on the new part. It ends with the first lie.
pub(super) async fn receive(
    mut stream: Stream,
    from: PeerId,
    (membership, budget): (Arc<Membership>, Budget),
    network: mpsc::Sender<Internal>,
) {
    for _ in 0..MESSAGES_MAX {
        let message = timeout(MESSAGE_WAIT, read(&mut stream, NEWS_BYTES_MAX)).await;
        let Ok(Ok(message)) = message else {
            break;
        };
        let bytes = message.encode().len();
        budget.spend(from, bytes as f64 + MESSAGE_COST).await;
        let Some(news) = message.news() else {
            break;
        };
        let learned = membership.learn(news, &from);
        let slanders = learned.slanders;
        if !learned.is_nothing() {
            let learned = Internal::Learned { from, learned };
            if network.send(learned).await.is_err() {
                return;
            }
        }
        if slanders {
            break;
        }
    }
    // The receiver is dropped only when the network has ended.
    let _ = network.send(Internal::NewsRead { from }).await;
}

pub(in crate::net) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &Message,
) -> io::Result<()> {
    let bytes = message.encode();
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.flush().await
}

/// Reads one message of at most `max` bytes.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin), max: usize) -> io::Result<Message> {
    let mut prefix = [0u8; 4];
    stream.read_exact(&mut prefix).await?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > max.min(NEWS_BYTES_MAX) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0u8; length];
    stream.read_exact(&mut bytes).await?;
    Message::decode(&bytes).map_err(io::Error::other)
}
