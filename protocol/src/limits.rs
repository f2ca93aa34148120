//! Every bound of the system, by name, with its reason.

use core::time::Duration;

/// Bytes of one control message on the wire. The largest is a `Promise` of a full group
/// (128 parts, each a digest, a contributor set and an attempt, twice): under 20 KiB. The rest is
/// room for records with many addresses.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// Peers in one exchange's group: contributor sets are 64-bit masks.
pub const GROUP_MEMBERS_MAX: usize = 64;

/// Members of a group whose trees are packed onto measured links: a parent has four bits, and the bound
/// of a packing goes through all sets of members.
pub const SYNTHESIZED_MEMBERS_MAX: usize = 16;

/// Trees of such a packing: each is a shard, which costs messages of its own.
pub const SYNTHESIZED_TREES_MAX: usize = 16;

/// Ranks between a leaf and its root, with the root. Each one more costs two latencies and rounds sums
/// once more; one rank in between is enough to go around a slow link.
pub const SYNTHESIZED_DEPTH_MAX: usize = 2;

/// Passes over all trees in which a packing may still improve. Most end after fewer than ten.
pub const SYNTHESIS_PASSES_MAX: usize = 64;

/// Times that a packing is disturbed and improved again: twice as many find nothing more for the tables
/// of the tests.
pub const SYNTHESIS_KICKS: usize = 8;

/// Megabits per second of a measured link: a terabit, faster than any.
pub const LINK_MBIT_MAX: u32 = 1_000_000;

/// Peers that one peer knows. Up to here views are complete.
pub const VIEW_PEERS_MAX: usize = 256;

/// Peers that one peer of a grid knows: the row and the column of the largest roll, and others through
/// which news of the rest come.
pub const GRID_VIEW_PEERS_MAX: usize = 512;

/// Peers up to which a peer of a grid adds more to its view because it hears of them: it needs few
/// beside its counterparts, and each peer of thousands would otherwise keep the records of hundreds.
pub const GRID_STRANGERS_MAX: usize = VIEW_PEERS_MAX / 4;

/// Links that one peer opens by itself when its view is no longer complete.
pub const ACTIVE_LINKS_MAX: usize = 16;

/// Bytes of a site's label.
pub const SITE_BYTES_MAX: usize = 32;

/// The highest rate class: faster than any link.
pub const RATE_CLASS_MAX: u8 = 40;

/// Peers that are this round trip apart, or less, are at one site.
pub const SITE_ROUND_TRIP: Duration = Duration::from_millis(5);

/// Measurements in a row after which a peer is at another site.
pub const SITE_LOOKS: u8 = 3;

/// Peers nearby that a peer remembers.
pub const SITE_PEERS_MAX: usize = 64;

/// Addresses in one peer record.
pub const RECORD_ADDRESSES_MAX: usize = 16;

/// Bytes of one address in a peer record.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// Peer records in one message.
pub const RECORDS_PER_MESSAGE_MAX: usize = 32;

/// Settings in one message: a configuration has fewer keys.
pub const SETTINGS_MAX: usize = 256;

/// Bytes of a setting's key: the longest of a configuration have half of it.
pub const SETTING_KEY_BYTES_MAX: usize = 64;

/// Bytes of the records in one message: a frame must hold them, however long each is.
pub const RECORDS_BYTES_MAX: usize = FRAME_BYTES_MAX - 1024;

/// Bytes of a record's signature (Ed25519).
pub const SIGNATURE_BYTES_MAX: usize = 64;

/// How long a peer record is believed.
pub const RECORD_LIFETIME: Duration = Duration::from_secs(3600);

/// How far another machine's clock may be ahead when a record's expiry is judged.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(600);

/// Fragments of one plan.
pub const FRAGMENTS_MAX: usize = 1024;

/// Slices that may wait for a round which this peer has not reached, per remote peer.
pub const EARLY_SLICES_MAX: usize = 2 * GROUP_MEMBERS_MAX;

/// As [`EARLY_SLICES_MAX`], for schedules in which one peer sends many shards: a partial sum and an
/// aggregate of every shard of every fragment in the window.
pub const EARLY_SCHEDULED_MAX: usize = 2 * GROUP_MEMBERS_MAX * WINDOW_FRAGMENTS_MAX;

/// Control messages that may wait for a round which this peer has not reached.
pub const EARLY_MESSAGES_MAX: usize = 16 * GROUP_MEMBERS_MAX;

/// Of these, those of one remote peer: the others' must not be crowded out.
pub const EARLY_MESSAGES_PER_PEER_MAX: usize = EARLY_MESSAGES_MAX / 16;

/// Rounds ahead of ours that a message may speak of before it is dropped.
pub const ROUNDS_AHEAD_MAX: u64 = 2;

