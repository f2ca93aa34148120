//! The kinds of exchange, and what the rest of the workspace must know of each.
//!
//! A new exchange adds a variant and a row of [`ExchangeKind::facts`] here. Everything else asks
//! for a fact, never for a kind; the exceptions are the places that build something of its own for
//! each kind: its state machine (`exchange::build`), its mixer, and its entry in the grid's
//! methods.

use crate::Round;
use crate::limits::{GROUP_MEMBERS_MAX, PULL_QUEUE_MAX};
use serde::{Deserialize, Serialize};

/// Who exchanges with whom, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExchangeKind {
    /// Every peer trains alone. `utilization` compares the other exchanges with this one.
    None,
    /// Push to the round's partners, wait for theirs, and mix what arrived.
    Gossip,
    /// All-reduce with agreement, along the plan's [`Schedule`](crate::Schedule).
    AllReduce,
    /// Every member receives every contribution as it was encoded and combines them itself, with
    /// agreement on which ones.
    Gathered,
    /// A parameter server whose shards some of the members own, all in the same round, with
    /// agreement.
    Server(ServerPlan),
    /// Neighbours exchange encoded differences to replicas of each other.
    Replicas,
    /// Two neighbours average whenever one of them begins to; no peer waits for another.
    Pairs,
    /// Gossip without waiting: push to the round's partners, mix what has already arrived.
    Push,
    /// A parameter server whose peers need not be in the same round.
    Center(CenterPlan),
    /// Ask the round's partners, mix what they published last.
    Pull(PullPlan),
    /// Sums of parameters travel along a spanning tree of the topology.
    RelaySum,
    /// Mean of the parameters over a cell of a roll, with agreement inside the cell only.
    Cells,
    /// Every peer sends all neighbours the same encoded differences to one copy of itself.
    Differences(CopyPlan),
    /// As [`ExchangeKind::Pull`], with other answers than what a peer published last.
    PullBy(PullPlan, PullAnswers),
}

/// What other parts of the program must know of an exchange to work with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeFacts {
    /// Peers send each other something.
    pub exchanges: bool,
    /// Peers mix parameters with the neighbours that a topology names; the plan needs a topology.
    pub has_neighbours: bool,
    /// Pushes carry push-sum mass.
    pub has_mass: bool,
    /// The two ends of a link move by the same decoded bytes, in opposite directions.
    pub has_edges: bool,
    /// Peers keep replicas of their neighbours and send differences to them.
    pub has_replicas: bool,
    /// Values that a slice does not have stay as they are, and the others are mixed: a slice may be
    /// a part of the parameters.
    pub mixes_parts: bool,
    /// Peers wait for each other, so those that exchange are in nearby rounds and name their slices
    /// by them. Where peers do not wait, slices are named in another way.
    pub waits: bool,
    /// A round ends with one anchor that a majority of the group agreed on.
    pub agrees: bool,
    /// A contribution is what training changed of the anchor, and not the parameters.
    pub moves_the_anchor: bool,
    /// Members receive each contribution as it was encoded, and not a sum of them.
    pub shows_contributions: bool,
    /// Shards are reduced along the plan's [`Schedule`](crate::Schedule).
    pub has_schedule: bool,
    /// Each shard stays with the same owner from round to round, and all are in the same round.
    pub keeps_owners: bool,
    /// A round can leave out peers that contribute nothing to it.
    pub may_leave_out: bool,
    /// Each round deals the peers of a roll into other groups, which do not agree with each other.
    pub deals_cells: bool,
}

impl ExchangeFacts {
    const NONE: Self = Self {
        exchanges: false,
        has_neighbours: false,
        has_mass: false,
        has_edges: false,
        has_replicas: false,
        mixes_parts: false,
        waits: false,
        agrees: false,
        moves_the_anchor: false,
        shows_contributions: false,
        has_schedule: false,
        keeps_owners: false,
        may_leave_out: false,
        deals_cells: false,
    };

    /// Between neighbours that do not wait for each other.
    const NEIGHBOURS: Self = Self {
        exchanges: true,
        has_neighbours: true,
        ..Self::NONE
    };

    /// Among the members of a group that agree on every round's result.
    const AGREED: Self = Self {
        exchanges: true,
        waits: true,
        agrees: true,
        moves_the_anchor: true,
        ..Self::NONE
    };
}

