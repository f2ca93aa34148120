//! Errors of an emulated link or network.

use std::net::Ipv4Addr;

/// An error in the text of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: `{text}` {expected}")]
pub struct SpecError {
    /// The wrong part: `RATE`, `RTT`, `LOSS` or the name of a key.
    pub part: String,
    /// The text of this part.
    pub text: String,
    /// The expected form.
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
        /// The last address that was tried.
        last: Ipv4Addr,
        /// The system's error.
        reason: String,
    },
    /// Too many daemons.
    #[error("{seats} daemons on one emulated network; it has addresses for {most}")]
    Seats {
        /// The requested number of daemons.
        seats: usize,
        /// The largest possible number.
        most: usize,
    },
    /// A port cannot be bound.
    #[error("cannot bind {address}: {reason} (another process uses it: choose another port)")]
    Bind {
        /// The address.
        address: std::net::SocketAddrV4,
        /// The system's error.
        reason: String,
    },
    /// The thread that delivers datagrams cannot be started.
    #[error("cannot start the thread that delivers datagrams: {reason}")]
    Thread {
        /// The system's error.
        reason: String,
    },
}
