//! Messages of the exchanges whose groups agree: forming a round's group, then the reduction, the
//! votes and the repairs of each fragment.

use super::member::{
    Ballot, Held, Member, Said, ShardPlan, ShardVersion, Surroundings, Whereabouts, check_places,
    group,
};
use super::signed_message::{Seat, SignedMessage, Stated};
use crate::data::tally_fits;
use crate::limits::{GRID_COLUMNS_MAX, GROUP_MEMBERS_MAX, MERGE_SIDES_MAX};
use crate::schedule::AgreedLinks;
use crate::signature::Place;
use crate::wire::{WireError, check};
use crate::{
    Branch, Digest, FragmentId, GroupTag, Members, PeerId, Plan, Round, RunId, Signed, TallyEntry,
    Weighing,
};
use serde::{Deserialize, Serialize};

/// A message of an exchange whose groups agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgreedMessage {
    /// About the group of a round.
    Forming(FormingMessage),
    /// About one fragment, within the group.
    Fragment(Scoped),
}

/// A message about one fragment in one group of one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoped {
    /// The round.
    pub round: Round,
    /// The fragment.
    pub fragment: FragmentId,
    /// The group. A message of another group of the same round is dropped.
    pub group: GroupTag,
    /// The message itself.
    pub body: FragmentMessage,
}

/// A message of a member of a group about one fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FragmentMessage {
    /// The sender has reduced a shard, and others pass the bytes on: this is what they must be.
    Reduced {
        /// The shard.
        shard: u16,
        /// The sender's version of it.
        version: ShardVersion,
    },
    /// The sender holds all shards in these versions and would apply them.
    Vote {
        /// In which ballot.
        ballot: Ballot,
        /// Shard by shard.
        versions: Vec<ShardVersion>,
    },
    /// Asks for a [`FragmentMessage::Promise`] in a higher ballot.
    Prepare {
        /// The ballot.
        ballot: Ballot,
    },
    /// The sender votes in no lower ballot any more, and names its last vote and the aggregates that it holds.
    Promise(Promise),
    /// The coordinator's conclusion from the promises: vote for this in this ballot.
    Repair {
        /// The ballot.
        ballot: Ballot,
        /// The members that promised. The others are no longer waited for.
        alive: Members,
        /// Shard by shard.
        shards: Vec<ShardPlan>,
    },
    /// The coordinator found no majority: the fragment's exchange is void.
    Void {
        /// The ballot.
        ballot: Ballot,
    },
    /// The exchange of the fragment ended with these versions.
    Decided {
        /// In which ballot's number.
        ballot: u8,
        /// The members, so that a straggler can tell the contributors.
        members: Vec<Member>,
        /// Shard by shard.
        versions: Vec<ShardVersion>,
    },
    /// What members say where groups survive liars.
    Signed(SignedMessage),
    /// In a grid: what the sender knows of the results of all columns, in their order.
    Collected {
        /// Set for the results that it knows.
        known: Vec<bool>,
        /// Their bundles; the attempt is [`Attempt::VOID`](crate::Attempt::VOID) where a column found no
        /// result. The contributors are the rows in all parts, and there may be none.
        versions: Vec<ShardVersion>,
    },
    /// The sender brings nothing: in a grid its row nothing to the column, elsewhere a member whose contribution failed
    /// nothing to a group that sums all or none.
    Nothing,
    /// In a grid, in the column that decides the round's note: whose contributions the mean of the
    /// sender's row holds, and the data behind them. To the member that makes the note, before the mean.
    Tally(Vec<TallyEntry>),
    /// The same as [`FragmentMessage::Vote`], where naming every version would take too many bytes.
    VoteFor {
        /// In which ballot.
        ballot: Ballot,
        /// The digest that stands for the versions of all shards.
        value: Digest,
    },
    /// A majority voted for this value, and the sender does not know for which versions. A member that
    /// voted for it answers with [`FragmentMessage::Vote`].
    Query {
        /// What the votes name.
        value: Digest,
    },
}

/// A member's promise to vote in no lower ballot, with its last vote and the aggregates that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The ballot.
    pub ballot: Ballot,
    /// The highest ballot it voted in, and for what.
    pub voted: Option<(Ballot, Vec<ShardVersion>)>,
    /// Aggregates it holds.
    pub held: Vec<Held>,
    /// Members that it still waits for. One that missed a deadline is not waited for again.
    pub hopeful: Members,
}

