//! A UDP socket that sends batches of large packets, and little to addresses that may be forged.
//!
//! quinn hands ten packets at a time to its socket, and the system takes at most 64 KiB at once.
//! Ten jumbo packets are more. The system refuses them, quinn's socket reports success, and quinn
//! takes the packets for lost on the way and falls back to small ones. This socket splits such a
//! batch into parts that the system takes.

use crate::quic::flights::Flights;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// The largest UDP payload that both IPv4 and IPv6 carry, and so the most bytes of one send.
pub(super) const PAYLOAD_MAX: u16 = 65_487;

/// Batches of which a part has left. A connection has at most one; an older one that is forgotten
/// is sent again from its start, and the remote ignores the packets that it has.
const PARTIAL_MAX: usize = 64;

/// Bytes that identify a batch: the start of its first packet, which is encrypted.
const MARK_BYTES: usize = 32;

/// A batch whose first part has left, when the system took no more.
struct Partial {
    to: SocketAddr,
    mark: [u8; MARK_BYTES],
    sent: usize,
}

pub(super) struct Batches {
    inner: Arc<dyn AsyncUdpSocket>,
    /// The most packets of one datagram that the system joined.
    receive_segments: usize,
    partial: Mutex<VecDeque<Partial>>,
    flights: Arc<Flights>,
}

impl Batches {
    /// Wraps a socket whose packets have at most `payload_max` bytes.
    pub(super) fn new(
        inner: Arc<dyn AsyncUdpSocket>,
        payload_max: u16,
        flights: Arc<Flights>,
    ) -> Self {
        // The system joins at most 64 KiB, so a buffer for that is enough.
        let joined = usize::from(u16::MAX).div_ceil(usize::from(payload_max.max(1)));
        Self {
            receive_segments: inner.max_receive_segments().min(joined).max(1),
            inner,
            partial: Mutex::default(),
            flights,
        }
    }

