//! Messages about who takes part: greetings, addresses, signs of life, rates of links, settings.

use crate::limits::{RECORDS_PER_MESSAGE_MAX, SETTING_KEY_BYTES_MAX, SETTINGS_MAX, VIEW_PEERS_MAX};
use crate::sorted::SortedMap;
use crate::wire::check::ok;
use crate::wire::{PeerRecord, WireError};
use crate::{Branch, Digest, LayoutHash, PeerId, PlanHash, Round, RunId};
use core::fmt;
use serde::{Deserialize, Serialize};

/// How far a peer is on its way to its first round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Muster {
    /// It has met fewer peers than it needs to begin.
    #[default]
    Waiting,
    /// It has met enough peers and waits until they have too.
    Met,
    /// It has begun.
    Begun,
}

/// The first message on every link: which run a peer belongs to, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The run.
    pub run: RunId,
    /// The model.
    pub layout: LayoutHash,
    /// The plan.
    pub plan: PlanHash,
    /// The round this peer is in.
    pub round: Round,
    /// Hash of its anchor.
    pub anchor: Digest,
    /// Set once it takes part in rounds; until then it fetches a state.
    pub ready: bool,
    /// How far it is on its way to its first round.
    pub muster: Muster,
    /// The branch that it is in, after a split of the swarm.
    pub branch: Option<Box<Branch>>,
}

/// How far a peer is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alive {
    /// The round it is in.
    pub round: Round,
    /// Set once it takes part in rounds.
    pub ready: bool,
    /// Hash of its anchor.
    pub anchor: Digest,
    /// How far it is on its way to its first round.
    pub muster: Muster,
    /// The branch that it is in, after a split of the swarm.
    pub branch: Option<Box<Branch>>,
}

/// Why a peer is refused or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// It leaves because it was asked to.
    Leaving,
    /// It trains another run.
    OtherRun,
    /// It trains another model.
    OtherModel,
    /// It follows another plan.
    OtherPlan,
    /// It speaks another version of the protocol.
    OtherVersion,
    /// It broke the rules too often.
    Misbehaved,
    /// The run is full.
    Full,
    /// It has links with enough others.
    Spare,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leaving => "it leaves",
            Self::OtherRun => "it belongs to another run (compare `run.name` in both configs)",
            Self::OtherModel => {
                "it trains another model (compare the `[task]` tables, the names of a table's columns and \
                 classes, and the model that it starts from; set `task.classes` if the data differ; of attached \
                 loops compare names, shapes and order of the parameters)"
            }
            Self::OtherPlan => {
                "it follows another plan (compare seed, rounds and strategy in both configs)"
            }
            Self::OtherVersion => {
                "it speaks another version of the protocol (upgrade the older of the two: the same release \
                 on both, or the one after it)"
            }
            Self::Misbehaved => "it broke the protocol's rules too often",
            Self::Full => "the run has as many peers as one group can hold",
            Self::Spare => "it has links with enough others",
        })
    }
}

/// A message about who takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MembershipMessage {
    /// Opens a link.
    Hello(Hello),
    /// Peers that the sender knows of.
    Records(Vec<PeerRecord>),
    /// The sender leaves or refuses the receiver.
    Goodbye(Reason),
    /// A sign of life, and how far the sender is.
    Alive(Alive),
    /// The rates of the sender's links.
    Rates(Rates),
    /// The settings on which the sender's model and plan depend, before it refuses the receiver for another
    /// model or plan. Hosts make and compare them; for a [`Peer`](crate::Peer) they mean nothing.
    Settings(Vec<Setting>),
}

impl MembershipMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Records(_) => "records",
            Self::Goodbye(_) => "goodbye",
            Self::Alive(_) => "alive",
            Self::Rates(_) => "rates",
            Self::Settings(_) => "settings",
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Records(records) => {
                ok(records.len() <= RECORDS_PER_MESSAGE_MAX, "records")?;
                records.iter().try_for_each(PeerRecord::check)
            }
            Self::Hello(Hello { branch, .. }) | Self::Alive(Alive { branch, .. }) => {
                branch.as_ref().map_or(Ok(()), |branch| branch.check())
            }
            Self::Rates(rates) => rates.check(),
            Self::Settings(settings) => Setting::check_all(settings),
            Self::Goodbye(_) => Ok(()),
        }
    }
}

