//! Messages at the gate: each has its length before it.

use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use murmurate_trust::gate::Message;
use murmurate_trust::limits::NEWS_BYTES_MAX;
use std::io;

/// Writes one message.
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
