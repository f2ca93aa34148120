//! The control messages.

use crate::limits::{BALLOTS_MAX, FRAGMENTS_MAX, GROUP_MEMBERS_MAX, RECORDS_PER_MESSAGE_MAX};
use crate::wire::{Ballot, Held, PeerRecord, ShardPlan, ShardVersion, WireError};
use crate::{Digest, FragmentId, LayoutHash, PeerId, PlanHash, Round, RunId, StateId};
use core::fmt;
use serde::{Deserialize, Serialize};

/// How far a peer is on its way to its first round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Muster {
    /// It has not met as many others as it begins with.
    #[default]
    Waiting,
    /// It has, and waits until they have too.
    Met,
    /// It has begun.
    Begun,
}

/// The first message on every link: who takes part in what, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether it takes part in rounds already, or still fetches a state.
    pub ready: bool,
    /// Whether it has begun.
    pub muster: Muster,
}

/// Why a peer is refused or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// It leaves of its own will.
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
    /// The group is full.
    Full,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leaving => "it leaves",
            Self::OtherRun => "it belongs to another run (compare `run.name` in both configs)",
            Self::OtherModel => "it trains another model (compare the `[task]` tables)",
            Self::OtherPlan => {
                "it follows another plan (compare preset and strategy tables in both configs)"
            }
            Self::OtherVersion => {
                "it speaks another version of the protocol (install the same release on both)"
            }
            Self::Misbehaved => "it broke the protocol's rules too often",
            Self::Full => "the run has as many peers as one group can hold",
        })
    }
}