/// Rounds for which a linked peer that fell behind still counts towards the majority that a group
/// needs. Otherwise the last peer to keep up would continue alone while all others catch up.
pub const ABSENT_ROUNDS_MAX: u64 = 8;

/// How long a member whose link is gone still counts towards the majority where members sign: longer than
/// a restart or a short partition.
pub const LOST_MEMBER_WAIT: Duration = Duration::from_secs(60);

/// Shards up to which a vote names the version of each. A vote on more shards is for a digest, so that the
/// votes of large groups stay small; a member that cannot name the versions asks.
pub const VOTE_NAMES_MAX: usize = 8;

/// Times that a decided exchange looks for missing bytes before the peer gives it up and takes over
/// the swarm's state instead.
pub const SEARCHES_MAX: u8 = 3;

/// Decided rounds in a row to which a member that takes part may contribute nothing before the others
/// go on without it.
pub const ABSENCE_ROUNDS_MAX: u32 = 8;

/// Rounds for which the others go on without such a member, at most. The first time it is
/// `AWAY_ROUNDS_MAX >> ABSENCE_MAX` rounds, and every time twice as many.
pub const AWAY_ROUNDS_MAX: u64 = 512;

/// How often that doubles.
pub const ABSENCE_MAX: u32 = 6;

/// Decided rounds for which such a member is waited for when it is given another chance.
pub const CHANCE_ROUNDS: u64 = 4;

/// Contributions to decided rounds after which such a member is waited for again as any other.
pub const RETURN_ROUNDS: u32 = 2;

/// Ballots in one exchange before it is void: the first and one for each of three deaths.
pub const BALLOTS_MAX: u8 = 4;

/// Ballots in one exchange whose group survives liars, before two for each member. Their waits grow, so that
/// they last for minutes; then the round is tried again in another group.
pub const BALLOTS_SIGNED_MIN: u8 = 16;

/// The same with two for each member of the largest group.
pub const BALLOTS_SIGNED_MAX: u8 = BALLOTS_SIGNED_MIN + 2 * GROUP_MEMBERS_MAX as u8;

/// From this ballot on a coordinator that may propose anything proposes that the round is void.
pub const BALLOTS_UNTIL_VOID: u8 = 4;

/// Messages of one peer whose signatures may wait to be checked. A peer that sends more loses them:
/// checking takes far longer than sending.
pub const UNCHECKED_MESSAGES_MAX: usize = 64;

/// Encoded bytes of a proof that a peer lies: two statements with their signatures.
pub const PROOF_BYTES_MAX: usize = 1024;

/// The least time for which a member with a quorum of votes waits for the votes of all others.
pub const LOCK_AFTER_MIN: Duration = Duration::from_millis(20);

/// Proposers tried for one round before it is void.
pub const TERMS_MAX: u8 = 4;

/// Decided rounds whose aggregates are kept for stragglers and newcomers.
pub const HISTORY_ROUNDS_MAX: usize = 32;

/// Encoded bytes of decided rounds kept beyond the newest.
pub const HISTORY_BYTES_MAX: u64 = 16 << 20;

/// Encoded bytes kept of the newest decided round. A larger round loses its first fragments, and a
/// peer that missed it takes over the swarm's state instead.
pub const HISTORY_NEWEST_BYTES_MAX: u64 = 64 << 20;

/// Rounds from a pinned state on that are kept whatever their size, while it is pinned.
pub const HISTORY_PINNED_ROUNDS_MAX: u64 = 4;

/// Encoded bytes of one peer's contributions to the fragments that are exchanged at a time: what a
/// link of 1 Gbit/s and 250 ms holds.
pub const WINDOW_BYTES: u64 = 32 << 20;

/// Fragments that are exchanged at a time. Early slices of one peer must fit [`EARLY_SLICES_MAX`].
pub const WINDOW_FRAGMENTS_MAX: usize = EARLY_SLICES_MAX / 4;

/// How long a peer with a checkpoint waits for all that it trained with, if no run is under way; after
/// that, most of them suffice.
pub const COMPANIONS_WAIT: Duration = Duration::from_secs(3);

/// The longest pause between two reports that peers are missing.
pub const MISSING_AGAIN_MAX: Duration = Duration::from_secs(600);

/// Rounds after which a peer no longer counts what its side of a split has done: the others are taken
/// for gone. A day of rounds of a tenth of a second, because a side that has forgotten the split would
/// replace the others' state with its own.
pub const BRANCH_ROUNDS_MAX: u64 = 1 << 20;

/// States that a branch may have grown from, of which two branches must share one.
pub const BRANCH_BASES: usize = 8;

/// Rounds whose opening state's hash a peer keeps, to find the bases of a branch: as many as may end
/// before it knows that a link is down.
pub const TRAIL_ROUNDS_MAX: usize = 256;

