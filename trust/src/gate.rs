//! The gate of a connection: both ends prove that they are members before anything else is said.
//!
//! 1. The dialer sends a tag that only somebody with the run's secret can compute ([`ask`]).
//! 2. If the tag is right, the listener sends its own tag and its certificates; otherwise it says
//!    only that it does not know the tag, so a stranger learns that there is a gate.
//! 3. The dialer sends its certificates, the listener its verdict, and the dialer says when it is ready.
//!
//! With their certificates both say which versions of the wire they speak. They use the newest that they
//! share. Where they share none, each knows both ranges and ends the connection.
//!
//! Both ids are authenticated by the connection below, and the tags name them in order, so no one
//! can use a tag on another connection.

use crate::chain::Chain;
use crate::directive::SignedDirective;
use crate::limits::{GATE_MESSAGE_MAX, NEWS_BYTES_MAX};
use crate::news::News;
use crate::register::Refusal;
use crate::run::Run;
use murmurate_protocol::wire::{WireError, WireVersions, decode_value, encode_value};
use murmurate_protocol::{Digest, PeerId};
use serde::{Deserialize, Serialize};

/// A message at the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The dialer's first word.
    Ask {
        /// See [`ask`].
        tag: [u8; 32],
    },
    /// The listener's answer.
    Answer {
        /// See [`answer`].
        tag: [u8; 32],
        /// The listener's certificates.
        chain: Chain,
        /// Digest of the listener's register.
        register: Digest,
        /// The versions of the wire that the listener speaks.
        wire: WireVersions,
    },
    /// The dialer's certificates.
    Proof {
        /// The certificates.
        chain: Chain,
        /// Digest of the dialer's register.
        register: Digest,
        /// The versions of the wire that the dialer speaks.
        wire: WireVersions,
    },
    /// The listener lets the dialer in, or not.
    Verdict(Result<(), Refusal>),
    /// The dialer accepts streams now.
    Ready,
    /// The listener's answer to a wrong tag.
    Unknown,
    /// News that a member tells another later, on a stream of its own.
    News(News),
    /// The owner's directives, in the same way.
    Directives(Vec<SignedDirective>),
}

impl Message {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// The news that it is, if it is some.
    pub fn news(self) -> Option<News> {
        match self {
            Self::News(news) => Some(news),
            Self::Directives(directives) => Some(News {
                directives,
                ..News::default()
            }),
            _ => None,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it is too long, or not a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let within = |max: usize| match bytes.len() {
            long if long > max => Err(WireError::TooLong {
                bytes: long as u64,
                max: max as u64,
            }),
            _ => Ok(()),
        };
        within(NEWS_BYTES_MAX)?;
        let message: Self = decode_value(bytes)?;
        if !matches!(message, Self::News(_) | Self::Directives(_)) {
            within(GATE_MESSAGE_MAX)?;
        }
        Ok(message)
    }
}

impl News {
    /// The messages that say it.
    pub fn messages(mut self) -> impl Iterator<Item = Message> {
        let directives = std::mem::take(&mut self.directives);
        let directives = (!directives.is_empty()).then_some(Message::Directives(directives));
        let rest = (!self.are_directives()).then_some(Message::News(self));
        rest.into_iter().chain(directives)
    }
}

/// The tag of the dialer's first word.
pub fn ask(run: &Run, dialer: &PeerId, listener: &PeerId) -> [u8; 32] {
    tag(run, b"ask", dialer, listener)
}

/// The tag of the listener's answer.
pub fn answer(run: &Run, dialer: &PeerId, listener: &PeerId) -> [u8; 32] {
    tag(run, b"answer", dialer, listener)
}

/// Equality of two tags, in a time that says nothing about where they differ.
pub fn same(ours: [u8; 32], theirs: [u8; 32]) -> bool {
    blake3::Hash::from(ours) == blake3::Hash::from(theirs)
}

fn tag(run: &Run, what: &[u8], dialer: &PeerId, listener: &PeerId) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(run.secret());
    hasher.update(b"murmurate gate 1 ");
    hasher.update(what);
    hasher.update(run.id.as_bytes());
    hasher.update(dialer.as_bytes());
    hasher.update(listener.as_bytes());
    *hasher.finalize().as_bytes()
}