/// A member of a group with the weight of its contribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The peer.
    pub peer: PeerId,
    /// Samples it trained on this round.
    pub weight: f64,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Opens a link.
    Hello(Hello),
    /// Peers that the sender knows of.
    Records(Vec<PeerRecord>),
    /// The sender leaves or refuses the receiver.
    Goodbye(Reason),
    /// The sender's training of this round ended; sent to everybody.
    Ready {
        /// The round.
        round: Round,
        /// Samples it trained on.
        weight: f64,
        /// Hash of the anchor it started from.
        anchor: Digest,
    },
    /// The round's group.
    Propose {
        /// The round.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The members in `PeerId` order.
        members: Vec<Member>,
    },
    /// The sender does not join the proposed group.
    Decline {
        /// The round.
        round: Round,
        /// The term.
        term: u8,
    },
    /// The round that the receiver spoke of goes on, or went on, without it.
    Behind {
        /// The first round the receiver can take part in again.
        round: Round,
        /// Whether the receiver's anchor is not the swarm's: past rounds will not mend it.
        resync: bool,
    },
    /// The sender holds all shards in these versions and would apply them.
    Vote {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// In which ballot.
        ballot: Ballot,
        /// Shard by shard.
        versions: Vec<ShardVersion>,
    },
    /// Asks for a [`Message::Promise`] in a higher ballot.
    Prepare {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// The sender votes in no lower ballot any more, and says what it has.
    Promise {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// The ballot.
        ballot: Ballot,
        /// The highest ballot it voted in, and for what.
        voted: Option<(Ballot, Vec<ShardVersion>)>,
        /// Aggregates it holds.
        held: Vec<Held>,
        /// Members it still has hope for: bits in `PeerId` order. Whoever it waited for in vain
        /// is not waited for again.
        hopeful: u64,
    },
    /// What the coordinator makes of the promises: vote for this in this ballot.
    Repair {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// The ballot.
        ballot: Ballot,
        /// The members that promised: bits in `PeerId` order. Nobody else is waited for.
        alive: u64,
        /// Shard by shard.
        shards: Vec<ShardPlan>,
    },
    /// The coordinator found no majority: the fragment's exchange is void.
    Void {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// The exchange of a fragment ended with these versions.
    Decided {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// In which ballot's number.
        ballot: u8,
        /// The members, so that a straggler can tell the contributors.
        members: Vec<Member>,
        /// Shard by shard.
        versions: Vec<ShardVersion>,
    },
    /// Asks for the decisions of a past round.
    HistoryAsk {
        /// The round that is lacking.
        round: Round,
    },
    /// The sender no longer has, or never had, the decisions of that round.
    HistoryRefuse {
        /// The round.
        round: Round,
    },
    /// Asks a peer to keep a state for the sender to fetch.
    StateAsk {
        /// States that open an earlier round are of no use to the sender.
        at_least: Round,
    },
    /// A state that can be fetched from the sender.
    StateOffer(StateId),
    /// The sender has no state to give.
    StateRefuse,
    /// A sign of life, and how far the sender is.
    Alive {
        /// The round it is in.
        round: Round,
        /// Whether it takes part in rounds.
        ready: bool,
        /// Hash of its anchor.
        anchor: Digest,
        /// Whether it has begun.
        muster: Muster,
    },
    /// The sender has reduced a shard, and others hand it on: what it must be.
    Reduced {
        /// The round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The group's tag.
        group: u64,
        /// The shard.
        shard: u16,
        /// The sender's version of it.
        version: ShardVersion,
    },
    /// The sender owns a shard of the center and lacks the version that the receiver has pulled:
    /// asks for it.
    CenterAsk {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
    /// The sender does not own the shard of the center that the receiver contributed to.
    CenterMoved {
        /// The receiver's round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
    /// Asks for the parameters that the receiver published last.
    PullAsk {
        /// The sender's round, by which it knows the answer.
        round: Round,
    },
}

/// The same answer for every check: which field is out of range.
fn ok(condition: bool, field: &str) -> Result<(), WireError> {
    match condition {
        true => Ok(()),
        false => Err(WireError::OutOfRange {
            field: field.to_owned(),
        }),
    }
}

fn weight_ok(weight: f64) -> bool {
    weight.is_finite() && (0.0..=1e18).contains(&weight)
}

fn group_ok(members: &[Member]) -> Result<(), WireError> {
    ok(
        !members.is_empty() && members.len() <= GROUP_MEMBERS_MAX,
        "members",
    )?;
    ok(
        members.iter().all(|m| weight_ok(m.weight)),
        "members.weight",
    )?;
    ok(
        members.is_sorted_by(|a, b| a.peer < b.peer),
        "members.order",
    )
}

fn part_ok(fragment: FragmentId, ballot: u8, shards: usize) -> Result<(), WireError> {
    ok(usize::from(fragment.0) < FRAGMENTS_MAX, "fragment")?;
    ok(ballot < BALLOTS_MAX, "ballot")?;
    ok(shards <= GROUP_MEMBERS_MAX, "shards")
}

impl Message {
    /// Checks every count and range.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field.
    pub fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Records(records) => {
                ok(records.len() <= RECORDS_PER_MESSAGE_MAX, "records")?;
                records.iter().try_for_each(PeerRecord::check)
            }
            Self::Ready { weight, .. } => ok(weight_ok(*weight), "weight"),
            Self::Propose { members, .. } => group_ok(members),
            Self::Vote {
                fragment,
                ballot,
                versions,
                ..
            } => part_ok(*fragment, ballot.number, versions.len()),
            Self::Prepare {
                fragment, ballot, ..
            }
            | Self::Void {
                fragment, ballot, ..
            } => part_ok(*fragment, ballot.number, 0),
            Self::Promise {
                fragment,
                ballot,
                voted,
                held,
                ..
            } => {
                part_ok(*fragment, ballot.number, held.len())?;
                let (number, shards) = match voted {
                    Some((ballot, versions)) => (ballot.number, versions.len()),
                    None => (0, 0),
                };
                part_ok(*fragment, number, shards)
            }
            Self::Repair {
                fragment,
                ballot,
                shards,
                ..
            } => part_ok(*fragment, ballot.number, shards.len()),
            Self::Decided {
                fragment,
                ballot,
                members,
                versions,
                ..
            } => {
                part_ok(*fragment, *ballot, versions.len())?;
                group_ok(members)
            }
            Self::Reduced {
                fragment, shard, ..
            } => part_ok(*fragment, 0, usize::from(*shard)),
            Self::StateOffer(state) => {
                ok(state.bytes <= crate::limits::STATE_BYTES_MAX, "state.bytes")
            }
            Self::Hello(_)
            | Self::Goodbye(_)
            | Self::Decline { .. }
            | Self::Behind { .. }
            | Self::HistoryAsk { .. }
            | Self::HistoryRefuse { .. }
            | Self::StateAsk { .. }
            | Self::StateRefuse
            | Self::CenterAsk { .. }
            | Self::CenterMoved { .. }
            | Self::PullAsk { .. }
            | Self::Alive { .. } => Ok(()),
        }
    }
}
