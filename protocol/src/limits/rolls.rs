//! Bounds of what the peers of a grid or of cells agree on: the roll, its founding, and the ledger of the
//! data.

use super::{GROUP_MEMBERS_MAX, VIEW_PEERS_MAX};
use core::time::Duration;

/// Most peers in a roll: 64 rows of 256.
pub const ROLL_PEERS_MAX: usize = 256 * GROUP_MEMBERS_MAX;

/// Most columns of a grid: the peers of a row.
pub const GRID_COLUMNS_MAX: usize = ROLL_PEERS_MAX / GROUP_MEMBERS_MAX;

/// How often a peer asks members of its column for results that its row does not hand on, before it
/// takes the round over as a straggler does.
pub const GRID_ASKS_MAX: u8 = 4;

/// Rounds without a contribution after which a peer leaves the roll though its link is up.
pub const GRID_ABSENT_ROUNDS: u8 = 3;

/// Newcomers that may wait for a place at one peer.
pub const APPLICANTS_MAX: usize = 256;

/// Peers from which random cells are drawn, and so links of a peer along an axis: up to here the views of
/// all peers hold the whole swarm.
pub const DEALT_POOL_MAX: usize = VIEW_PEERS_MAX / 2;

/// Changes of seats that a peer of a cell passes on at a time: the newest.
pub const CELL_NEWS_MAX: usize = 64;

/// Most bytes of the changes of seats in one message.
pub const CELL_NEWS_BYTES_MAX: usize = 32 * 1024;

/// For how long a peer of a cell may be gone before a newcomer gets its seat.
pub const CELL_SEAT_KEPT: Duration = Duration::from_secs(30);

/// Rounds alone, while others go on, after which a peer of a cell takes over a state, and with it the roll.
pub const CELL_ALONE_ROUNDS: u32 = 8;

/// Times that a peer of a cell waits for another peer to form it, before it goes on alone.
pub const CELL_FORMING_WAITS_MAX: u8 = 4;

/// Peers that choose the first roll of a run.
pub const REGISTRARS_MAX: usize = 63;

/// Between two steps of a founding.
pub const FOUNDING_EVERY: Duration = Duration::from_millis(250);

/// Steps without news after which a founder takes its list for complete.
pub const FOUNDING_QUIET_TICKS: u32 = 6;

/// Steps after which a founder that was not answered proposes again.
pub const FOUNDING_RETRY_TICKS: u32 = 12;

/// Records in one message of a founding.
pub const FOUNDING_RECORDS_MAX: usize = 512;

/// Bytes of a roll in states and checkpoints: 512 for each peer of the largest.
pub const ROLL_BYTES_MAX: usize = 512 * ROLL_PEERS_MAX;

/// Bytes of one page of a roll.
pub const ROLL_PAGE_BYTES: usize = 48 * 1024;

/// Links with peers of the roll that are neither in the row nor in the column of a peer.
pub const STRANGER_LINKS: usize = 4;

/// Number of links with such peers beyond which a peer closes some.
pub const STRANGER_LINKS_MAX: usize = 2 * STRANGER_LINKS;

/// Rolls that the peers of one process share at a time: of neighbouring rounds, and of peers that
/// disagree.
pub const ROLLS_SHARED_MAX: usize = 8;

/// Members that a newcomer asks for a place.
pub const SPONSORS_MAX: usize = 3;

/// Most bytes of the change of a roll that one round decides: about 200 newcomers.
pub const ROLL_CHANGE_BYTES_MAX: usize = 48 * 1024;

/// Pools of data in one run.
pub const DATA_POOLS_MAX: usize = 64;

/// Peers to which data is dealt, in all pools together.
pub const DATA_MEMBERS_MAX: usize = ROLL_PEERS_MAX;

/// Blocks that one peer is dealt in one round.
pub const DATA_QUOTA_MAX: u16 = 1 << 14;

/// Runs of blocks of one pool that wait to be trained again. Where there would be more, blocks between
/// two of them are trained again too.
pub const DATA_RUNS_MAX: usize = ROLL_PEERS_MAX;

/// How far behind the first block that no peer was dealt a peer may take blocks by itself.
pub const DATA_AHEAD_MAX: u64 = 1 << 32;

/// Bytes of a ledger in states and checkpoints: 128 for each peer and 16 for each run.
pub const DATA_LEDGER_BYTES_MAX: usize = 128 * DATA_MEMBERS_MAX + 16 * DATA_RUNS_MAX;

/// Bytes around roll and ledger where the two are written together, with the losses or waits and the codec that
/// members agree on.
pub const SHARED_HEAD_BYTES: usize = 128;

/// Bytes of the part of a note that says whose contributions a round counted: 5 for each peer of the
/// largest roll.
pub const DATA_TALLY_BYTES_MAX: usize = 5 * ROLL_PEERS_MAX + 64 * 16 + 8;

/// Contributions that one member of a column sums. Its row has at most [`GRID_COLUMNS_MAX`], and it may sum
/// for rows that lack a settled member. Those above are trained again.
pub const GRID_TALLY_MAX: usize = 4 * GRID_COLUMNS_MAX;

/// Most bytes of the note of a round of a grid: the change of the roll, and whose contributions counted.
pub const ROUND_NOTE_BYTES_MAX: usize = ROLL_CHANGE_BYTES_MAX + DATA_TALLY_BYTES_MAX + 16;
