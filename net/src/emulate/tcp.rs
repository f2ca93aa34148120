//! TCP over emulated links. The relay terminates every connection and carries its bytes over the
//! same links as datagrams.
//!
//! Between daemons without a link, a new connection gets no answer, and an open one ends with its next
//! bytes.
//!
//! It emulates the rate (shared with datagrams, headers included), the delay, a queue that holds
//! the sender back instead of dropping, and a round trip before the first byte. A lost segment
//! delays all later bytes of the connection by a round trip. It does not emulate the senders'
//! congestion control, which sees only the loopback, so TCP performs better here than on a real
//! lossy link.

use super::seats::{Seat, SeatId};
use super::shared::Shared;
use bytes::{Bytes, BytesMut};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Connections to one port at the same time. Further ones are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// Bytes read at a time: 2.6 ms at 50 Mbit/s.
const CHUNK_BYTES: usize = 16 << 10;

/// Bytes in transit in one direction of a connection: enough for 1.3 Gbit/s with a delay of 50 ms.
const PIPE_BYTES: usize = 8 << 20;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// How long a connection between daemons without a link is kept without an answer.
const SILENCE: Duration = Duration::from_secs(60);

/// Listens at an outer address. A daemon may bind the same port of all addresses.
pub(super) fn listen(address: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(SocketAddr::V4(address))?;
    socket.listen(BACKLOG)
}

/// Accepts connections to a daemon's port until the task is aborted, which also ends the
/// connections.
pub(super) async fn accept(listener: TcpListener, seat: Seat, port: u16, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let inner = SocketAddrV4::new(seat.inner, port);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let dialer = shared.dialer(from);
                    match dialer {
                        Some(dialer) if connections.len() < CONNECTIONS_MAX && dialer != seat.id => {
                            connections.spawn(carry(stream, dialer, seat.id, inner, Arc::clone(&shared)));
                        }
                        Some(_) => {}
                        None => shared.stranger(),
                    }
                }
                Err(error) => tracing::debug!(%error, "a connection could not be accepted"),
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Carries one connection from `dialer` to the daemon `listener` at `inner`.
async fn carry(
    stream: TcpStream,
    dialer: SeatId,
    listener: SeatId,
    inner: SocketAddrV4,
    shared: Arc<Shared>,
) {
    if shared.parts(dialer, listener) {
        return sleep(SILENCE).await;
    }
    let (rtt, public) = {
        let state = shared.lock();
        let rtt = state.fabric.rtt(dialer, listener);
        (rtt, state.fabric.public(dialer))
    };
    // The dialer's system regards the connection as open, so the first byte waits instead.
    sleep(rtt).await;
    let connected = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::V4(SocketAddrV4::new(public, 0)))?;
        let onward = socket.connect(SocketAddr::V4(inner)).await?;
        stream.set_nodelay(true)?;
        onward.set_nodelay(true)?;
        let seen = onward.local_addr()?;
        io::Result::Ok((onward, seen))
    };
    let (onward, SocketAddr::V4(seen)) = (match connected.await {
        Ok(both) => both,
        Err(error) => {
            tracing::debug!(%inner, %error, "a connection could not be carried on");
            return;
        }
    }) else {
        return;
    };
    let (from_dialer, to_dialer) = stream.into_split();
    let (from_listener, to_listener) = onward.into_split();
    let there = Way {
        from: seen,
        sender: dialer,
        receiver: listener,
    };
    let back = Way {
        from: inner,
        sender: listener,
        receiver: dialer,
    };
    tokio::join!(
        pump(from_dialer, to_listener, there, &shared),
        pump(from_listener, to_dialer, back, &shared),
    );
}

#[derive(Clone, Copy)]
struct Way {
    from: SocketAddrV4,
    sender: SeatId,
    receiver: SeatId,
}

/// Carries one direction until it ends, or fails at either end.
async fn pump(reader: OwnedReadHalf, writer: OwnedWriteHalf, way: Way, shared: &Shared) {
    let (due, inbox) = mpsc::unbounded_channel();
    let pipe = {
        let mut state = shared.lock();
        let pipe = state.pipes.next;
        state.pipes.next += 1;
        state.pipes.open.insert(pipe, due);
        state.fabric.open_pipe(pipe);
        pipe
    };
    let room = Semaphore::new(PIPE_BYTES);
    tokio::join!(
        read(reader, way, pipe, &room, shared),
        write(writer, inbox, &room)
    );
    let mut state = shared.lock();
    state.pipes.open.remove(&pipe);
    state.fabric.close_pipe(pipe);
}

async fn read(mut reader: OwnedReadHalf, way: Way, pipe: u64, room: &Semaphore, shared: &Shared) {
    let mut buffer = BytesMut::new();
    loop {
        let wait = {
            let state = shared.lock();
            state
                .fabric
                .congestion(shared.now(), way.sender, way.receiver)
        };
        if !wait.is_zero() {
            // This may sleep up to a millisecond too long, which is small compared with the queue.
            sleep(wait).await;
            continue;
        }
        buffer.reserve(CHUNK_BYTES);
        // A reset ends the direction, as an end of stream does.
        let count = reader.read_buf(&mut buffer).await.unwrap_or(0);
        let bytes = buffer.split().freeze();
        if shared.parts(way.sender, way.receiver) {
            return shared.lock().pipes.hand_over(pipe, Bytes::new());
        }
        // The channel is closed if the other end is gone; the remaining bytes have no reader.
        let Ok(permits) = room
            .acquire_many(u32::try_from(count).unwrap_or(u32::MAX))
            .await
        else {
            return;
        };
        permits.forget();
        let mut state = shared.lock();
        let now = shared.now();
        let (sender, receiver) = (way.sender, way.receiver);
        state
            .fabric
            .offer_chunk(now, sender, receiver, way.from, (pipe, bytes));
        shared.wake(&state);
        if count == 0 {
            return;
        }
    }
}

async fn write(
    mut writer: OwnedWriteHalf,
    mut inbox: mpsc::UnboundedReceiver<Bytes>,
    room: &Semaphore,
) {
    while let Some(bytes) = inbox.recv().await {
        let ended = bytes.is_empty();
        let written = if ended {
            writer.shutdown().await
        } else {
            writer.write_all(&bytes).await
        };
        if ended || written.is_err() {
            break;
        }
        room.add_permits(bytes.len());
    }
    room.close();
}
