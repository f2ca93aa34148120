//! Vitals: what a daemon says of itself so that others can show it. A signed summary, and the messages
//! that carry it.
//!
//! They are claims. Nothing that a [`Peer`](crate::Peer) decides depends on them, and they travel on
//! streams of their own.

use crate::limits::{
    VITALS_AT_ONCE_MAX, VITALS_BYTES_MAX, VITALS_MESSAGE_BYTES_MAX, VITALS_NAME_BYTES_MAX,
    VITALS_PEERS_MAX, VITALS_VERSION_BYTES_MAX, VITALS_WAITING_MAX,
};
use crate::wire::check::ok;
use crate::wire::{WireError, canonical, decode_limited, encode_value};
use crate::{PeerId, Phase, Round, RunId, Signature, Wait};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A daemon's claims about itself. A claim that it does not make is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// Whose vitals these are.
    pub peer: PeerId,
    /// Raised with every summary, over restarts too; the highest wins.
    pub sequence: u64,
    /// Unix time of the summary by the daemon's clock, milliseconds.
    pub unix_ms: u64,
    /// The name that its operator gave it.
    pub name: Option<DaemonName>,
    /// Version of the program.
    pub version: String,
    /// The round that it is in.
    pub round: Round,
    /// The phase of that round.
    pub phase: Phase,
    /// Its present wait.
    pub waiting: Option<WaitingFor>,
    /// Inner steps per second over the last rounds.
    pub steps_per_s: Option<f32>,
    /// Mean training loss of the last round.
    pub loss: Option<f32>,
    /// Share of correct predictions at its last evaluation, 0 to 1.
    pub accuracy: Option<f32>,
    /// The time of its last round.
    pub last_round: Option<RoundSeconds>,
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    /// The round of its last checkpoint.
    pub saved_round: Option<Round>,
}

/// What a daemon waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// The kind of wait.
    pub wait: Wait,
    /// Some of the peers that it is for.
    pub peers: Vec<PeerId>,
}

/// The parts of a round's time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundSeconds {
    /// Inner steps.
    pub train: f32,
    /// The exchange, apart from waits for others.
    pub exchange: f32,
    /// Waits until others were as far.
    pub wait: f32,
}

impl Vitals {
    /// A number as vitals carry it; none if it is not finite or below zero.
    pub fn amount(value: f64) -> Option<f32> {
        let value = value as f32;
        (value.is_finite() && value >= 0.0).then_some(value)
    }

    /// A loss as vitals carry it; none if it is not finite. A loss may be below zero.
    pub fn loss(value: f64) -> Option<f32> {
        let value = value as f32;
        value.is_finite().then_some(value)
    }

    /// Checks lengths and ranges.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field.
    pub fn check(&self) -> Result<(), WireError> {
        let amount = |value: f32| value.is_finite() && value >= 0.0;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let version = &self.version;
        let parts = self.last_round.iter();
        let short = version.len() <= VITALS_VERSION_BYTES_MAX;
        ok(short && version.chars().all(plain), "vitals.version")?;
        let few = |waiting: &WaitingFor| waiting.peers.len() <= VITALS_WAITING_MAX;
        ok(self.waiting.as_ref().is_none_or(few), "vitals.waiting")?;
        ok(self.steps_per_s.is_none_or(amount), "vitals.steps_per_s")?;
        ok(self.loss.is_none_or(f32::is_finite), "vitals.loss")?;
        let share = |share: f32| (0.0..=1.0).contains(&share);
        ok(self.accuracy.is_none_or(share), "vitals.accuracy")?;
        let mut parts = parts.flat_map(|parts| [parts.train, parts.exchange, parts.wait]);
        ok(parts.all(amount), "vitals.last_round")
    }
}

/// A name for people: letters and digits of any script, spaces, `-`, `_` and `.`, in 1 to
/// [`VITALS_NAME_BYTES_MAX`] bytes. It identifies no daemon: two may have the same.
///
/// Other characters are refused, because some of them change how the text around a name is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DaemonName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to {VITALS_NAME_BYTES_MAX} bytes of letters, digits, `-`, `_`, `.` and spaces, and no \
     space at its ends"
)]
pub struct NameError;

