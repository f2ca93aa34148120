//! Every bound, with its reason.

/// Certificates from the run's key to a peer: the owner, two admitters, an invite and the peer.
pub const CHAIN_MAX: usize = 5;

/// Encoded bytes of a chain: a certificate has fewer than 160.
pub const CHAIN_BYTES_MAX: usize = 1024;

/// Seconds that two clocks may differ. Certificates of the next hour are accepted.
pub const CLOCK_SKEW_S: u64 = 3600;

/// Seconds for which a peer's certificate is valid, unless its issuer chooses otherwise: 90 days.
/// After that time a member that missed a revocation is safe again.
pub const MEMBER_LIFE_S: u64 = 90 * DAY_S;

/// The longest life of a certificate: one year.
pub const LIFE_MAX_S: u64 = 366 * DAY_S;

/// Seconds for which an invite is valid, unless its issuer chooses otherwise: a week.
pub const INVITE_LIFE_S: u64 = 7 * DAY_S;

/// Seconds of a day.
pub const DAY_S: u64 = 86_400;

/// Characters of a run's name.
pub const NAME_MAX: usize = 128;

/// Addresses in an invite.
pub const INVITE_ADDRESSES_MAX: usize = 8;

/// Bytes of one address in an invite.
pub const INVITE_ADDRESS_BYTES_MAX: usize = 256;

/// Characters of an invite's line, so that a pasted file is refused at once.
pub const INVITE_LINE_MAX: usize = 8192;

/// Members that are remembered, fewer than 700 bytes each.
pub const MEMBERS_MAX: usize = 4096;

/// Members that are remembered of those that one admitter of the owner let in, and those that these let in. It
/// takes eight admitters that invent members to fill a register.
pub const ADMITTER_MEMBERS_MAX: usize = MEMBERS_MAX / 8;

/// Revocations that are remembered, fewer than 800 bytes each.
pub const REVOCATIONS_MAX: usize = 1024;

/// Revocations that are remembered of one admitter of the owner and those that it let in.
pub const ADMITTER_REVOCATIONS_MAX: usize = REVOCATIONS_MAX / 8;

/// Bytes of a register in its file, for writing and for reading. A full one has fewer: 2.8 MB of members, 0.8
/// of revocations, and 1 KiB at most for each ban ([`PROOF_BYTES_MAX`](murmurate_protocol::limits::PROOF_BYTES_MAX)).
pub const REGISTER_BYTES_MAX: usize = 10 << 20;

/// Bytes of one message at the gate.
pub const GATE_MESSAGE_MAX: usize = 4096;

/// Chains and revocations in one message of news.
pub const NEWS_ITEMS_MAX: usize = 16;

/// Bytes of one message of news.
pub const NEWS_BYTES_MAX: usize = 64 << 10;
