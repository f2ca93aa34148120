//! Whose contribution counted in which round, with which weight, and why not where it did not.
//!
//! It is built from this daemon's own events: the groups that it was in and the decisions that it saw.
//! What other daemons claim about themselves does not count.

use murmurate_protocol::{Event, PeerId, SortedMap, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Rounds that are kept one by one. Totals go back to the daemon's start.
pub(super) const ROUNDS_MAX: usize = 256;

/// Peers of a round that are kept, and peers with totals: a group has as many members at most.
const PEERS_MAX: usize = 64;

/// Peers with totals; more than a group, because members change.
const TOTALS_MAX: usize = 512;

/// End of a round at this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundResult {
    /// A group decided a result.
    Decided,
    /// Parts of the model have a result and parts have none.
    Partial,
    /// There was a group, and no result: the parameters stayed.
    Void,
    /// No group came about.
    Alone,
    /// Neighbours mixed their parameters, without a decision.
    Mixed,
    /// The others decided without this daemon, which took over their result.
    Replayed,
    /// This daemon took over a later state, and did not see the round.
    Skipped,
}

/// Fate of one peer's contribution to a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is in all parts of the result.
    Counted,
    /// It is in some parts of the result.
    Partly,
    /// The peer was in the group, but its contribution is not in the result.
    LeftOut,
    /// The round had no result, so no contribution counted.
    NoResult,
    /// The round ended without this daemon; its training is kept for the next round.
    Kept,
    /// The peer was not in the group.
    Absent,
    /// This daemon cannot tell.
    Unknown,
}

/// One peer's contribution to a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its fate.
    pub standing: Standing,
    /// Its weight (samples), where it counted.
    pub weight: f64,
    /// Its share of the result, 0 to 1.
    pub share: f64,
}

impl Share {
    const fn without_weight(standing: Standing) -> Self {
        Self {
            standing,
            weight: 0.0,
            share: 0.0,
        }
    }
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundEntry {
    /// The round.
    pub round: u64,
    /// Its end; none while it is under way.
    pub result: Option<RoundResult>,
    /// Unix time of its end, seconds.
    pub unix_s: Option<f64>,
    /// This daemon finished its training of the round.
    pub trained: bool,
    /// Where neighbours mix: how many peers' parameters came in.
    pub inputs: Option<u32>,
    /// The peers, by id in hexadecimal.
    pub peers: SortedMap<String, Share>,
}

/// One peer's contributions since this daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerTotals {
    /// Rounds with a result that contains all of its contribution.
    pub counted: u64,
    /// Rounds with a result that contains parts of it.
    pub partly: u64,
    /// Rounds whose group it was in, with a result without it.
    pub left_out: u64,
    /// Rounds with a result whose group it was not in.
    pub absent: u64,
}

/// Observations of the round that is under way.
#[derive(Clone, Debug, Default)]
struct OpenRound {
    round: u64,
    trained: bool,
    alone: bool,
    members: Vec<PeerId>,
    /// For each contributor, its weight and the number of shards that contain it.
    counted: SortedMap<PeerId, (f64, u64)>,
    shards: u64,
    decided: u64,
    void: u64,
    mixed: Option<u32>,
}

/// The last rounds, and totals.
#[derive(Clone, Debug)]
pub struct Ledger {
    me: String,
    open: OpenRound,
    rounds: VecDeque<RoundEntry>,
    totals: SortedMap<String, PeerTotals>,
    without_result: WithoutResult,
}

/// Rounds since this daemon started that had no result at it, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WithoutResult {
    /// Rounds with a group that decided nothing: [`RoundResult::Void`].
    #[serde(rename = "void_rounds")]
    pub void: u64,
    /// Rounds in which no group formed: [`RoundResult::Alone`].
    #[serde(rename = "alone_rounds")]
    pub alone: u64,
}

impl WithoutResult {
    /// The count of rounds that end like this; none where there is a result.
    const fn of(&mut self, end: Option<RoundResult>) -> Option<&mut u64> {
        match end {
            Some(RoundResult::Void) => Some(&mut self.void),
            Some(RoundResult::Alone) => Some(&mut self.alone),
            _ => None,
        }
    }
}

impl Ledger {
    pub(super) fn new(me: &str) -> Self {
        Self {
            me: me.to_owned(),
            open: OpenRound::default(),
            rounds: VecDeque::new(),
            totals: SortedMap::new(),
            without_result: WithoutResult::default(),
        }
    }

    /// The rounds that are kept, oldest first.
    pub fn rounds(&self) -> impl DoubleEndedIterator<Item = &RoundEntry> {
        self.rounds.iter()
    }

    /// A round that is kept.
    pub fn round(&self, round: u64) -> Option<&RoundEntry> {
        self.rounds.iter().rev().find(|entry| entry.round == round)
    }

    /// Totals by peer, hexadecimal, since this daemon started.
    pub fn totals(&self) -> &SortedMap<String, PeerTotals> {
        &self.totals
    }

    /// Rounds without a result.
    pub const fn without_result(&self) -> WithoutResult {
        self.without_result
    }

    pub(super) fn result_of(&self, round: u64) -> Option<RoundResult> {
        self.round(round)?.result
    }

