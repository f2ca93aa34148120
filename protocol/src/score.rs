//! How much contributions lower the loss, as members of a round say it, and who is merged by that
//! ([`Scoring`]).
//!
//! Each member evaluates every other member's contribution by itself: the loss of a held sample of its own
//! data at the anchor, and at the anchor moved by the contribution alone. The difference is a [`Score`]. A
//! member says its scores as a part of the round that the group votes on, so all members know the same scores.
//!
//! **The median over the members is the contribution's score**, each member with one voice, and without what
//! a member says about itself. A claimed weight gives no louder voice. While fewer than half of the others
//! lie, the median is between scores of honest members: no lie brings in a contribution that all honest members
//! found harmful, or leaves one out that all found useful for its score.
//!
//! **A peer's rating is the exponential mean of its scores.** It begins at zero, so that a new name is worth
//! no more than a peer that never helped. Ratings are replicated state, as the ledger of the data is: they are
//! in states and checkpoints.
//!
//! All of it is arithmetic of integers, so all members get the same result.
//!
//! **Source:** Lidin et al. 2025, "Incentivizing Permissionless Distributed Learning of LLMs" (Gauntlet),
//! sections 3 and 4 (numbers not verified). There, validators score each peer's contribution by the loss before
//! and after it, rate peers by OpenSkill, and merge the best; here all members are validators.

use crate::limits::{LOSS_SCORE_MAX, RATINGS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Digest, PeerId, Round};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Scores are counted in this part of the task's unit of loss.
const UNIT: f64 = 1e-6;

/// A rating has this many units for each of a score: rounding loses less than the least score.
const FINER: i64 = 1 << 16;

/// Parts of a rating's memory.
const THOUSAND: i64 = 1000;

/// How a round's contributions are scored and admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scoring {
    /// Batches of the held sample; at least one.
    pub batches: u16,
    /// How many contributions are merged at most; zero where all that lower the loss are.
    pub top: u16,
    /// The share of a rating that a round leaves, in thousandths below 1000.
    pub memory: u16,
}

impl Scoring {
    /// Bytes of the encoding of a plan without it.
    pub(crate) const NONE_BYTES: usize = 1;

    /// Numbers that make sense.
    pub(crate) const fn fits(self) -> bool {
        self.batches > 0 && (self.memory as i64) < THOUSAND
    }
}

/// By how much a contribution lowers the loss of a held sample, in millionths of the task's unit; negative
/// where it raises it. Within [`LOSS_SCORE_MAX`] of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Score(i32);

/// A number that is no score: it is outside the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is no score: it must be within {LOSS_SCORE_MAX} of zero")]
pub struct NoScore {
    /// The number.
    pub found: i32,
}

impl Score {
    /// The lowest: that of a contribution that cannot be evaluated.
    pub const WORST: Self = Self(-LOSS_SCORE_MAX);

    /// That of a loss before and after a contribution. A loss that is not finite afterwards is the worst.
    pub fn of(before: f64, after: f64) -> Self {
        let lower = (before - after) / UNIT;
        if after.is_finite() && !lower.is_nan() {
            Self(
                lower
                    .round()
                    .clamp(-f64::from(LOSS_SCORE_MAX), f64::from(LOSS_SCORE_MAX))
                    as i32,
            )
        } else {
            Self::WORST
        }
    }

    /// In the task's unit of loss.
    pub fn value(self) -> f64 {
        f64::from(self.0) * UNIT
    }
}

impl TryFrom<i32> for Score {
    type Error = NoScore;