impl DaemonName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty or too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        let fits = (1..=VITALS_NAME_BYTES_MAX).contains(&text.len());
        let whole = text.trim() == text;
        if fits && whole && text.chars().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError)
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DaemonName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<DaemonName> for String {
    fn from(name: DaemonName) -> Self {
        name.0
    }
}

impl fmt::Display for DaemonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Vitals, signed by the peer that they name. Hosts sign and check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedVitals {
    /// The vitals under the signature.
    pub vitals: Vitals,
    /// By `vitals.peer`, over [`SignedVitals::statement`].
    pub signature: Signature,
}

impl SignedVitals {
    /// The bytes that the signature is over. They name the run, so vitals of one run are worth nothing
    /// in another.
    pub fn statement(run: &RunId, vitals: &Vitals) -> Vec<u8> {
        canonical(&("murmurate vitals 1", run, vitals))
    }

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> usize {
        encode_value(self).len()
    }

    /// Checks lengths and ranges.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field, [`WireError::TooLong`] for more than
    /// [`VITALS_BYTES_MAX`] bytes.
    pub fn check(&self) -> Result<(), WireError> {
        self.vitals.check()?;
        let bytes = self.wire_bytes();
        if bytes <= VITALS_BYTES_MAX {
            Ok(())
        } else {
            Err(WireError::TooLong {
                bytes: bytes as u64,
                max: VITALS_BYTES_MAX as u64,
            })
        }
    }
}

/// A message on a stream of vitals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VitalsMessage {
    /// Vitals of the sender, or of others that it heard of.
    Vitals(Vec<Heard>),
    /// Of which peers the sender has vitals, and how new they are. The receiver answers with newer
    /// ones, and asks for those that it lacks.
    Known(Vec<Known>),
    /// Asks for the vitals of these peers, by the first bytes of their ids.
    Wanted(Vec<u64>),
}

/// Vitals, and how old they are in the sender's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// Milliseconds since their peer made them, or since the first daemon on their way heard them.
    pub age_ms: u32,
    /// The vitals.
    pub signed: SignedVitals,
}

/// How new the sender's vitals of one peer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The first bytes of the peer's id.
    pub peer: u64,
    /// Their sequence number.
    pub sequence: u64,
}

impl Known {
    /// The first eight bytes of an id. Two peers with the same ones only miss some of each other's
    /// vitals.
    pub fn prefix(peer: &PeerId) -> u64 {
        peer.first_bits()
    }
}

impl VitalsMessage {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// Reads a message and checks its lengths and ranges, but no signature.
    ///
    /// # Errors
    /// When the bytes are too many, do not decode, or a length or a value is out of its range.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let message: Self = decode_limited::<_, VITALS_MESSAGE_BYTES_MAX>(bytes)?;
        message.check()?;
        Ok(message)
    }

    fn check(&self) -> Result<(), WireError> {
        let (field, count, most) = match self {
            Self::Vitals(all) => ("vitals", all.len(), VITALS_AT_ONCE_MAX),
            Self::Known(all) => ("known", all.len(), VITALS_PEERS_MAX),
            Self::Wanted(all) => ("wanted", all.len(), VITALS_PEERS_MAX),
        };
        ok(count <= most, field)?;
        match self {
            Self::Vitals(all) => all.iter().try_for_each(|heard| heard.signed.check()),
            Self::Known(_) | Self::Wanted(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_change_nothing_around_them() {
        let long = "x".repeat(VITALS_NAME_BYTES_MAX);
        for text in ["gpu1", "Büro 3", "node-0", "a.b_c", "東京", long.as_str()] {
            assert_eq!(DaemonName::new(text).unwrap().as_str(), text);
        }
        let longer = format!("{long}x");
        let reversed = "abc\u{202e}def";
        for text in [
            "",
            " a",
            "a ",
            "a\nb",
            "<b>",
            "a/b",
            reversed,
            longer.as_str(),
        ] {
            assert_eq!(DaemonName::new(text), Err(NameError), "{text:?}");
        }
    }
}
