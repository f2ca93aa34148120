//! Why an emulated link or network cannot be: what a person wrote, or what the system refused.

use std::net::Ipv4Addr;

/// What is wrong with the text of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: `{text}` {expected}")]
pub struct SpecError {
    /// Which part: `RATE`, `RTT`, `LOSS` or the name of a key.
    pub part: String,
    /// What stands there.
    pub text: String,
    /// What is expected instead.
    pub expected: String,
}

impl SpecError {
    pub(super) fn new(part: &str, text: &str, expected: &str) -> Self {
        Self {
            part: part.to_owned(),
            text: text.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// The same error, said of another part.
    pub(super) fn of(mut self, part: &str) -> Self {
        part.clone_into(&mut self.part);
        self
    }
}

/// Why an emulated network cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// No block of loopback addresses is free.
    #[error(
        "no free block of loopback addresses: the last try, {last}, failed with `{reason}` (emulated \
         links need Linux, where all of 127.0.0.0/8 is this machine)"
    )]
    Addresses {
        /// The address tried last.
        last: Ipv4Addr,
        /// What the system said.
        reason: String,
    },
    /// Too many daemons.
    #[error("{seats} daemons on one emulated network; it has addresses for {most}")]
    Seats {
        /// How many were asked for.
        seats: usize,
        /// How many there can be.
        most: usize,
    },
    /// A port cannot be bound.
    #[error("cannot bind {address}: {reason} (another process uses it: choose another port)")]
    Bind {
        /// The address.
        address: std::net::SocketAddrV4,
        /// What the system said.
        reason: String,
    },
    /// The thread that delivers cannot be started.
    #[error("cannot start the thread that delivers datagrams: {reason}")]
    Thread {
        /// What the system said.
        reason: String,
    },
}
