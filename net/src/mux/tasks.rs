//! The two tasks of a session: one writes frames, one reads them.

use crate::mux::MuxError;
use crate::mux::frame::{HEADER_BYTES, Header, Kind};
use crate::mux::shared::Shared;
use crate::mux::state::Frame;
use bytes::BytesMut;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Bytes that are read at once, and stored as one chunk.
const CHUNK_BYTES: usize = 256 << 10;

/// Writes frames until the session ends.
pub(super) async fn write<W>(shared: Arc<Shared>, mut to: W, patience: Duration)
where
    W: AsyncWrite + Unpin,
{
    loop {
        let next = {
            let mut state = shared.state();
            if state.ended().is_some() {
                break;
            }
            state.next_frame()
        };
        let written = match next {
            Some(frame) => timeout(patience, write_frame(&shared, &mut to, frame)).await,
            None => match timeout(patience, to.flush()).await {
                Ok(Ok(())) => {
                    shared.work.notified().await;
                    continue;
                }
                other => other,
            },
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => shared.end(error.into()),
            Err(_) => shared.end(MuxError::Stalled(patience)),
        }
    }
    // The other end may be gone.
    let _ = timeout(patience, to.shutdown()).await;
}

async fn write_frame<W>(shared: &Shared, to: &mut W, frame: Frame) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    to.write_all(&frame.header.encode()).await?;
    for piece in &frame.data {
        to.write_all(piece).await?;
    }
    let data: usize = frame.data.iter().map(bytes::Bytes::len).sum();
    let bytes = (HEADER_BYTES + data) as u64;
    shared.sent.fetch_add(bytes, Ordering::Relaxed);
    Ok(())
}

/// Reads frames until the session ends.
pub(super) async fn read<R>(shared: Arc<Shared>, mut from: R, patience: Duration)
where
    R: AsyncRead + Unpin,
{
    let reading = async {
        loop {
            read_frame(&shared, &mut from, patience).await?;
        }
    };
    // Ends also if this end closes the session while the remote is silent.
    let ended: Result<(), MuxError> = tokio::select! {
        ended = reading => ended,
        () = shared.over() => Ok(()),
    };
    if let Err(why) = ended {
        shared.end(why);
    }
}

async fn read_frame<R>(shared: &Shared, from: &mut R, patience: Duration) -> Result<(), MuxError>
where
    R: AsyncRead + Unpin,
{
    let stalled = |_| MuxError::Stalled(patience);
    let mut bytes = [0; HEADER_BYTES];
    // Between frames the remote may be silent.
    let first = from.read(&mut bytes).await?;
    if first == 0 {
        return Err(MuxError::Ended);
    }
    let rest = bytes.get_mut(first..).unwrap_or_default();
    timeout(patience, from.read_exact(rest))
        .await
        .map_err(stalled)??;
    let header = Header::decode(bytes)?;
    shared
        .received
        .fetch_add(HEADER_BYTES as u64, Ordering::Relaxed);
    shared.state().on_header(header)?;
    match header.kind {
        Kind::Data => {}
        Kind::Credit | Kind::Stop => {
            shared.work.notify_one();
            return Ok(());
        }
        Kind::End | Kind::Reset => return Ok(()),
    }
    let mut left = header.number as usize;
    while left > 0 {
        shared.room_for_more().await?;
        let mut chunk = BytesMut::with_capacity(left.min(CHUNK_BYTES));
        while chunk.len() < chunk.capacity().min(left) {
            let room = chunk.capacity().min(left) - chunk.len();
            let mut some = (&mut *from).take(room as u64);
            let read = timeout(patience, some.read_buf(&mut chunk)).await;
            if read.map_err(stalled)?? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
        left -= chunk.len();
        shared
            .received
            .fetch_add(chunk.len() as u64, Ordering::Relaxed);
        shared.state().on_data(header.stream, chunk.freeze());
    }
    Ok(())
}
