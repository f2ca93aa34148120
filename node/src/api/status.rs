//! The status of a daemon, served as JSON by `/status`, and the names of its problems in `/metrics` and `why`.
//! Scripts read the field names, so they are an interface.

use super::{
    ControlStatus, Figures, LinkStatus, Memory, PeerTotals, PredictedStatus, RoundStatus, Traffic,
    WaitNow, WithoutResult,
};
use murmurate_protocol::SortedMap;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// The complete status of a daemon.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// This peer's id, hexadecimal.
    pub peer: String,
    /// The name that its operator gave this daemon.
    pub name: Option<String>,
    /// Addresses at which others can join.
    pub addresses: Vec<String>,
    /// Reachability from other daemons, and the relays if they cannot dial this one.
    pub nat: NatStatus,
    /// The run's name.
    pub run: String,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// The preset of the configuration.
    pub preset: String,
    /// The current round.
    pub round: u64,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// Number of this peer's trainers; more than one are an island.
    pub ranks: u32,
    /// The phase of the current round.
    pub phase: String,
    /// State of the daemon in one word: the gravest trouble, or else `starting`, `training`, `alone`, `merging`,
    /// `paused`, `finished`, `leaving` or `left`.
    pub state: String,
    /// Present troubles, the gravest first.
    pub troubles: Vec<Trouble>,
    /// Privacy and masks of this daemon's contributions, where they have one of them.
    pub privacy: Option<PrivacyStatus>,
    /// Directives of the run's owner.
    pub control: ControlStatus,
    /// Number of ended rounds, including earlier lives of this daemon.
    pub rounds_ended: u64,
    /// Unix time in seconds at the end of the first round that this life of the daemon took part in.
    pub first_round_unix_s: Option<f64>,
    /// Inner steps in all, including earlier lives.
    pub inner_steps: u64,
    /// Inner steps of the training that is under way, so far.
    pub round_steps: u64,
    /// Samples in all, including earlier lives.
    pub samples: u64,
    /// Records of the data that this life has left out, because they cannot be read.
    pub skipped_records: u64,
    /// Inner steps per second of wall time, over the last rounds.
    pub inner_steps_per_s: f64,
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// The last evaluation on held-out data.
    pub evaluation: Option<EvaluationStatus>,
    /// Digest of the parameters (gossip) or of the anchor (all-reduce) at the start of this round.
    pub digest: Option<String>,
    /// The round that produced this digest.
    pub digest_round: Option<u64>,
    /// All peers that this one knows, by id in hexadecimal.
    pub peers: SortedMap<String, PeerStatus>,
    /// Bytes sent to all peers.
    pub bytes_sent: Traffic,
    /// Bytes received from all peers.
    pub bytes_received: Traffic,
    /// Vitals that the daemons of the swarm sent to this one.
    pub vitals: VitalsStatus,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Seconds that rounds waited until other peers were as far, since the start.
    pub wait_s: f64,
    /// Seconds of exchanges apart from that, since the start.
    pub exchange_s: f64,
    /// Fates of this daemon's contributions, since the start.
    pub contributions: PeerTotals,
    /// Seconds since the first round began.
    pub wall_s: f64,
    /// The waits that are under way, with the peers that they are for.
    pub waiting: Vec<WaitNow>,
    /// The state that is being fetched from other peers, if there is one.
    pub transfer: Option<TransferStatus>,
    /// The longest wait so far.
    pub longest_wait: Option<WaitStatus>,
    /// Group and contributors of the last exchange.
    pub group: Option<GroupStatus>,
    /// Counts of unusual events.
    #[serde(flatten)]
    pub unusual: Unusual,
    /// Last end of this daemon's training loop, while it has not attached again.
    pub trainer: Option<String>,
    /// The round of the last checkpoint.
    pub saved_round: Option<u64>,
    /// The branch that this daemon is in since a split of the swarm, if there is one.
    pub branch: Option<BranchStatus>,
    /// The last merge of branches.
    pub merged: Option<MergedStatus>,
    /// Memory of the process.
    pub memory: Memory,
    /// Predicted cost of a round, from the measured steps and links.
    pub predicted: Option<PredictedStatus>,
    /// Mean cost of the last rounds.
    pub measured: Option<RoundStatus>,
}

/// Counts of events since the start that a run without trouble does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unusual {
    /// Fetches of the swarm's state.
    pub catch_ups: u64,
    /// Number of exchanges that ended without a result at this daemon. Others may have decided some of them; then
    /// this daemon took their result over, which counts in `catch_ups`.
    pub voids: u64,
    /// Rounds that had no result at this daemon.
    #[serde(flatten)]
    pub without_result: WithoutResult,
    /// Attempts in which no group formed. The round then continued with more inner steps.
    pub alone: u64,
    /// Waits that ended at their deadline.
    pub expired_waits: u64,
    /// Transfers that may have lost or doubled push-sum weight.
    pub mass_uncertain: u64,
    /// Violations of the protocol by other peers.
    pub misbehaved: u64,
    /// Peers that this daemon refused, and peers that refused it.
    pub refused: u64,
    /// Work orders that failed in this daemon.
    pub work_failed: u64,
    /// Checkpoints that could not be written.
    pub saves_failed: u64,
}

