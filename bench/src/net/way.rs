//! [`Way`]: the transport of a transfer.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A transport for bytes between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// quinn with its defaults (CUBIC, windows, sockets), and our certificates and cipher.
    Quinn,
    /// A bulk connection of [`Endpoint`](murmurate_net::quic::Endpoint).
    Bulk,
    /// A bulk connection over TLS and TCP ([`tcp`](murmurate_net::tcp)).
    Tls,
    /// A libp2p stream over our own [`Transport`](murmurate_net::quic::Transport).
    Control,
    /// A stream of libp2p's TCP with Noise and Yamux.
    TcpNoise,
    /// Plain TCP without encryption. Small messages use a second connection.
    Tcp,
}

/// A word that names no way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown way {word:?}: use {}", words())]
pub struct UnknownWay {
    /// The word.
    pub word: String,
}

fn words() -> String {
    Way::ALL.map(Way::word).join(", ")
}

impl Way {
    /// All ways. The first is the one that the others are compared with.
    pub const ALL: [Self; 6] = [
        Self::Quinn,
        Self::Bulk,
        Self::Tls,
        Self::Control,
        Self::TcpNoise,
        Self::Tcp,
    ];

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quinn => "quinn",
            Self::Bulk => "bulk",
            Self::Tls => "tls",
            Self::Control => "control",
            Self::TcpNoise => "tcp-noise",
            Self::Tcp => "tcp",
        }
    }

    /// Ways over UDP.
    #[must_use]
    pub const fn is_udp(self) -> bool {
        !matches!(self, Self::Tls | Self::TcpNoise | Self::Tcp)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Way {
    type Err = UnknownWay;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|way| way.word() == word)
            .ok_or_else(|| UnknownWay { word: word.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_on_the_command_line_and_in_reports() {
        for way in Way::ALL {
            assert_eq!(way.word().parse(), Ok(way));
            let json = serde_json::to_string(&way).unwrap();
            assert_eq!(json, format!("{:?}", way.word()));
        }
        let error = "carrier-pigeon".parse::<Way>().unwrap_err();
        assert!(error.to_string().contains("tcp-noise"), "{error}");
    }
}