impl ExchangeKind {
    /// What other parts of the program must know of it.
    pub const fn facts(self) -> ExchangeFacts {
        type Facts = ExchangeFacts;
        match self {
            Self::None => Facts::NONE,
            Self::Gossip => Facts {
                has_mass: true,
                waits: true,
                ..Facts::NEIGHBOURS
            },
            Self::Push => Facts {
                has_mass: true,
                ..Facts::NEIGHBOURS
            },
            Self::PullBy(_, PullAnswers::GroupMean) => Facts::NEIGHBOURS,
            Self::Pull(_) | Self::PullBy(_, PullAnswers::OfTheRound) => Facts {
                mixes_parts: true,
                ..Facts::NEIGHBOURS
            },
            Self::Replicas => Facts {
                has_edges: true,
                has_replicas: true,
                waits: true,
                ..Facts::NEIGHBOURS
            },
            Self::Pairs => Facts {
                has_edges: true,
                ..Facts::NEIGHBOURS
            },
            Self::RelaySum => Facts {
                waits: true,
                ..Facts::NEIGHBOURS
            },
            Self::Differences(_) => Facts {
                waits: true,
                ..Facts::NEIGHBOURS
            },
            Self::Cells => Facts {
                exchanges: true,
                waits: true,
                deals_cells: true,
                ..Facts::NONE
            },
            Self::AllReduce => Facts {
                has_schedule: true,
                may_leave_out: true,
                ..Facts::AGREED
            },
            Self::Gathered => Facts {
                shows_contributions: true,
                ..Facts::AGREED
            },
            Self::Server(_) => Facts {
                keeps_owners: true,
                may_leave_out: true,
                ..Facts::AGREED
            },
            Self::Center(_) => Facts {
                exchanges: true,
                moves_the_anchor: true,
                ..Facts::NONE
            },
        }
    }

    /// Peers mix parameters with neighbours that a topology names.
    pub const fn has_neighbours(self) -> bool {
        self.facts().has_neighbours
    }

    /// Peers wait for each other: see [`ExchangeFacts::waits`].
    pub const fn waits(self) -> bool {
        self.facts().waits
    }

    /// A round ends with one anchor that a majority of the group agreed on.
    pub const fn agrees(self) -> bool {
        self.facts().agrees
    }

    /// How many peers own a shard of each fragment, where owners are part of the plan.
    pub const fn owners(self) -> Option<u16> {
        match self {
            Self::Server(server) => Some(server.owners),
            Self::Center(center) => Some(center.owners),
            _ => None,
        }
    }

    /// Between which bounds the fastest peer may be ahead of the slowest, where the plan bounds it.
    pub const fn lead(self) -> Option<LeadPlan> {
        match self {
            Self::Center(center) => center.lead,
            _ => None,
        }
    }

    /// The number of parts, each voted on by itself, of a fragment of `len` values in a group of
    /// `members` without a schedule. Where contributions are shown, the parts are the
    /// contributions.
    pub fn parts(self, len: u64, members: usize) -> u64 {
        let members = members as u64;
        if self.facts().shows_contributions {
            return members;
        }
        let owners = match self.owners() {
            Some(owners) if self.agrees() => members.min(u64::from(owners)),
            Some(owners) => u64::from(owners),
            None => members,
        };
        owners.min(len).max(1)
    }

    pub(crate) fn check(self) -> Result<(), KindError> {
        match self {
            Self::Server(server) if server.owners == 0 => Err(KindError::Owners),
            Self::Center(center) => {
                if center.owners == 0 || usize::from(center.owners) > GROUP_MEMBERS_MAX {
                    return Err(KindError::Owners);
                }
                let many = usize::from(center.buffer) > GROUP_MEMBERS_MAX;
                let leads = center.lead.is_none_or(|l| (1..=l.most).contains(&l.least));
                if !leads || center.buffer == 0 || many {
                    Err(KindError::Center)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }
}

/// Why an exchange's own numbers cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KindError {
    /// No owner of a shard, or more owners than a group holds.
    #[error("a parameter server needs 1 to {GROUP_MEMBERS_MAX} owners of shards")]
    Owners,
    /// A lead of zero rounds, or a buffer of no contribution or of more than a group holds.
    #[error("a center needs a lead of at least one round and 1 to {GROUP_MEMBERS_MAX} arrivals")]
    Center,
}

/// What the copies of a peer at its neighbours are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyPlan {
    /// The peer's parameters themselves: what the codec leaves out is dropped at the peer, too.
    Parameters,
    /// Estimates of them, from extrapolated parameters.
    Estimates,
}

/// A parameter server whose members all work on the same round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Members that own a shard of each fragment.
    pub owners: u16,
}

/// A parameter server whose peers need not be in the same round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CenterPlan {
    /// Shards of each fragment, each with an owner.
    pub owners: u16,
    /// Rounds that the fastest peer may be ahead of the slowest; `None` for any number.
    pub lead: Option<LeadPlan>,
    /// Contributions that a shard combines into one move of the center, at least one.
    pub buffer: u16,
}

/// Bounds between which a peer chooses, round by round, how far it may be ahead of the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadPlan {
    /// A lead that is always allowed, at least one.
    pub least: u32,
    /// A lead that is never passed; equal to `least` where there is nothing to choose.
    pub most: u32,
}

impl LeadPlan {
    /// The same lead in all rounds.
    pub const fn fixed(lead: u32) -> Self {
        Self {
            least: lead,
            most: lead,
        }
    }
}