impl AgreedMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Forming(message) => message.name(),
            Self::Fragment(scoped) => scoped.body.name(),
        }
    }

    pub(crate) const fn takes_part_in(&self) -> Option<Round> {
        match self {
            Self::Forming(
                message @ (FormingMessage::Ready { .. }
                | FormingMessage::Propose(_)
                | FormingMessage::ProposePlaced { .. }
                | FormingMessage::ProposeLinked { .. }
                | FormingMessage::SignedReady { .. }
                | FormingMessage::SignedPropose(_)
                | FormingMessage::Meet(_)),
            ) => Some(message.round()),
            Self::Fragment(Scoped {
                round,
                body:
                    FragmentMessage::Vote { .. }
                    | FragmentMessage::VoteFor { .. }
                    | FragmentMessage::Signed(SignedMessage::Vote(_)),
                ..
            }) => Some(*round),
            _ => None,
        }
    }

    pub(crate) const fn round(&self) -> Round {
        match self {
            Self::Forming(message) => message.round(),
            Self::Fragment(scoped) => scoped.round,
        }
    }

    /// It carries signatures.
    pub(crate) const fn is_signed(&self) -> bool {
        matches!(
            self,
            Self::Forming(FormingMessage::SignedReady { .. } | FormingMessage::SignedPropose(_))
                | Self::Fragment(Scoped {
                    body: FragmentMessage::Signed(_),
                    ..
                })
        )
    }

    /// Says of `me`, before it signs, whether it may have signed something in the message's round
    /// in an earlier life, which ended in round `forgotten`.
    pub(crate) fn confess(&mut self, me: PeerId, forgotten: Round) {
        let forgets = |round: Round| round <= forgotten;
        match self {
            Self::Forming(FormingMessage::SignedReady { round, seat, .. }) => {
                seat.forgets |= forgets(*round);
            }
            Self::Forming(FormingMessage::SignedPropose(proposal)) => {
                let forgets = forgets(proposal.round);
                let own = proposal.members.iter_mut().filter(|seat| seat.peer == me);
                own.filter(|seat| seat.signature.is_blank())
                    .for_each(|seat| seat.forgets |= forgets);
            }
            _ => {}
        }
    }

    /// Every signature in it, with the statement that it is under.
    pub(crate) fn signed(&mut self, run: &RunId, from: PeerId) -> Vec<Signed<'_>> {
        match self {
            Self::Forming(FormingMessage::SignedReady {
                round,
                anchor,
                seat,
                ..
            }) => {
                // A peer speaks for itself only.
                seat.peer = from;
                vec![seat.signed(run, *round, *anchor)]
            }
            Self::Forming(FormingMessage::SignedPropose(proposal)) => {
                let (round, anchor) = (proposal.round, proposal.anchor);
                let all = proposal.members.iter_mut();
                all.map(|seat| seat.signed(run, round, anchor)).collect()
            }
            Self::Fragment(scoped) => {
                let place = Place {
                    round: scoped.round,
                    fragment: scoped.fragment,
                    group: scoped.group,
                };
                match &mut scoped.body {
                    FragmentMessage::Signed(message) => message.signed(run, from, place),
                    _ => Vec::new(),
                }
            }
            Self::Forming(_) => Vec::new(),
        }
    }

    /// Checks every count and range.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Forming(FormingMessage::Ready { said, .. }) => check::weight(said.weight),
            Self::Forming(FormingMessage::Propose(proposed)) => group(&proposed.members),
            Self::Forming(FormingMessage::ProposePlaced { proposed, places }) => {
                group(&proposed.members)?;
                check_places(places, proposed.members.len())
            }
            Self::Forming(FormingMessage::ProposeLinked { proposed, links }) => {
                group(&proposed.members)?;
                links.check(proposed.round, proposed.members.len())
            }
            Self::Forming(FormingMessage::SignedReady { seat, .. }) => check::weight(seat.weight),
            Self::Forming(FormingMessage::SignedPropose(proposal)) => {
                check::ok(usize::from(proposal.seats) <= GROUP_MEMBERS_MAX, "seats")?;
                let seats = proposal.members.iter();
                let plain = seats.map(|seat| Member::new(seat.peer, seat.weight));
                group(&plain.collect::<Vec<_>>())
            }
            Self::Forming(
                FormingMessage::Decline { .. }
                | FormingMessage::Behind { .. }
                | FormingMessage::Joined { .. }
                | FormingMessage::Left { .. },
            ) => Ok(()),
            Self::Forming(FormingMessage::Meet(head)) => head.branch.check(),
            Self::Forming(FormingMessage::Merge { sides, .. }) => merge(sides),
            Self::Fragment(scoped) => {
                check::fragment(scoped.fragment)?;
                scoped.body.check()
            }
        }
    }
}

