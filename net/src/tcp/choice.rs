//! [`BulkChoice`]: the way of bulk streams in a configuration.

use std::fmt;
use std::str::FromStr;

/// How bulk streams travel: `network.bulk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkChoice {
    /// QUIC, and TLS over TCP where it was measured to be better.
    #[default]
    Auto,
    /// QUIC alone. No TCP port is opened for bulk.
    Quic,
    /// TLS over TCP where the peer can be reached, otherwise QUIC.
    Tls,
}

/// A word that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a way for bulk: use \"auto\", \"quic\" or \"tls\"")]
pub struct UnknownBulkChoice(String);

impl BulkChoice {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Quic, Self::Tls];

    /// The name in a configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Quic => "quic",
            Self::Tls => "tls",
        }
    }
}

impl fmt::Display for BulkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for BulkChoice {
    type Err = UnknownBulkChoice;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|choice| choice.word() == word);
        found.ok_or_else(|| UnknownBulkChoice(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_others_are_refused_with_the_choices() {
        for choice in BulkChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let refused = "udp".parse::<BulkChoice>().unwrap_err().to_string();
        assert!(
            refused.contains("\"auto\", \"quic\" or \"tls\""),
            "{refused}"
        );
    }
}
