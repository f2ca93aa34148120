//! Something that is wrong at a daemon or with the others, as `/status`, `/metrics` and `why` name it.

use serde::{Deserialize, Serialize};

/// Kind of a trouble. The gravest come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// The membership of this daemon was revoked.
    Revoked,
    /// The certificate of this daemon has ended.
    Expired,
    /// This daemon is banned, because it lied.
    Banned,
    /// Members refuse this daemon for another reason.
    Refused,
    /// No other daemon is linked, and there should be some.
    Isolated,
    /// Another daemon runs with this daemon's identity.
    Elsewhere,
    /// This daemon's own work fails.
    Failing,
    /// The last checkpoint could not be written.
    Unsaved,
    /// The last rounds had no result.
    NoResult,
    /// The last rounds were decided without what this daemon trained.
    LeftOut,
    /// Daemons that took part are gone, and did not leave in order.
    PeersLost,
    /// Linked daemons missed their deadline.
    PeersSilent,
    /// Daemons take part and contribute nothing.
    PeersIdle,
    /// Daemons train the same data as this one, in the same order.
    PeersEqual,
    /// A daemon lied.
    PeersLied,
    /// Files of this daemon's directory were lost or changed.
    Altered,
}

impl TroubleKind {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::Revoked,
        Self::Expired,
        Self::Banned,
        Self::Refused,
        Self::Isolated,
        Self::Elsewhere,
        Self::Failing,
        Self::Unsaved,
        Self::NoResult,
        Self::LeftOut,
        Self::PeersLost,
        Self::PeersSilent,
        Self::PeersIdle,
        Self::PeersEqual,
        Self::PeersLied,
        Self::Altered,
    ];

    /// The kind in one word, as JSON has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Banned => "banned",
            Self::Refused => "refused",
            Self::Isolated => "isolated",
            Self::Elsewhere => "elsewhere",
            Self::Failing => "failing",
            Self::Unsaved => "unsaved",
            Self::NoResult => "no_result",
            Self::LeftOut => "left_out",
            Self::PeersLost => "peers_lost",
            Self::PeersSilent => "peers_silent",
            Self::PeersIdle => "peers_idle",
            Self::PeersEqual => "peers_equal",
            Self::PeersLied => "peers_lied",
            Self::Altered => "altered",
        }
    }

    /// The others do not accept this daemon.
    pub const fn is_refusal(self) -> bool {
        (self as u8) < Self::Isolated as u8
    }

    /// While it lasts, what this daemon does is of no use to the run.
    pub const fn is_grave(self) -> bool {
        (self as u8) < Self::PeersLost as u8
    }
}

/// Something that is wrong now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// What.
    pub kind: TroubleKind,
    /// Unix time since which it is so, seconds, where that is known.
    pub since_unix_s: Option<f64>,
    /// The daemons that it is about, hexadecimal.
    pub peers: Vec<String>,
    /// The trouble in a sentence.
    pub text: String,
    /// The remedy in a sentence.
    pub action: String,
}

impl Trouble {
    /// A trouble of this daemon, from an unknown time on.
    pub(super) fn new(
        kind: TroubleKind,
        text: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            since_unix_s: None,
            peers: Vec::new(),
            text: text.into(),
            action: action.into(),
        }
    }

    /// The same about these daemons.
    pub(super) fn of(self, peers: Vec<String>) -> Self {
        Self { peers, ..self }
    }

    /// The same since a Unix time in seconds.
    pub(super) fn since(self, unix_s: f64) -> Self {
        Self {
            since_unix_s: Some(unix_s),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_same_word_everywhere() {
        let mut before = None;
        for kind in TroubleKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
            assert!(before < Some(kind), "{kind:?} is out of order");
            before = Some(kind);
        }
    }
}