    fn try_from(found: i32) -> Result<Self, NoScore> {
        if (-LOSS_SCORE_MAX..=LOSS_SCORE_MAX).contains(&found) {
            Ok(Self(found))
        } else {
            Err(NoScore { found })
        }
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(i32::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// What one member says about the contributions of a group, by the members' places in it. It says nothing about
/// those that it did not evaluate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scores(Vec<Option<Score>>);

impl Scores {
    pub(crate) fn of(members: usize, said: &SortedMap<usize, Score>) -> Self {
        Self(
            (0..members)
                .map(|index| said.get(&index).copied())
                .collect(),
        )
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        crate::wire::encode_value(self)
    }

    /// From bytes, for a group of this many members. `None` where they are no such scores.
    pub(crate) fn from_bytes(bytes: &[u8], members: usize) -> Option<Self> {
        let said: Option<Self> = crate::wire::decode_value(bytes).ok();
        said.filter(|said| said.0.len() == members)
    }

    pub(crate) fn about(&self, index: usize) -> Option<Score> {
        self.0.get(index).copied().flatten()
    }
}

/// A contribution and what members say about it.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) peer: PeerId,
    /// Hash of its bytes.
    pub(crate) digest: Digest,
    pub(crate) said: Vec<Score>,
}

/// Whom a round merges, and the scores that it agrees on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) admitted: SortedSet<PeerId>,
    pub(crate) scores: Vec<(PeerId, Score)>,
}

/// The lower median: with fewer than half of liars, at least one honest score is not above it, and one not
/// below. `None` of nothing.
pub(crate) fn median(mut said: Vec<Score>) -> Option<Score> {
    said.sort_unstable();
    let middle = said.len().checked_sub(1)? / 2;
    said.get(middle).copied()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rating {
    /// In [`FINER`] parts of a score's unit.
    value: i64,
    seen: Round,
}

/// The ratings that peers of a run agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratings(SortedMap<PeerId, Rating>);

impl Ratings {
    /// A peer's rating in the task's unit of loss; zero of one that was never scored.
    pub fn of(&self, peer: PeerId) -> f64 {
        let value = self.0.get(&peer).map_or(0, |rating| rating.value);
        value as f64 / FINER as f64 * UNIT
    }

    /// Peers with a rating.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.0.keys().copied()
    }

    /// The rating after a round: `m r + (1 - m) s` with memory m, rounded towards zero.
    fn after(&self, scoring: Scoring, peer: PeerId, score: Score) -> i64 {
        let before = self.0.get(&peer).map_or(0, |rating| rating.value);
        let memory = i64::from(scoring.memory);
        let score = i64::from(score.0) * FINER;
        (memory * before + (THOUSAND - memory) * score) / THOUSAND
    }

    /// Whom a round merges: of the contributions whose median score is above zero the `top` best by rating,
    /// this round's score included. Of contributions with the same bytes, one: copies add nothing. Equal
    /// ratings go by `PeerId`.
    pub(crate) fn judge(&self, scoring: Scoring, all: &[Judged]) -> Verdict {
        let scored = |one: &Judged| Some((one.peer, median(one.said.clone())?));
        let scores: Vec<(PeerId, Score)> = all.iter().filter_map(scored).collect();
        let by_peer: SortedMap<PeerId, Score> = scores.iter().copied().collect();
        let useful = all.iter().filter_map(|one| {
            let score = by_peer.get(&one.peer).filter(|score| score.0 > 0)?;
            Some((self.after(scoring, one.peer, *score), one))
        });
        let mut ranked: Vec<(i64, &Judged)> = useful.collect();
        ranked.sort_by_key(|(rating, one)| (std::cmp::Reverse(*rating), one.peer));
        let mut bytes = SortedSet::new();
        ranked.retain(|(_, one)| bytes.insert(one.digest));
        if scoring.top > 0 {
            ranked.truncate(usize::from(scoring.top));
        }
        let admitted = ranked.iter().map(|(_, one)| one.peer).collect();
        Verdict { admitted, scores }
    }

    /// A round agreed on these scores. Beyond [`RATINGS_MAX`] the longest unscored are forgotten.
    pub(crate) fn note(&mut self, round: Round, scoring: Scoring, scores: &[(PeerId, Score)]) {
        for (peer, score) in scores {
            let value = self.after(scoring, *peer, *score);
            self.0.insert(*peer, Rating { value, seen: round });
        }
        while self.0.len() > RATINGS_MAX {
            let oldest = self.0.iter().min_by_key(|(peer, r)| (r.seen, **peer));
            let Some(peer) = oldest.map(|(peer, _)| *peer) else {
                return;
            };
            self.0.remove(&peer);
        }
    }

    /// Bounded in number and size, as all that can come about.
    pub(crate) fn are_possible(&self) -> bool {
        let most = i64::from(LOSS_SCORE_MAX) * FINER;
        let fits = |rating: &Rating| (-most..=most).contains(&rating.value);
        self.0.len() <= RATINGS_MAX && self.0.values().all(fits)
    }
}

#[cfg(test)]
mod tests;
