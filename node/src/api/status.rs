//! The status of a daemon as `/status` shows it. Field names are the interface: scripts read them.

use super::{LinkStatus, Memory, PredictedStatus, RoundStatus, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a daemon shows of itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// This peer, hexadecimal.
    pub peer: String,
    /// Addresses others can join at.
    pub addresses: Vec<String>,
    /// Whether others can dial it, and through whom they reach it otherwise.
    pub nat: NatStatus,
    /// The run's name.
    pub run: String,
    /// The plan's hash.
    pub plan: String,
    /// The preset it started from.
    pub preset: String,
    /// The round under way.
    pub round: u64,
    /// Rounds in all; zero means until told to stop.
    pub rounds: u64,
    /// The phase of the round.
    pub phase: String,
    /// Rounds ended, earlier lives of this daemon included.
    pub rounds_ended: u64,
    /// When the first round that this life of the daemon took part in was in force: seconds of Unix
    /// time.
    pub first_round_unix_s: Option<f64>,
    /// Inner steps in all.
    pub inner_steps: u64,
    /// Samples seen in all.
    pub samples: u64,
    /// Inner steps per second of wall time over the last rounds.
    pub inner_steps_per_s: f64,
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// The last look at held data.
    pub evaluation: Option<EvaluationStatus>,
    /// Digest of the parameters (gossip) or the anchor (all-reduce) that opened this round.
    pub digest: Option<String>,
    /// The round that ended with this digest.
    pub digest_round: Option<u64>,
    /// All other peers that this one knows, by id.
    pub peers: BTreeMap<String, PeerStatus>,
    /// What was sent.
    pub bytes_sent: Traffic,
    /// What was received.
    pub bytes_received: Traffic,
    /// Seconds in inner steps.
    pub train_s: f64,
    /// Seconds since the first round began.
    pub wall_s: f64,
    /// The longest wait so far.
    pub longest_wait: Option<WaitStatus>,
    /// The last exchange.
    pub group: Option<GroupStatus>,
    /// How often it took over the swarm's state.
    pub catch_ups: u64,
    /// Exchanges that were given up.
    pub voids: u64,
    /// How often no group came about, so that the round went on with more inner steps.
    pub alone: u64,
    /// Waits that ended because the time was up.
    pub expired_waits: u64,
    /// Transfers whose mass may be lost or doubled.
    pub mass_uncertain: u64,
    /// Rules broken by others.
    pub misbehaved: u64,
    /// Orders of its own that failed.
    pub work_failed: u64,
    /// Round of the last checkpoint.
    pub saved_round: Option<u64>,
    /// What it holds in memory.
    pub memory: Memory,
    /// What the planner expects of a round, from the steps and links that were measured.
    pub predicted: Option<PredictedStatus>,
    /// What the last rounds took.
    pub measured: Option<RoundStatus>,
}

/// A look at held data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationStatus {
    /// The parameters at the start of this round.
    pub round: u64,
    /// Mean loss in nats.
    pub loss: f64,
    /// Share that is right.
    pub accuracy: Option<f64>,
}

/// How the daemon stands towards routers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NatStatus {
    /// `public`, `private` or `unknown`.
    pub reachability: String,
    /// How that was learned.
    pub reason: String,
    /// The address that it is about.
    pub address: Option<String>,
    /// The relays that others reach it through.
    pub relays: Vec<String>,
    /// What it does for others, if it relays.
    pub serving: Option<ServingStatus>,
    /// Links that became direct by punched holes.
    pub punched: u64,
    /// Attempts that failed.
    pub punches_failed: u64,
}

/// What a daemon that relays does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServingStatus {
    /// Peers that can be reached through it.
    pub reservations: u64,
    /// Circuits through it.
    pub circuits: u64,
    /// Requests that it refused so far.
    pub refused: u64,
}

/// The way of a link's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStatus {
    /// `direct`, `punched` or `relayed`.
    pub kind: String,
    /// The relay.
    pub relay: Option<String>,
    /// Why this way.
    pub reason: String,
}

/// Another peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PeerStatus {
    /// Whether it is there.
    pub linked: bool,
    /// Whether it let a deadline pass and has not spoken since.
    pub suspected: bool,
    /// The last round it took part in with this one.
    pub round: Option<u64>,
    /// Round-trip time.
    pub rtt_s: Option<f64>,
    /// How it is reached; of a peer that is gone, how it last was.
    pub path: Option<PathStatus>,
    /// Its link, while it is there.
    pub link: Option<LinkStatus>,
}

/// A wait that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitStatus {
    /// For what.
    pub what: String,
    /// How long.
    pub waited_s: f64,
    /// How long at most.
    pub deadline_s: f64,
}

/// The last exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupStatus {
    /// Its round.
    pub round: u64,
    /// Its members.
    pub members: Vec<String>,
    /// Shard by shard, whose contributions are in the result, with which weights.
    pub contributors: Vec<Vec<Contributor>>,
}

/// One peer's part in a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contributor {
    /// Who.
    pub peer: String,
    /// With which weight.
    pub weight: f64,
}
