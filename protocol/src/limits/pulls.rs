//! Limits of what peers keep for others that pull from them.

/// Iterates that a peer keeps for partners that are behind it, where `pull` answers with that of the
/// question's round.
pub const PULL_QUEUE_MAX: usize = 32;

/// Encoded bytes of these iterates. Beyond that the oldest go, and only the newest always stays: a
/// partner that asks for one that is gone gets the oldest that is left.
pub const PULL_QUEUE_BYTES_MAX: u64 = 4 << 30;

/// Means of one fragment that a peer keeps for members of its groups that are late.
pub const GROUP_MEANS_MAX: usize = 8;
