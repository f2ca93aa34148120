//! Messages of the ends on a channel: the order that begins it, and the answer to a bulk order.

use crate::net::channel::{Receiving, Sending};
use bytes::Bytes;
use std::io;
use std::time::Duration;

/// Size of an order in bytes: kind, number of bytes, time limit.
const ORDER_BYTES: usize = 17;
const ANSWER_BYTES: usize = 16;

const ECHO: u8 = b'E';
const BULK: u8 = b'B';

/// The longest time limit that a far end accepts.
const LIMIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// The far end's task on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Send every message back.
    Echo,
    /// Read and discard `bytes` for at most `limit`, then answer.
    Bulk { bytes: u64, limit: Duration },
}

impl Order {
    fn encode(self) -> [u8; ORDER_BYTES] {
        let (role, bytes, limit) = match self {
            Self::Echo => (ECHO, 0, Duration::ZERO),
            Self::Bulk { bytes, limit } => (BULK, bytes, limit),
        };
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let mut out = [role; ORDER_BYTES];
        out[1..9].copy_from_slice(&bytes.to_le_bytes());
        out[9..].copy_from_slice(&millis.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; ORDER_BYTES]) -> io::Result<Self> {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        match bytes[0] {
            ECHO => Ok(Self::Echo),
            BULK => Ok(Self::Bulk {
                bytes: number(1),
                limit: Duration::from_millis(number(9)).min(LIMIT_MAX),
            }),
            other => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("order {other} is unknown"),
            )),
        }
    }

    pub(super) async fn send(self, to: &mut Sending) -> io::Result<()> {
        to.write(Bytes::copy_from_slice(&self.encode())).await?;
        to.flush().await
    }

    pub(super) async fn receive(from: &mut Receiving) -> io::Result<Self> {
        let mut bytes = [0; ORDER_BYTES];
        from.exact(&mut bytes).await?;
        Self::decode(&bytes)
    }
}

/// The result of a bulk order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    /// Bytes that arrived within the time limit.
    pub(super) bytes: u64,
    /// CPU seconds of the far end during the order.
    pub(super) cpu_s: f64,
}

impl Answer {
    pub(super) async fn send(self, to: &mut Sending) -> io::Result<()> {
        let mut out = [0; ANSWER_BYTES];
        out[..8].copy_from_slice(&self.bytes.to_le_bytes());
        out[8..].copy_from_slice(&self.cpu_s.to_le_bytes());
        to.write(Bytes::copy_from_slice(&out)).await?;
        to.flush().await
    }

    pub(super) async fn receive(from: &mut Receiving) -> io::Result<Self> {
        let (mut bytes, mut cpu) = ([0; 8], [0; 8]);
        from.exact(&mut bytes).await?;
        from.exact(&mut cpu).await?;
        Ok(Self {
            bytes: u64::from_le_bytes(bytes),
            cpu_s: f64::from_le_bytes(cpu),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written_and_bounded() {
        for order in [
            Order::Echo,
            Order::Bulk {
                bytes: 400_000_000,
                limit: Duration::from_secs(60),
            },
        ] {
            assert_eq!(Order::decode(&order.encode()).unwrap(), order);
        }
        let greedy = Order::Bulk {
            bytes: u64::MAX,
            limit: Duration::MAX,
        };
        let Order::Bulk { limit, .. } = Order::decode(&greedy.encode()).unwrap() else {
            panic!("a bulk order is one");
        };
        assert_eq!(limit, LIMIT_MAX);
        let error = Order::decode(&[0; ORDER_BYTES]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