/// How many times the weight of the heaviest member that a peer has seen, for each member and round, a
/// branch may claim. Machines of another side may be faster, and a round that is tried again trains
/// longer.
pub const BRANCH_WEIGHT_FACTOR: f64 = 16.0;

/// Sides that one merge brings together.
pub const MERGE_SIDES_MAX: usize = 8;

/// Attempts to merge branches. After that the peers on one side take over the other side's state.
pub const MERGE_ATTEMPTS_MAX: u8 = 5;

/// How long peers of two branches may see each other before the merge is given up: enough links between
/// them must come up, which are dialled again after pauses of up to 16 s, and rounds must end.
pub const MERGE_WAIT: Duration = Duration::from_secs(900);

/// How long a merge waits for links to members that it has not met, once all others are there.
pub const MERGE_GRACE: Duration = Duration::from_secs(6);

/// How often a peer tells its links that it is alive and how far it is.
pub const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// How long a finished peer stays for others that still need its votes.
pub const LINGER: Duration = Duration::from_secs(10);

/// How often a peer that only observes takes over a state where the others agree on none, at most.
pub const OBSERVE_EVERY: Duration = Duration::from_secs(30);

/// Push-sum slices of one sender and one fragment that may wait to be mixed.
pub const INBOX_SLICES_MAX: usize = 256;

/// Neighbours that one round of exchanges between two begins with, and as many that it answers: six
/// bits of a slice's name tell them apart.
pub const NEIGHBOURS_MAX: usize = 32;

/// Rounds after which a peer that waits for a neighbour's half begins an exchange with another one,
/// and for which a relayed sum counts if no newer one arrives.
pub const PATIENCE_ROUNDS: u64 = 4;

/// Rounds in a row in which a neighbour of relay-sum that sends nothing is waited for. A neighbour
/// that lost a message or two stays in step, and one that stalls costs this many deadlines.
pub const RELAY_SUM_MISSES_MAX: u8 = 3;

/// Relayed sums of one neighbour and one fragment that may wait. While a neighbour waits for this
/// peer, it is at most a round ahead; otherwise each message replaces the one before it.
pub const RELAY_SUM_WAITING_MAX: usize = 4;

/// Relayed sums of one fragment that may be under way to one neighbour. A neighbour that does not
/// take them gets no more, so the bytes kept for it stay bounded.
pub const RELAY_SUM_UNDER_WAY_MAX: usize = 2;

/// Differences of one fragment that a peer keeps to push them again. In the exchange `differences`
/// four of the usual codecs' 8 bits are as long as the whole copy that is pushed where one is gone.
pub const DIFFERENCES_KEPT: u32 = 4;

/// Differences of one neighbour and one fragment that may wait for the one before them: those that
/// their sender keeps, twice. A copy that lacks more is asked for as a whole.
pub const DIFFERENCES_WAITING_MAX: usize = 8;

/// How often a slice between two neighbours that did not arrive is pushed again in one round.
pub const PUSHES_AT_ONCE_MAX: u8 = 3;

/// Groups of one round of which a receiver remembers that it was in them; after that no second push of a
/// name replaces the first.
pub const JOINED_GROUPS_MAX: usize = 64;

/// Statements of which a host remembers the signature that it made. It sends each to all members of a
/// group.
pub const SEALS_MADE_MAX: usize = 16;

/// Right signatures that a host remembers: those of some rounds of the largest group.
pub const SEALS_CHECKED_MAX: usize = 16 * GROUP_MEMBERS_MAX;

/// Donors that one state transfer draws on.
pub const DONORS_MAX: usize = 4;

/// Rounds of which a peer remembers, across restarts, with which parameters it began them, to vouch for
/// states.
pub const OPENINGS_MAX: usize = 1024;

/// How often peers that are silent are asked again with which parameters a round began.
pub const REST_ASKED_AGAIN: u8 = 2;

/// How often the others are asked about an offered state before its donors have helped in vain.
pub const VOUCHERS_SOUGHT_MAX: u8 = 4;

/// How long a pinned state is kept after its last request. A peer that downloads it asks for it
/// again every [`ALIVE_EVERY`].
pub const PIN_LIFETIME: Duration = Duration::from_secs(30);

/// Bytes of one chunk of a state transfer.
pub const STATE_CHUNK_BYTES: usize = 1 << 20;

/// Bytes of a state that this build takes from the network (64 GiB).
pub const STATE_BYTES_MAX: u64 = 64 << 30;

/// Bytes of one encoded slice that this build takes from the network. A plan's own bound is
/// usually far lower; this one is checked where no plan is known yet.
pub const SLICE_BYTES_MAX: u64 = 4 << 30;

/// Misbehaviour score at which a peer is cut off.
pub const SCORE_MAX: u32 = 100;