    /// Sends the parts of a batch, from the one at which the last attempt ended.
    fn send_parts(&self, batch: &Transmit<'_>, segment: usize) -> io::Result<()> {
        let whole = batch.contents.len();
        let most = (usize::from(PAYLOAD_MAX) / segment).max(1) * segment;
        let (to, mark) = (batch.destination, mark(batch.contents));
        let mut sent = self.resumed(to, &mark).unwrap_or(0);
        while sent < whole {
            let part = batch.contents.get(sent..whole.min(sent + most));
            let contents = part.unwrap_or_default();
            let part = Transmit {
                contents,
                segment_size: (contents.len() > segment).then_some(segment),
                ..*batch
            };
            match self.inner.try_send(&part) {
                Ok(()) => sent += contents.len(),
                Err(error) => {
                    if error.kind() == io::ErrorKind::WouldBlock && sent > 0 {
                        self.interrupted(Partial { to, mark, sent });
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn resumed(&self, to: SocketAddr, mark: &[u8; MARK_BYTES]) -> Option<usize> {
        let mut partial = self.partial();
        let at = partial.iter().position(|p| p.to == to && p.mark == *mark)?;
        partial.remove(at).map(|found| found.sent)
    }

    fn interrupted(&self, batch: Partial) {
        let mut partial = self.partial();
        if partial.len() >= PARTIAL_MAX {
            partial.pop_front();
        }
        partial.push_back(batch);
    }

    fn partial(&self) -> std::sync::MutexGuard<'_, VecDeque<Partial>> {
        // Each change is one push or one removal.
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(contents: &[u8]) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    for (to, from) in mark.iter_mut().zip(contents) {
        *to = *from;
    }
    mark
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for Batches {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let (to, whole) = (transmit.destination, transmit.contents.len());
        let segment = transmit.segment_size.unwrap_or(whole);
        let may = self.flights.may_send(to, whole, segment);
        if may == 0 && whole > 0 {
            // As if it was lost on the way.
            self.flights.keep_back(whole);
            return Ok(());
        }
        let transmit = &Transmit {
            contents: transmit.contents.get(..may).unwrap_or_default(),
            segment_size: transmit.segment_size.filter(|segment| may > *segment),
            ..*transmit
        };
        let sent = match transmit.segment_size {
            Some(segment) if segment > 0 && transmit.contents.len() > usize::from(PAYLOAD_MAX) => {
                self.send_parts(transmit, segment)
            }
            _ => self.inner.try_send(transmit),
        };
        if sent.is_ok() {
            self.flights.sent(to, may);
            self.flights.keep_back(whole - may);
        }
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (packet, meta) in bufs.iter().zip(meta.iter()).take(count) {
            let first = packet.first().copied().unwrap_or_default();
            self.flights.received(meta.addr, first, meta.len);
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.receive_segments
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that takes some sends and then none.
    #[derive(Debug, Default)]
    struct Recorder {
        taken: Mutex<Vec<(Vec<u8>, Option<usize>)>>,
        room: Mutex<usize>,
    }

    impl AsyncUdpSocket for Recorder {
        fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
            unreachable!("the test polls nothing")
        }

        fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
            let mut room = self.room.lock().unwrap();
            if *room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            *room -= 1;
            let part = (transmit.contents.to_vec(), transmit.segment_size);
            self.taken.lock().unwrap().push(part);
            Ok(())
        }

        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            _: &mut [IoSliceMut<'_>],
            _: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(([127, 0, 0, 1], 1).into())
        }

        fn max_receive_segments(&self) -> usize {
            64
        }
    }

    fn batch(contents: &[u8], segment: usize) -> Transmit<'_> {
        Transmit {
            destination: ([127, 0, 0, 1], 2).into(),
            ecn: None,
            contents,
            segment_size: Some(segment),
            src_ip: None,
        }
    }

    #[test]
    fn a_batch_of_jumbo_packets_leaves_in_parts_and_each_packet_once() {
        let inner = Arc::new(Recorder::default());
        let socket = Batches::new(Arc::clone(&inner) as Arc<_>, 8932, Arc::default());
        let bytes: Vec<u8> = (0..9 * 8932 + 77).map(|i| (i % 251) as u8).collect();
        let others: Vec<u8> = bytes.iter().rev().copied().collect();
        *inner.room.lock().unwrap() = 1;
        let blocked = socket.try_send(&batch(&bytes, 8932)).unwrap_err();
        assert_eq!(blocked.kind(), io::ErrorKind::WouldBlock);
        // Another connection sends meanwhile.
        *inner.room.lock().unwrap() = 2;
        socket.try_send(&batch(&others, 8932)).unwrap();
        *inner.room.lock().unwrap() = 9;
        socket.try_send(&batch(&bytes, 8932)).unwrap();
        let taken = std::mem::take(&mut *inner.taken.lock().unwrap());
        let sizes: Vec<usize> = taken.iter().map(|(part, _)| part.len()).collect();
        let (first, rest) = (7 * 8932, 2 * 8932 + 77);
        assert_eq!(sizes, [first, first, rest, rest]);
        assert_eq!([taken[0].0.clone(), taken[3].0.clone()].concat(), bytes);
        assert_eq!([taken[1].0.clone(), taken[2].0.clone()].concat(), others);
        assert!(taken.iter().all(|(_, segment)| *segment == Some(8932)));
    }

    #[test]
    fn one_packet_is_no_batch_and_small_batches_stay_whole() {
        let inner = Arc::new(Recorder::default());
        let socket = Batches::new(Arc::clone(&inner) as Arc<_>, PAYLOAD_MAX, Arc::default());
        *inner.room.lock().unwrap() = 9;
        socket.try_send(&batch(&vec![1; 120_000], 60_000)).unwrap();
        socket.try_send(&batch(&vec![1; 14_520], 1452)).unwrap();
        let taken = std::mem::take(&mut *inner.taken.lock().unwrap());
        let shapes: Vec<_> = taken.iter().map(|(part, s)| (part.len(), *s)).collect();
        assert_eq!(
            shapes,
            [(60_000, None), (60_000, None), (14_520, Some(1452))]
        );
        assert_eq!(socket.max_receive_segments(), 2);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let inner = Arc::new(Recorder::default());
        let socket = Batches::new(Arc::clone(&inner) as Arc<_>, 60_000, Arc::default());
        for first in 0..=255 {
            *inner.room.lock().unwrap() = 1;
            let bytes = vec![first; 120_000];
            assert!(socket.try_send(&batch(&bytes, 60_000)).is_err());
        }
        assert_eq!(socket.partial().len(), PARTIAL_MAX);
    }
}