/// Privacy and masks of a daemon's contributions, as `/status` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrivacyStatus {
    /// Where contributions are masked: the fewest members whose sum is opened.
    pub masked: Option<u16>,
    /// The account of the promise, where the run makes one.
    #[serde(flatten)]
    pub promise: Option<PromiseStatus>,
}

impl PrivacyStatus {
    /// In a sentence, or two.
    pub fn sentence(&self) -> String {
        let masked = self.masked.map(|members| {
            format!("Contributions are masked: other daemons see their sum alone, of at least {members}.")
        });
        let promise = self.promise.map(|promise| promise.sentence());
        let both: Vec<String> = promise.into_iter().chain(masked).collect();
        both.join(" ")
    }
}

/// The privacy that a run promises for a daemon's data, as `/status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromiseStatus {
    /// Epsilon of all contributions so far; none if some of them had no noise.
    pub epsilon: Option<f64>,
    /// The probability with which the promise may fail.
    pub delta: f64,
    /// The largest epsilon; none without a bound.
    pub budget: Option<f64>,
    /// Contributions of this directory so far.
    pub contributions: u64,
    /// Contributions that the budget still allows; none without a bound.
    pub left: Option<u64>,
    /// Contributions whose mean is the least that is private: with one, each is so by itself.
    pub members: u64,
}

impl PromiseStatus {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let Some(epsilon) = self.epsilon else {
            return format!(
                "Privacy: none. Some of the {} contributions from this directory had no noise.",
                self.contributions
            );
        };
        let of = self
            .budget
            .map_or(String::new(), |budget| format!(" of {budget}"));
        let left = match self.left {
            Some(0) => "; the budget is spent",
            Some(left) => &format!("; {left} more are within the budget"),
            None => "",
        };
        let whom = match self.members {
            1 => String::new(),
            members => {
                format!(" It is a promise about sums of {members} contributions or more.")
            }
        };
        format!(
            "Privacy: epsilon {epsilon:.3}{of} (delta {:e}) after {} contributions{left}.{whom}",
            self.delta, self.contributions
        )
    }
}

impl Status {
    /// Number of linked peers.
    pub fn linked(&self) -> usize {
        self.peers.values().filter(|peer| peer.is_linked()).count()
    }
}

impl From<&Status> for Figures {
    fn from(status: &Status) -> Self {
        Self {
            inner_steps: status.inner_steps,
            samples: status.samples,
            train_s: status.train_s,
            loss: status.loss,
            bytes_sent: status.bytes_sent.wire,
            bytes_received: status.bytes_received.wire,
            peers: status.linked() as u64,
        }
    }
}

/// Vitals of other daemons: their number and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct VitalsStatus {
    /// Daemons whose vitals are kept.
    pub peers: u64,
    /// Bytes sent for vitals.
    pub bytes_sent: u64,
    /// Bytes received for vitals.
    pub bytes_received: u64,
}

/// Progress of the fetch of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferStatus {
    /// The round that the state opens.
    pub round: u64,
    /// Bytes that are here, those that an earlier life of the daemon fetched included.
    pub bytes: u64,
    /// Size of the state in bytes.
    pub of_bytes: u64,
}

/// A branch of a swarm that was split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BranchStatus {
    /// The round in which it began.
    pub since_round: u64,
    /// Samples that the rounds of this side have trained on since then.
    pub weight: f64,
    /// Peers that are missing from it.
    pub missing: u64,
    /// Peers of another branch are linked.
    pub met: bool,
}

/// A merge of the branches of a swarm that was split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MergedStatus {
    /// The round that merged them.
    pub round: u64,
    /// The sides, each with its members in the merge and its weight; this daemon's first.
    pub sides: Vec<(u16, f64)>,
}

/// Result of an evaluation on held-out data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluationStatus {
    /// The evaluated parameters are those at the start of this round.
    pub round: u64,
    /// Mean loss in nats.
    pub loss: f64,
    /// Fraction of correct predictions, 0 to 1.
    pub accuracy: Option<f64>,
    /// Fraction of samples whose class is among the five most likely, with ten or more classes.
    pub top_5: Option<f64>,
    /// Perplexity of a token, of language models.
    pub perplexity: Option<f64>,
    /// Bits per byte of text, of language models.
    pub bits_per_byte: Option<f64>,
    /// Further numbers by name: those of an attached loop, or of `task.choices`. They are not sent.
    pub named: BTreeMap<String, f64>,
}