/// Attempts to dial one record before it is left alone until it changes.
pub const DIAL_ATTEMPTS_MAX: u32 = 6;

/// Measured quantities (a wait for a peer) that deadlines are made from.
pub const DEADLINES_MAX: usize = 8 * VIEW_PEERS_MAX;

/// Samples of one measured quantity that a deadline is made from.
pub const DEADLINE_SAMPLES_MAX: usize = 32;

/// A balanced round has at least one of this many inner steps of the plan, however slow a machine is:
/// one that is slower still trains a little, and the others wait for it.
pub const BALANCED_SHARE: u32 = 4;

/// Last rounds whose median is a machine's speed in a balanced round: enough that the fastest of many
/// is not the luckiest, and few enough to follow a machine that slows down.
pub const BALANCED_ROUNDS: usize = 7;

/// Last pushes to a peer whose median is the rate of the link, where the topology chooses by it.
pub const RATES_KEPT: usize = 5;

/// Bytes of a value that this build decodes where nothing else bounds it: a header, an invite, a list.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Bytes of a snapshot that this build reads back: the largest roll and ledger, and as much as any other
/// value.
pub const SNAPSHOT_BYTES_MAX: usize = ROLL_BYTES_MAX + DATA_LEDGER_BYTES_MAX + VALUE_BYTES_MAX;

/// Bytes of one entry of a record: a start brings a snapshot, and the answer to a `Load` a roll. A
/// control message or a plan fits many times.
pub const RECORD_ENTRY_BYTES_MAX: usize = SNAPSHOT_BYTES_MAX + VALUE_BYTES_MAX;

/// The largest training loss that a peer may claim: training that still goes anywhere has a smaller one,
/// and quotients of losses stay finite.
pub const LOSS_MAX: f32 = 1e30;

/// Codecs of a ladder from which a run chooses by measured waits: from 32 bits of a value to 2 by halves, and one
/// between.
pub const RUNGS_MAX: usize = 6;

/// Directives of the owner that still count: a change of each kind for ten stretches of a run, and more.
/// The oldest are left out beyond that.
pub const DIRECTIVES_MAX: usize = 64;

/// Bytes of the binary's version in a record.
pub const RECORD_BINARY_BYTES_MAX: usize = 64;

/// Bytes of a topology in a record.
pub const RECORD_TOPOLOGY_BYTES_MAX: usize = 64;

/// Bytes of the reason why a record was cut.
pub const RECORD_REASON_BYTES_MAX: usize = 256;

/// Outputs that the queue keeps room for once it is empty.
pub const OUTPUTS_KEPT: usize = 16;

/// Outputs that one call of `handle` may leave in the queue before it is taken for a bug: the
/// decisions of every fragment for every peer that asked for them.
pub const OUTPUTS_MAX: usize = 4 * FRAGMENTS_MAX * VIEW_PEERS_MAX;

/// Rounds to which a peer brings nothing after a contribution that it could not make, where a group sums all
/// contributions or none.
pub const REST_ROUNDS: u64 = 8;

/// Broken rules that one input may uncover beside its own.
pub const ACCUSED_MAX: usize = VIEW_PEERS_MAX;

/// Bytes of a daemon's vitals with their signature: they are said again every few seconds, of every
/// daemon to every other one.
pub const VITALS_BYTES_MAX: usize = 512;

/// Bytes of a daemon's name.
pub const VITALS_NAME_BYTES_MAX: usize = 32;

/// Bytes of the program's version in vitals.
pub const VITALS_VERSION_BYTES_MAX: usize = 24;

/// Awaited peers that vitals name.
pub const VITALS_WAITING_MAX: usize = 3;

/// Peers whose vitals one daemon keeps.
pub const VITALS_PEERS_MAX: usize = 256;

/// Vitals in one message.
pub const VITALS_AT_ONCE_MAX: usize = 32;

/// Bytes of one message about vitals: as many vitals as it may have, or a list of all peers.
pub const VITALS_MESSAGE_BYTES_MAX: usize = 17 << 10;

// Of what the peers of a grid or of cells agree on: the roll, its founding, and the ledger of the data.

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

// Of scores and ratings, where contributions are admitted by them.

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

// Of what peers keep for others that pull from them.

/// Iterates that a peer keeps for partners that are behind it, where `pull` answers with that of the
/// question's round.
pub const PULL_QUEUE_MAX: usize = 32;

/// Encoded bytes of these iterates. Beyond that the oldest go, and only the newest always stays: a
/// partner that asks for one that is gone gets the oldest that is left.
pub const PULL_QUEUE_BYTES_MAX: u64 = 4 << 30;

/// Means of one fragment that a peer keeps for members of its groups that are late.
pub const GROUP_MEANS_MAX: usize = 8;
