//! Codes that tell the remote why a connection was closed. `error` has the errors.

use quinn::{ConnectionError, VarInt};

/// Application error codes with which an endpoint closes connections. The numbers are libp2p's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCode {
    /// The connection is no longer needed.
    Done,
    /// More connections than [`Limits`](super::Limits) allow.
    TooMany,
    /// The remote violated the protocol.
    Violation,
    /// The endpoint is shutting down.
    Shutdown,
    /// [`Admission`](super::Admission) refused the peer.
    Denied,
}

impl CloseCode {
    const ALL: [Self; 5] = [
        Self::Done,
        Self::TooMany,
        Self::Violation,
        Self::Shutdown,
        Self::Denied,
    ];

    /// The code's number on the wire.
    #[must_use]
    pub const fn code(self) -> VarInt {
        VarInt::from_u32(match self {
            Self::Done => 0,
            Self::TooMany => 2,
            Self::Violation => 4,
            Self::Shutdown => 7,
            Self::Denied => 8,
        })
    }

    /// The code with which the *remote* closed a connection, if it is one of these.
    #[must_use]
    pub fn of(error: &ConnectionError) -> Option<Self> {
        let ConnectionError::ApplicationClosed(close) = error else {
            return None;
        };
        Self::ALL
            .into_iter()
            .find(|code| code.code() == close.error_code)
    }

    /// The text that is sent with the code.
    pub(super) const fn reason(self) -> &'static [u8] {
        match self {
            Self::Done => b"",
            Self::TooMany => b"too many connections",
            Self::Violation => b"protocol violation",
            Self::Shutdown => b"shutting down",
            Self::Denied => b"not admitted",
        }
    }

    pub(super) fn close(self, connection: &quinn::Connection) {
        connection.close(self.code(), self.reason());
    }
}
