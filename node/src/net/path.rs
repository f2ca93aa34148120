//! The state of the bulk path to one peer: which connection is used, and when to dial again.

use murmurate_net::quic::{BulkConnection, CloseCode, ConnectionError, Error};
use std::time::Duration;
use tokio::time::Instant;

/// A connection that ends sooner than this was refused by the remote.
const SETTLED: Duration = Duration::from_secs(2);

/// Pause after the first failure; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(5);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Pause if there is no QUIC connection to dial beside. Checking again is cheap, and hole punching
/// may have made one.
const PAUSE_NO_PATH: Duration = Duration::from_secs(1);

/// The transport of bulk streams to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkPath {
    /// No stream has been opened yet.
    #[default]
    Unused,
    /// A QUIC connection of their own.
    Quic,
    /// A connection of their own over TLS and TCP.
    Tls,
    /// Streams of the link.
    Stream,
}

/// The transport to one peer, for the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathView {
    /// The transport.
    pub path: BulkPath,
    /// Why it is this one, if there was a choice or a failure.
    pub reason: Option<String>,
    /// Time until a better one is tried again, by the first push after it.
    pub retry_in: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Path {
    Unknown,
    Dialing {
        failures: u32,
    },
    Direct {
        connection: BulkConnection,
        since: Instant,
        failures: u32,
    },
    Stream {
        reason: String,
        failures: u32,
        retry_at: Instant,
    },
}

impl Path {
    /// The path after a failure, with the time of the next attempt.
    fn failed(reason: String, failures: u32, retry_at: Instant) -> Self {
        Self::Stream {
            reason,
            failures,
            retry_at,
        }
    }

    /// Updates the path before it is used. Returns whether the caller must dial.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let next = match self {
            Self::Unknown => Self::Dialing { failures: 0 },
            Self::Stream {
                failures, retry_at, ..
            } if *retry_at <= now => Self::Dialing {
                failures: *failures,
            },
            Self::Direct {
                connection,
                since,
                failures,
            } => match connection.close_reason() {
                None => return false,
                Some(end) if now.saturating_duration_since(*since) < SETTLED => {
                    let failures = *failures + 1;
                    Self::failed(turned_away(&end), failures, now + pause_after(failures))
                }
                Some(_) => Self::Dialing { failures: 0 },
            },
            Self::Dialing { .. } | Self::Stream { .. } => return false,
        };
        *self = next;
        matches!(self, Self::Dialing { .. })
    }

    /// Records a failed dial, unless a connection arrived meanwhile.
    pub(super) fn dial_failed(&mut self, error: &Error, now: Instant) {
        let Self::Dialing { failures } = self else {
            return;
        };
        *self = match error {
            Error::NoPath(_) => {
                let reason = "there is no QUIC connection to it: it is reached over TCP or a relay";
                Self::failed(reason.to_owned(), *failures, now + PAUSE_NO_PATH)
            }
            Error::Unsupported(_) => {
                Self::failed(error.to_string(), *failures + 1, now + PAUSE_MAX)
            }
            _ => {
                let failures = *failures + 1;
                Self::failed(error.to_string(), failures, now + pause_after(failures))
            }
        };
    }
}

fn turned_away(end: &ConnectionError) -> String {
    let why = match CloseCode::of(end) {
        Some(CloseCode::Denied) => "it does not admit us".to_owned(),
        Some(CloseCode::TooMany) => "it has too many connections".to_owned(),
        _ => end.to_string(),
    };
    format!("the peer closed the bulk connection at once: {why}")
}

fn pause_after(failures: u32) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests;