    pub(super) fn observe(&mut self, now: Time, event: &Event) {
        match event {
            Event::Trained { round, .. } => self.at(round.0).trained = true,
            Event::Group { round, members } => self.at(round.0).members = members.clone(),
            Event::Decided {
                round,
                contributors,
                ..
            } => self.decided(round.0, contributors),
            Event::Voided { round, .. } => self.at(round.0).void += 1,
            Event::Mixed { round, inputs, .. } => {
                let open = self.at(round.0);
                open.mixed = Some(open.mixed.map_or(*inputs, |mixed| mixed.max(*inputs)));
            }
            Event::Alone { round, .. } => self.at(round.0).alone = true,
            Event::RoundEnded { round, .. } => {
                let open = std::mem::take(self.at(round.0));
                let entry = self.close(open, now);
                self.push(entry);
            }
            Event::CatchUp { from, to, .. } => {
                // Rounds beyond those that are kept are not walked through.
                let oldest = to.0.saturating_sub(ROUNDS_MAX as u64).max(from.0);
                let trained = self.close_unfinished(from.0);
                for round in oldest..to.0 {
                    let trained = trained && round == from.0;
                    self.missed(round, RoundResult::Skipped, trained, false, now);
                }
            }
            Event::Replayed { round, kept } => {
                let trained = self.close_unfinished(round.0);
                self.missed(round.0, RoundResult::Replayed, trained, *kept, now);
            }
            _ => {}
        }
    }

    /// The round under way. An older one that did not end is forgotten.
    fn at(&mut self, round: u64) -> &mut OpenRound {
        if self.open.round != round {
            self.open = OpenRound {
                round,
                ..OpenRound::default()
            };
        }
        &mut self.open
    }

    fn decided(&mut self, round: u64, shards: &[Vec<(PeerId, f64)>]) {
        let open = self.at(round);
        open.decided += 1;
        for shard in shards {
            open.shards += 1;
            for (peer, weight) in shard {
                let full = open.counted.len() >= PEERS_MAX;
                if !full || open.counted.contains_key(peer) {
                    let entry = open.counted.entry(*peer).or_insert((*weight, 0));
                    entry.1 += 1;
                }
            }
        }
    }

    fn close(&self, open: OpenRound, now: Time) -> RoundEntry {
        let result = match (open.decided, open.void, open.mixed) {
            (0, 0, Some(_)) => Some(RoundResult::Mixed),
            (0, 0, None) => open.alone.then_some(RoundResult::Alone),
            (0, _, _) => Some(RoundResult::Void),
            (_, 0, _) => Some(RoundResult::Decided),
            _ => Some(RoundResult::Partial),
        };
        let total: f64 = open.counted.values().map(|(w, n)| w * *n as f64).sum();
        let mut peers = SortedMap::new();
        for (peer, (weight, shards)) in &open.counted {
            let standing = if *shards == open.shards && open.void == 0 {
                Standing::Counted
            } else {
                Standing::Partly
            };
            let shared = Share {
                standing,
                weight: *weight,
                share: weight * *shards as f64 / total.max(f64::MIN_POSITIVE),
            };
            peers.insert(peer.to_hex(), shared);
        }
        let rest = match (result, open.shards) {
            (Some(RoundResult::Void), _) => Standing::NoResult,
            // In a grid a decision does not name its contributors.
            (Some(RoundResult::Decided | RoundResult::Partial), 0) | (None, _) => Standing::Unknown,
            _ => Standing::LeftOut,
        };
        for peer in open.members.iter().take(PEERS_MAX) {
            let left_out = Share::without_weight(rest);
            peers.entry(peer.to_hex()).or_insert(left_out);
        }
        RoundEntry {
            round: open.round,
            result,
            unix_s: Some(now.as_secs_f64()),
            trained: open.trained,
            inputs: open.mixed,
            peers,
        }
    }

    /// The round under way ends without this daemon. Returns whether it had trained that one.
    fn close_unfinished(&mut self, round: u64) -> bool {
        let open = std::mem::take(&mut self.open);
        open.round == round && open.trained
    }

    /// A round was decided without this daemon; `kept` where its training stays on top of the result.
    fn missed(&mut self, round: u64, result: RoundResult, trained: bool, kept: bool, now: Time) {
        let standing = match (trained, kept) {
            (true, true) => Standing::Kept,
            (true, false) => Standing::LeftOut,
            (false, _) => Standing::Absent,
        };
        self.push(RoundEntry {
            round,
            result: Some(result),
            unix_s: Some(now.as_secs_f64()),
            trained,
            inputs: None,
            peers: SortedMap::from([(self.me.clone(), Share::without_weight(standing))]),
        });
    }

    fn push(&mut self, entry: RoundEntry) {
        // Others may have decided a round that was void here: then this daemon takes their result over.
        let before = self.result_of(entry.round);
        if let Some(count) = self.without_result.of(before) {
            *count -= 1;
        }
        if let Some(count) = self.without_result.of(entry.result) {
            *count += 1;
        }
        let decided = matches!(
            entry.result,
            Some(RoundResult::Decided | RoundResult::Partial)
        );
        if decided {
            for (peer, totals) in &mut self.totals {
                totals.absent += u64::from(!entry.peers.contains_key(peer));
            }
        }
        for (peer, share) in &entry.peers {
            if self.totals.len() >= TOTALS_MAX && !self.totals.contains_key(peer) {
                continue;
            }
            let totals = self.totals.entry(peer.clone()).or_default();
            match share.standing {
                Standing::Counted => totals.counted += 1,
                Standing::Partly => totals.partly += 1,
                Standing::LeftOut | Standing::Kept => totals.left_out += 1,
                Standing::Absent => totals.absent += 1,
                Standing::NoResult | Standing::Unknown => {}
            }
        }
        self.rounds.push_back(entry);
        if self.rounds.len() > ROUNDS_MAX {
            self.rounds.pop_front();
        }
    }
}