/// What peers that pull agree on beside the topology: how old an answer may be, for whom a round
/// waits, and when all mix with all.
///
/// The bounds of an exchange in which peers ask for what others published last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullPlan {
    /// Rounds that an answer may be behind the round in which it was asked for. A peer that has
    /// published nothing newer answers once it has.
    pub staleness: u32,
    /// Partners of a round that are not waited for once all others have answered.
    pub backup: u32,
    /// Rounds that a peer may be ahead of such a partner. Beyond that it waits for it, too.
    pub lead: u32,
    /// A peer that is this many rounds behind the others continues in their round; 0 is never.
    pub skip: u32,
    /// One in this many rounds is a mean over all peers of that round itself; 0 is none.
    pub sync_every: u32,
}

/// What a question is answered with, where it is not what the peer published last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullAnswers {
    /// The iterate of the question's round, or the newest one before it. Peers keep a queue of
    /// iterates for that, and weigh an answer less for each round of its age.
    OfTheRound,
    /// The mean over the asker's group, which one of its members makes for all.
    GroupMean,
}

impl PullPlan {
    /// The largest bound, which is as good as none.
    pub const UNBOUNDED: u32 = 1_000_000;

    /// Without bounds: any answer will do, and all partners are waited for.
    pub const FREE: Self = Self {
        staleness: Self::UNBOUNDED,
        backup: 0,
        lead: Self::UNBOUNDED,
        skip: 0,
        sync_every: 0,
    };

    /// A round is a mean over all peers.
    pub const fn syncs(&self, round: Round) -> bool {
        match round
            .0
            .saturating_add(1)
            .checked_rem(self.sync_every as u64)
        {
            Some(rest) => rest == 0,
            None => false,
        }
    }

    /// Rounds that an answer to a question of `round` may be behind it.
    pub const fn slack(&self, round: Round) -> u32 {
        if self.syncs(round) { 0 } else { self.staleness }
    }

    /// Rounds that a peer may be ahead of a partner that still asks it, where no deadline passes:
    /// one more than answers may be old, or the lead over a backup partner.
    pub const fn gap(&self) -> u32 {
        let waited = self.staleness.saturating_add(1);
        if self.backup > 0 && self.lead > waited {
            self.lead
        } else {
            waited
        }
    }

    /// Iterates that a peer keeps where a question is answered with that of its round: its own and
    /// one for each round of the gap.
    pub const fn queue(&self) -> usize {
        let kept = self.gap().saturating_add(1) as usize;
        if kept > PULL_QUEUE_MAX {
            PULL_QUEUE_MAX
        } else {
            kept
        }
    }

    /// The oldest round of which an answer to a question of `round` may be.
    pub const fn oldest(&self, round: Round) -> Round {
        Round(round.0.saturating_sub(self.slack(round) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_has_as_many_parts_as_members_reduce_or_show() {
        let server = |owners| ExchangeKind::Server(ServerPlan { owners });
        let center = ExchangeKind::Center(CenterPlan {
            owners: 3,
            lead: None,
            buffer: 1,
        });
        assert_eq!(ExchangeKind::AllReduce.parts(100, 4), 4);
        assert_eq!(ExchangeKind::AllReduce.parts(2, 4), 2);
        assert_eq!(ExchangeKind::Gathered.parts(2, 4), 4);
        assert_eq!(server(2).parts(100, 4), 2);
        assert_eq!(server(8).parts(100, 4), 4);
        // A center's owners are part of the plan, however many peers are there.
        assert_eq!(center.parts(100, 1), 3);
        assert_eq!(center.parts(2, 9), 2);
        assert_eq!(ExchangeKind::Gossip.parts(0, 4), 1);
    }
}

#[cfg(test)]
mod pull_plan_tests {
    use super::*;

    #[test]
    fn a_queue_holds_what_the_slowest_partner_may_still_ask_for() {
        let bounds = |staleness, backup, lead| PullPlan {
            staleness,
            backup,
            lead,
            ..PullPlan::FREE
        };
        assert_eq!(bounds(0, 0, 9).queue(), 2);
        assert_eq!(bounds(3, 0, 9).queue(), 5);
        assert_eq!(bounds(0, 1, 6).queue(), 7);
        assert_eq!(bounds(8, 1, 6).queue(), 10);
        assert_eq!(PullPlan::FREE.queue(), PULL_QUEUE_MAX);
    }

    #[test]
    fn answers_may_be_as_old_as_the_bound_and_of_the_round_itself_where_all_mix() {
        let plan = PullPlan {
            staleness: 3,
            sync_every: 5,
            ..PullPlan::FREE
        };
        let oldest: Vec<u64> = (0..10).map(|round| plan.oldest(Round(round)).0).collect();
        assert_eq!(oldest, [0, 0, 0, 0, 4, 2, 3, 4, 5, 9]);
        assert_eq!(PullPlan::FREE.oldest(Round(999_999)), Round(0));
        assert!(!PullPlan::FREE.syncs(Round(0)));
    }
}