impl FragmentMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Reduced { .. } => "reduced",
            Self::Vote { .. } => "vote",
            Self::Prepare { .. } => "prepare",
            Self::Promise(_) => "promise",
            Self::Repair { .. } => "repair",
            Self::Void { .. } => "void",
            Self::Decided { .. } => "decided",
            Self::Collected { .. } => "collected",
            Self::Nothing => "nothing",
            Self::Tally(_) => "tally",
            Self::VoteFor { .. } => "vote-for",
            Self::Query { .. } => "query",
            Self::Signed(message) => message.name(),
        }
    }

    /// The sender works on the fragment and wants to know how it ended.
    pub(crate) const fn asks(&self) -> bool {
        match self {
            Self::Signed(message) => message.asks(),
            other => matches!(
                other,
                Self::Promise(_) | Self::Prepare { .. } | Self::Query { .. }
            ),
        }
    }

    /// It says how the fragment's exchange ended.
    pub(crate) const fn ends(&self) -> bool {
        matches!(
            self,
            Self::Decided { .. }
                | Self::Void { .. }
                | Self::Collected { .. }
                | Self::Signed(SignedMessage::Decided { .. })
        )
    }

    pub(crate) const fn is_signed(&self) -> bool {
        matches!(self, Self::Signed(_))
    }

    /// It may be part of a decision: promises and votes in higher ballots decide nothing by themselves.
    pub(crate) const fn binds(&self) -> bool {
        matches!(
            self,
            Self::Signed(SignedMessage::Vote(Stated { ballot: 0, .. }) | SignedMessage::Lock(_))
        )
    }

    fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Signed(message) => message.check(),
            Self::Reduced { shard, .. } => check::shards(usize::from(*shard)),
            Self::Vote { ballot, versions } => {
                check::ballot(ballot.number)?;
                check::shards(versions.len())
            }
            Self::Prepare { ballot } | Self::Void { ballot } | Self::VoteFor { ballot, .. } => {
                check::ballot(ballot.number)
            }
            Self::Promise(promise) => {
                check::ballot(promise.ballot.number)?;
                check::shards(promise.held.len())?;
                let Some((ballot, versions)) = &promise.voted else {
                    return Ok(());
                };
                check::ballot(ballot.number)?;
                check::shards(versions.len())
            }
            Self::Repair { ballot, shards, .. } => {
                check::ballot(ballot.number)?;
                check::shards(shards.len())
            }
            Self::Decided {
                ballot,
                members,
                versions,
            } => {
                check::ballot(*ballot)?;
                check::shards(versions.len())?;
                group(members)
            }
            Self::Collected { known, versions } => {
                check::ok(versions.len() <= GRID_COLUMNS_MAX, "columns")?;
                check::ok(known.len() == versions.len(), "columns")
            }
            Self::Nothing | Self::Query { .. } => Ok(()),
            Self::Tally(entries) => check::ok(tally_fits(entries), "tally"),
        }
    }
}

/// A message that forms a round's group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FormingMessage {
    /// The sender's training of this round ended; sent to all peers.
    Ready {
        /// The round.
        round: Round,
        /// The weight of its contribution, and its data and loss where peers agree on them.
        said: Said,
        /// Hash of the anchor it started from, and of the owner's rules where there are any.
        anchor: Digest,
        /// It may propose a group: it has been in one since it took over a state.
        proposes: bool,
    },
    /// The round's group.
    Propose(Proposed),
    /// The sender does not join the proposed group.
    Decline {
        /// The round.
        round: Round,
        /// The term.
        term: u8,
    },
    /// The round that the receiver's message names continues, or continued, without it.
    Behind {
        /// The first round the receiver can take part in again.
        round: Round,
        /// The receiver's anchor differs from the swarm's, so that replaying past rounds
        /// cannot repair it.
        resync: bool,
    },
    /// [`FormingMessage::Ready`] in a run whose groups survive liars.
    SignedReady {
        /// The round.
        round: Round,
        /// Hash of the anchor it started from, and of the owner's rules where there are any.
        anchor: Digest,
        /// It may propose a group.
        proposes: bool,
        /// What the sender says of itself.
        seat: Seat,
    },
    /// [`FormingMessage::Propose`] in a run whose groups survive liars.
    SignedPropose(Proposal),
    /// The sender is not in a proposed group whose members sign, or not any more, and has signed nothing
    /// in it.
    Left {
        /// The round.
        round: Round,
        /// The group.
        group: GroupTag,
        /// Its word of readiness still holds.
        ready: bool,
    },
    /// The sender is in a group whose members sign.
    Joined {
        /// The round.
        round: Round,
        /// The group.
        group: GroupTag,
    },
    /// The sender has stopped between two rounds, so that its branch can be merged with others.
    Meet(Box<Head>),
    /// The group that merges branches.
    Merge {
        /// The round that merges them.
        round: Round,
        /// Raised with every proposer that failed before.
        term: u8,
        /// The sides.
        sides: Vec<MergeSide>,
    },
    /// [`FormingMessage::Propose`] in a run whose members go by their lines or sites.
    ProposePlaced {
        /// The round's group.
        proposed: Proposed,
        /// Where each of them is, as far as the proposer knows it.
        places: Vec<Whereabouts>,
    },
    /// [`FormingMessage::Propose`] in a run whose schedule goes by links that members measure.
    ProposeLinked {
        /// The round's group.
        proposed: Proposed,
        /// The rates of their links.
        links: AgreedLinks,
    },
}