/// The rates of the sender's links, in a run whose topology chooses by them or whose schedule goes by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The number of the epoch that the sender has entered.
    pub epoch: u64,
    /// The class of its link to each peer that it has measured, in `PeerId` order:
    /// [`LinkRates`](crate::LinkRates) says what a class is. Where the schedule goes by them, it is a code of
    /// eight to the octave.
    pub rates: Vec<(PeerId, u8)>,
    /// Hash of what all peers, itself included, told on entering an earlier epoch, as far as it has
    /// heard it.
    pub heard: Digest,
}

impl Rates {
    /// Checks every count and range.
    pub(super) fn check(&self) -> Result<(), WireError> {
        ok(self.rates.len() <= VIEW_PEERS_MAX, "rates")?;
        ok(self.rates.is_sorted_by(|a, b| a.0 < b.0), "rates")?;
        ok(self.rates.iter().all(|(_, class)| *class > 0), "class")
    }
}

/// One key of a configuration, and a fingerprint of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The key, such as `strategy.outer.lr`.
    pub key: String,
    /// The first eight bytes of a hash over key and value.
    pub fingerprint: u64,
}

impl Setting {
    /// A key with its value. None if the key is longer than a message may hold, or has other characters.
    pub fn new(key: &str, value: &str) -> Option<Self> {
        let digest = Digest::of(&[key.as_bytes(), b"\0", value.as_bytes()].concat());
        let setting = Self {
            key: key.to_owned(),
            fingerprint: digest.first_bits(),
        };
        setting.check().is_ok().then_some(setting)
    }

    /// The keys in which two lists differ, in order: with another value, or in one of them alone.
    pub fn differing<'a>(ours: &'a [Self], theirs: &'a [Self]) -> Vec<&'a str> {
        let by_key = |all: &'a [Self]| -> SortedMap<&'a str, u64> {
            let all = all.iter();
            all.map(|s| (s.key.as_str(), s.fingerprint)).collect()
        };
        let (ours, theirs) = (by_key(ours), by_key(theirs));
        let keys: SortedMap<&str, ()> = ours
            .keys()
            .chain(theirs.keys())
            .map(|key| (*key, ()))
            .collect();
        let differs = |key: &&str| ours.get(key) != theirs.get(key);
        keys.into_keys().filter(differs).collect()
    }

    fn check(&self) -> Result<(), WireError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        let fits = (1..=SETTING_KEY_BYTES_MAX).contains(&self.key.len());
        ok(fits && self.key.chars().all(plain), "settings.key")
    }

    pub(super) fn check_all(all: &[Self]) -> Result<(), WireError> {
        ok(all.len() <= SETTINGS_MAX, "settings")?;
        all.iter().try_for_each(Self::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str)]) -> Vec<Setting> {
        let all = all.iter();
        all.map(|(key, value)| Setting::new(key, value).unwrap())
            .collect()
    }

    #[test]
    fn the_keys_that_differ_are_named_in_order() {
        let ours = settings(&[("run.seed", "1"), ("run.rounds", "9"), ("task.hidden", "3")]);
        let theirs = settings(&[("task.hidden", "3"), ("run.seed", "2"), ("strategy.a", "1")]);
        let differ = ["run.rounds", "run.seed", "strategy.a"];
        assert_eq!(Setting::differing(&ours, &theirs), differ);
        assert_eq!(Setting::differing(&theirs, &ours), differ);
        assert!(Setting::differing(&ours, &ours).is_empty());
    }

    #[test]
    fn a_key_holds_nothing_that_a_terminal_obeys() {
        assert!(Setting::new("strategy.outer.lr", "\u{1b}[2J").is_some());
        let long = "x".repeat(SETTING_KEY_BYTES_MAX + 1);
        for key in ["", "a b", "a\u{1b}", "A", long.as_str()] {
            assert_eq!(Setting::new(key, "1"), None, "{key:?}");
        }
    }
}