/// Reachability of the daemon behind routers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NatStatus {
    /// `public`, `private` or `unknown`.
    pub reachability: String,
    /// Evidence for the reachability.
    pub reason: String,
    /// The address that was tested.
    pub address: Option<String>,
    /// The relays through which others reach this daemon.
    pub relays: Vec<String>,
    /// The load of the relay, if this daemon relays for others.
    pub serving: Option<ServingStatus>,
    /// Links that became direct by hole punching.
    pub punched: u64,
    /// Failed attempts at hole punching.
    pub punches_failed: u64,
}

/// Current load of a daemon that relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServingStatus {
    /// Peers that are reachable through it.
    pub reservations: u64,
    /// Open circuits through it.
    pub circuits: u64,
    /// Requests refused since the start.
    pub refused: u64,
}

/// The path of a link's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStatus {
    /// `direct`, `punched` or `relayed`.
    pub kind: String,
    /// The relay's id, if the path is relayed.
    pub relay: Option<String>,
    /// Why this path is used.
    pub reason: String,
}

/// One other peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PeerStatus {
    /// Its name, in its own words.
    pub name: Option<String>,
    /// Its link, or how it ended.
    #[serde(flatten)]
    pub presence: Presence,
    /// Set from a missed deadline on, until the peer is heard from.
    pub suspected: bool,
    /// The last round that both peers took part in.
    pub round: Option<u64>,
    /// Round-trip time, seconds.
    pub rtt_s: Option<f64>,
    /// The path to the peer; if the link is down, the last path.
    pub path: Option<PathStatus>,
    /// The link, if it is up.
    pub link: Option<LinkStatus>,
}

/// The link to a peer, or how it ended. In JSON it is `linked`, `left` and `lost_unix_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Presence {
    /// No link is up, and the peer is not missed.
    #[default]
    Away,
    Linked,
    /// The peer said goodbye and left.
    Left,
    /// The peer is missed: its link is gone, and it said no goodbye.
    Lost {
        /// Unix time of the end of the link, seconds.
        unix_s: f64,
    },
}

impl Serialize for Presence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Presence", 3)?;
        fields.serialize_field("linked", &(*self == Self::Linked))?;
        fields.serialize_field("left", &(*self == Self::Left))?;
        fields.serialize_field("lost_unix_s", &self.lost_unix_s())?;
        fields.end()
    }
}

impl Presence {
    /// Unix time since which the peer is missed, seconds, if it is.
    pub const fn lost_unix_s(self) -> Option<f64> {
        match self {
            Self::Lost { unix_s } => Some(unix_s),
            Self::Away | Self::Linked | Self::Left => None,
        }
    }
}

impl PeerStatus {
    /// A link to the peer is up.
    pub fn is_linked(&self) -> bool {
        self.presence == Presence::Linked
    }
}

/// A wait that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitStatus {
    /// Kind of the wait.
    pub what: String,
    /// Duration of the wait, seconds.
    pub waited_s: f64,
    /// The longest duration allowed, seconds.
    pub deadline_s: f64,
}

/// The last exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupStatus {
    /// The round of the exchange.
    pub round: u64,
    /// Number of peers that exchange in the round, this one included.
    pub peers: usize,
    /// The group's members, by id in hexadecimal; empty in a grid.
    pub members: Vec<String>,
    /// In a grid: this peer's place.
    pub place: Option<PlaceStatus>,
    /// For each shard, the contributions in the result.
    pub contributors: Vec<Vec<Contributor>>,
}

/// A peer's place in a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlaceStatus {
    /// Its row, from zero.
    pub row: u32,
    /// Its column, from zero.
    pub column: u32,
    /// Number of columns: the peers of a full row.
    pub columns: u32,
}

/// One contribution to a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contributor {
    /// Id of the contributing peer, hexadecimal.
    pub peer: String,
    /// Weight of the contribution.
    pub weight: f64,
}

words! {
    /// Kind of a trouble. The gravest come first.
    pub enum TroubleKind {
        /// The membership of this daemon was revoked.
        Revoked = "revoked",
        /// The certificate of this daemon has ended.
        Expired = "expired",
        /// This daemon is banned, because it lied.
        Banned = "banned",
        /// Members refuse this daemon for another reason.
        Refused = "refused",
        /// No other daemon is linked, and there should be some.
        Isolated = "isolated",
        /// Another daemon runs with this daemon's identity.
        Elsewhere = "elsewhere",
        /// This daemon's own work fails.
        Failing = "failing",
        /// The last checkpoint could not be written.
        Unsaved = "unsaved",
        /// The last rounds had no result.
        NoResult = "no_result",
        /// The last rounds were decided without what this daemon trained.
        LeftOut = "left_out",
        /// Daemons that took part are gone, and did not leave in order.
        PeersLost = "peers_lost",
        /// Linked daemons missed their deadline.
        PeersSilent = "peers_silent",
        /// Daemons take part and contribute nothing.
        PeersIdle = "peers_idle",
        /// Daemons train the same data as this one, in the same order.
        PeersEqual = "peers_equal",
        /// A daemon lied.
        PeersLied = "peers_lied",
        /// Files of this daemon's directory were lost or changed.
        Altered = "altered",
    }
}

impl TroubleKind {
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
