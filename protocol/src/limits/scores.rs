//! Bounds of scores and ratings, where contributions are admitted by them.

use super::GROUP_MEMBERS_MAX;

/// A score is within this of zero, in millionths of the task's unit of loss: a loss that a contribution
/// changes by a thousand says no more than that it is very good or very bad.
pub const LOSS_SCORE_MAX: i32 = 1_000_000_000;

/// Bytes of what a member says about all contributions of the largest group: a length, and a mark and a
/// number each.
pub const SCORES_BYTES_MAX: u64 = 8 + 5 * GROUP_MEMBERS_MAX as u64;

/// Peers whose ratings are kept: those of the largest group, and as many as three more groups of peers that
/// come back or take their places.
pub const RATINGS_MAX: usize = 4 * GROUP_MEMBERS_MAX;

/// Bytes of all ratings in states and checkpoints: a length, and for each peer its name, its rating and a round.
pub const RATINGS_BYTES_MAX: usize = 8 + 48 * RATINGS_MAX;

/// Parts that a group votes on: a contribution of each member, and its scores.
pub const PARTS_MAX: usize = 2 * GROUP_MEMBERS_MAX;