impl FormingMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Propose(_) => "propose",
            Self::Decline { .. } => "decline",
            Self::Behind { .. } => "behind",
            Self::SignedReady { .. } => "signed-ready",
            Self::SignedPropose(_) => "signed-propose",
            Self::Joined { .. } => "joined",
            Self::Left { .. } => "left",
            Self::Meet(_) => "meet",
            Self::Merge { .. } => "merge",
            Self::ProposePlaced { .. } => "propose-placed",
            Self::ProposeLinked { .. } => "propose-linked",
        }
    }

    pub(super) const fn round(&self) -> Round {
        match self {
            Self::Propose(proposed)
            | Self::ProposePlaced { proposed, .. }
            | Self::ProposeLinked { proposed, .. } => proposed.round,
            Self::SignedPropose(proposal) => proposal.round,
            Self::Meet(head) => head.round,
            Self::Ready { round, .. }
            | Self::Decline { round, .. }
            | Self::Behind { round, .. }
            | Self::SignedReady { round, .. }
            | Self::Joined { round, .. }
            | Self::Left { round, .. }
            | Self::Merge { round, .. } => *round,
        }
    }

    /// A proposed group, and the network among its members.
    pub(super) fn proposal(&self) -> Option<(&Proposed, Surroundings)> {
        let mut around = Surroundings::default();
        let proposed = match self {
            Self::Propose(proposed) => proposed,
            Self::ProposePlaced { proposed, places } => {
                around.places.clone_from(places);
                proposed
            }
            Self::ProposeLinked { proposed, links } => {
                around.links = Some(links.clone());
                proposed
            }
            _ => return None,
        };
        Some((proposed, around))
    }

    /// Its weights are what the plan has them count.
    pub(super) fn weighs(&self, weighing: Weighing) -> bool {
        match self {
            Self::Ready { said, .. } => weighing.allows(said.weight),
            _ => true,
        }
    }

    pub(super) fn says_a_loss(&self) -> bool {
        if let Self::Ready { said, .. } = self {
            return said.loss.is_some();
        }
        let mut members = self.proposal().into_iter().flat_map(|(of, _)| &of.members);
        members.any(|member| member.said.loss.is_some())
    }

    /// It forms groups of the run's kind: its members sign, or they do not.
    pub(super) fn fits(&self, plan: &Plan) -> bool {
        let signs = plan.agreement.signs();
        match self {
            Self::SignedReady { .. }
            | Self::SignedPropose(_)
            | Self::Joined { .. }
            | Self::Left { .. } => signs,
            Self::Ready { .. } => !signs,
            Self::Propose(_) => !signs && !plan.names_places() && !plan.names_links(),
            Self::ProposeLinked { .. } => plan.names_links(),
            Self::ProposePlaced { .. } => !signs && plan.names_places(),
            Self::Meet(_) | Self::Merge { .. } => plan.merges(),
            Self::Decline { .. } | Self::Behind { .. } => true,
        }
    }
}

/// A group that a peer proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    /// The round.
    pub round: Round,
    /// Raised with every proposer that failed before.
    pub term: u8,
    /// The members in `PeerId` order.
    pub members: Vec<Member>,
}

/// A proposal of a group whose members sign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The round.
    pub round: Round,
    /// Raised with every proposer that failed before.
    pub term: u8,
    /// Peers that take part in rounds, absent ones included: the quorum is of these.
    pub seats: u16,
    /// The anchor of all members.
    pub anchor: Digest,
    /// The members in `PeerId` order.
    pub members: Vec<Seat>,
}

/// Where a peer has stopped for a merge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The round that it is in.
    pub round: Round,
    /// Hash of the anchor that opened it.
    pub anchor: Digest,
    /// Its branch.
    pub branch: Branch,
}

/// One side of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeSide {
    /// Hash of its anchor.
    pub head: Digest,
    /// What its rounds have decided since the split; its members share it.
    pub weight: f64,
    /// Its members in `PeerId` order.
    pub members: Vec<PeerId>,
}

pub(super) fn merge(sides: &[MergeSide]) -> Result<(), WireError> {
    let count: usize = sides.iter().map(|side| side.members.len()).sum();
    let few = sides.len() <= MERGE_SIDES_MAX && count <= GROUP_MEMBERS_MAX;
    check::ok(few, "sides")?;
    for side in sides {
        check::weight(side.weight)?;
        let ascending = side.members.is_sorted_by(|one, next| one < next);
        check::ok(ascending && !side.members.is_empty(), "members")?;
    }
    Ok(())
}
